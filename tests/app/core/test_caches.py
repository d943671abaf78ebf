"""The panel of caches, on layers made by hand."""

import msgspec
import pytest
from qd_studio.app.core.lines import STYLES, plain, text_of
from qd_studio.app.core.state import Selection
from qd_studio.app.core.views import home, matrix
from qd_studio.app.panels import caches
from qd_studio.engine.inspect import record as rec

from tests.app.records import LAYERS, make_record

KERNEL = make_record().kernels[0]


def with_layers(*layers):
    backend = msgspec.structs.replace(KERNEL.backends[0], caches=layers)
    return msgspec.structs.replace(KERNEL, backends=(backend,))


def test_a_row_a_backend_and_layer_says_state_cost_and_why():
    (head,), rows = caches.cache_lines(KERNEL)
    assert [line.key for line in rows] == [
        "cpu in_process", "cpu fastcache", "cpu offline", "cpu ptx",
    ]  # fmt: skip
    offline = text_of(rows[2])
    for word in ("cpu", "offline", "◇", "miss", "12.5 ms", "config.fast_math: True -> False"):
        assert word in offline
    assert "miss costs" in text_of(head)
    assert not any(text_of(line).endswith(" ") for line in rows)


def test_differences_are_shown_with_both_values_and_changed_lines_with_signs_and_colours():
    lines = caches.layer_lines(KERNEL, "cpu offline")
    text = plain(lines)
    assert "Against the nearest entry (fedcba987654, made 2026-01-02 03:04:05):" in text
    assert "≠ config.fast_math: True -> False" in text
    assert "≠ source of helper `half<b>` changed, line 12" in text
    changed = {line.row: text_of(line).strip() for line in lines if line.row}
    assert changed == {"del": "- 12     return x * 0.5", "add": "+ 12     return x / 2"}
    assert next(x for x in lines if x.row == "add").copy == "    return x / 2"
    assert next(x for x in lines if x.row == "add").line == 12
    part = next(line for line in lines if line.key == ("part", "config.fast_math"))
    assert text_of(part).split() == ["≠", "config.fast_math", "False", "was", "True"]
    same = next(line for line in lines if line.key == ("part", "kernel"))
    assert "≠" not in text_of(same)


def test_plain_characters_say_the_same():
    text = plain(caches.layer_lines(KERNEL, "cpu offline", ascii_only=True))
    text += plain(caches.cache_lines(KERNEL, ascii_only=True)[1])
    text += plain(caches.layer_lines(KERNEL, "cpu fastcache", ascii_only=True))
    assert text.isascii()
    assert "!= config.fast_math" in text and "-> could be marked" in text


def test_long_texts_are_wrapped_to_the_room():
    for key in ("cpu offline", "cpu fastcache", "cpu in_process"):
        for line in caches.layer_lines(KERNEL, key, 40):
            if line.key is None or line.key[0] == "difference":
                assert len(text_of(line)) <= 40


def test_every_style_is_known():
    for key in ("cpu offline", "cpu fastcache", "cpu in_process", "cpu ptx"):
        for line in [*caches.cache_lines(KERNEL)[1], *caches.layer_lines(KERNEL, key)]:
            assert {style for _, style in line.spans} | {line.row} <= set(STYLES)


def test_the_row_with_most_to_state_is_chosen_unless_the_person_chose():
    assert caches.chosen_layer(KERNEL) == "cpu offline"
    assert caches.chosen_layer(KERNEL, "cpu ptx") == "cpu ptx"
    assert caches.chosen_layer(KERNEL, "cuda ptx") == "cpu offline"
    assert caches.chosen_layer(with_layers(*LAYERS[:2])) == "cpu fastcache"
    impure = rec.CacheLayer(name="fastcache", state="bypass", reason="not pure: reads n")
    assert caches.chosen_layer(with_layers(LAYERS[0], impure, LAYERS[2])) == "cpu fastcache"
    assert caches.chosen_layer(with_layers()) == ""
    assert Selection().layer == ""


def test_a_comparison_with_the_last_look_says_so():
    layer = msgspec.structs.replace(LAYERS[2], against="look", nearest="", entry_created="")
    assert caches.compared_with(layer) == "since the last save"
    options = msgspec.structs.replace(layer, differences=layer.differences[:1])
    assert caches.compared_with(options) == "since the last look"


def test_a_kernel_that_was_not_asked_for_says_why():
    backend = rec.BackendRecord(backend="cuda", status="absent", reason="no driver found")
    head, lines = caches.cache_lines(msgspec.structs.replace(KERNEL, backends=(backend,)))
    assert head == [] and "no driver found" in plain(lines)
    assert caches.layer_lines(KERNEL, "cuda offline") == []


@pytest.mark.parametrize("state", ["hit", "miss", "bypass", "off", "not_applicable", "damaged"])
def test_every_state_has_a_glyph_and_a_row(state):
    kernel = with_layers(rec.CacheLayer(name="offline", state=state, reason="why"))
    for ascii_only in (False, True):
        (row,) = caches.cache_lines(kernel, ascii_only)[1]
        assert "why" in text_of(row)
    assert "offline" in plain(caches.layer_lines(kernel, "cpu offline"))


def test_home_shows_glyphs_of_the_layers_and_why_the_kernel_is_missed():
    record = msgspec.structs.replace(make_record(), kernels=(KERNEL,))
    head, lines, *_ = matrix.matrix(record, 200)
    assert "caches" in text_of(head[-1])
    assert "▹·◇" in text_of(lines[0])
    detail = plain(home.detail(KERNEL))
    assert "offline miss config.fast_math: True -> False" in detail
    assert "fastcache off" not in detail
