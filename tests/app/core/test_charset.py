"""For which locales only ASCII is drawn, and what is drawn then."""

from __future__ import annotations

import json

import pytest
from qd_studio.app.core import format as fmt
from qd_studio.app.core.charset import escaped, narrowed, plain_locale, spelled
from qd_studio.app.core.views.matrix import matrix

from tests.app.devices import many


@pytest.mark.parametrize(
    ("environment", "encoding", "plain"),
    [
        ({"LC_ALL": "C"}, "utf-8", True),
        ({"LC_ALL": "POSIX", "LANG": "en_US.UTF-8"}, "utf-8", True),
        ({"LC_CTYPE": "C", "LANG": "en_US.UTF-8"}, "utf-8", True),
        # As Python leaves the environment where LANG alone says C.
        ({"LC_CTYPE": "C.UTF-8", "LANG": "C"}, "utf-8", True),
        ({"LANG": "de_DE.ISO-8859-1"}, "iso8859-1", True),
        ({"LANG": "de_DE.ISO-8859-1", "LC_CTYPE": "C.UTF-8"}, "utf-8", True),
        ({"LANG": "de_DE.iso88591"}, "utf-8", True),
        ({"LANG": "de_DE@euro"}, "iso8859-15", True),
        ({"LC_ALL": "C.UTF-8"}, "utf-8", False),
        ({"LC_ALL": "", "LANG": "en_US.utf8"}, "utf-8", False),
        ({"LC_ALL": "en_GB.UTF-8", "LANG": "C"}, "utf-8", False),
        ({}, "utf-8", False),
        ({}, "ascii", True),
        ({}, None, True),
        ({"LANG": "C", "PYTHONIOENCODING": "utf-8"}, "utf-8", False),
    ],
)  # fmt: skip
def test_the_environment_says_what_can_be_drawn(environment, encoding, plain):
    assert plain_locale(environment, encoding) is plain


def test_every_glyph_of_ours_has_a_like_of_one_column():
    text = "".join(a for a, _ in fmt.GLYPHS.values()) + "▁▂▃▄▅▆▇█─│┌┼╯›…⋯±×→▲é"
    assert len(narrowed(text)) == len(text)
    assert narrowed(text).isascii() and "?" not in narrowed(text).replace(narrowed("?"), "")
    assert narrowed("日本 x\u0301") == "???? x" and spelled("✓ a → b…") == "ok a -> b..."
    rows = matrix(many(), 200).rows
    assert [len(narrowed(t)) for x in rows for t, _ in x.spans] == [
        len(t) for x in rows for t, _ in x.spans
    ]


def test_json_loses_nothing():
    value = {"text": '✓ é 日本 \U0001f600 \\ "', "n": 1.5}
    text = escaped(json.dumps(value, ensure_ascii=False))
    assert text.isascii() and json.loads(text) == value
