"""The HTML report as a browser shows it once everything is unpacked."""

from __future__ import annotations

import base64
import json
import re
import zlib

from qd_studio.app.report import render

__all__ = ["blocks", "unpacked"]

_BLOCK = re.compile(r'<script type="text/plain" id="(\w+)">([^<]*)</script>')
_PLACE = re.compile(r'<(details|div) data-z="(\w+):(\d+)">(.*?)</\1>')


def blocks(page):
    """The packed parts of a page, by block and number."""
    out = {}
    for name, text in _BLOCK.findall(page):
        assert name not in out
        out[name] = dict(json.loads(zlib.decompress(base64.b64decode(text))))
    return out


def unpacked(record, findings=()):
    """The page of a record, without the script and with every part in its place, each once."""
    page = render(record, ".html", findings)
    parts = blocks(page)

    def filled(match):
        tag, block, number, inner = match.groups()
        return f"<{tag}>{inner}{parts[block].pop(int(number))}</{tag}>"

    page = _PLACE.sub(filled, page)
    assert not any(parts.values()), "a part that no place asks for"
    assert "data-z=" not in page.partition("<body>")[2]
    return re.sub(r"<script>.*?</script>", "", _BLOCK.sub("", page), flags=re.S)
