"""The HTML report's packed parts: what is packed, that a browser unpacks it, and that text of
users stays text."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import msgspec
from qd_studio.app import report
from qd_studio.app.markup.packed import Pack
from qd_studio.engine.inspect import record as rec

from tests.app import gradients
from tests.app.browser import browsed, needs_browser
from tests.app.devices import NO_DEVICE
from tests.app.pages import blocks, unpacked
from tests.app.records import make_record

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def test_listings_and_drawings_are_packed_and_tables_and_messages_are_not():
    page = report.render(NO_DEVICE, ".html")
    reported = re.sub(r"<script.*?</script>", "", page, flags=re.S)
    for text in ("100 us ± 1.00", "no driver found", "limited by registers"):
        assert text in reported, text
    assert "0. simplify_I/1 alg_simp" in reported and "x * 1 is x" not in reported
    assert "// &lt;i&gt;" not in reported and "<circle" not in reported
    whole = unpacked(NO_DEVICE)
    for text in ("x * 1 is x", "// &lt;i&gt;", "<circle", 'class="timeline"', "half&lt;b&gt;"):
        assert text in whole, text


def test_blocks_have_names_of_their_own_and_are_the_same_each_time():
    record = gradients.make_record()
    log = (rec.LogLine(stream="stdout", text=EVIL),)
    record = msgspec.structs.replace(record, log=log)
    page = report.render(record, ".html")
    assert sorted(blocks(page)) == ["log", "z0", "z1"]
    assert page == report.render(record, ".html")
    assert "alert(1)" not in page and "&lt;script&gt;alert(1)" in unpacked(record)


def test_equal_kinds_are_together_and_numbers_are_those_of_the_places():
    pack = Pack("z")
    places = [pack.details("a <b>", "A", "two"), pack.later("B", "one"), pack.later("C", "two")]
    assert places[0] == '<details data-z="z:0"><summary>a &lt;b&gt;</summary></details>'
    assert list(blocks(pack.block())["z"].items()) == [(1, "B"), (0, "A"), (2, "C")]
    assert Pack("z").block() == "" and pack.later("", "one") == ""


def test_only_the_pages_own_script_may_run():
    page = report.render(make_record(), ".html")
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; ") and f"script-src 'sha256-{digest}'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2]
    assert page.index("Content-Security-Policy") < page.index("<script>")


def test_unpacking_everything_goes_on_in_steps_that_can_be_stopped():
    page = report.render(make_record(), ".html")
    assert 'packed-busy">Unpacking <span id="unpacking"></span>; the escape key' in page
    assert ":root:not(.unpacking) .packed-busy" in page and 'event.key === "Escape"' in page
    # Sections that are not on the screen are not laid out.
    assert "section{content-visibility:auto" in page


def test_without_the_script_the_page_says_what_is_missing():
    page = report.render(make_record(), ".html")
    assert '<p class="bad packed-not">Listings, diffs and drawings are packed' in page
    assert ".unpacks .packed-not" in page and 'className = "unpacks"' in page


class Text(HTMLParser):
    """The text of a page, outside of scripts and styles."""

    def __init__(self):
        super().__init__()
        self.parts = []
        self._quiet = False

    def handle_starttag(self, tag, attrs):
        self._quiet = tag in ("script", "style")

    def handle_endtag(self, tag):
        self._quiet = False

    def handle_data(self, data):
        if not self._quiet:
            self.parts.append(data)


def text_of(page):
    parser = Text()
    parser.feed(page)
    return "".join("".join(parser.parts).split())


@needs_browser
def test_a_browser_shows_what_was_packed(tmp_path):
    """From a file, without a network: all texts of the page, in order."""
    record = make_record()
    page = tmp_path / "report.html"
    report.write(record, page)
    shown = browsed(page, "html.unpacked", "#everything")
    body = shown.partition("<body>")[2]
    assert "data-z=" not in body and "data-fault" not in body
    shown, wanted = text_of(shown), text_of(unpacked(record))
    assert "x*1isx" in shown and shown == wanted
