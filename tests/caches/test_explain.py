"""What differs between two entries, and which entry is nearest."""

from typing import Any, NamedTuple

import pytest
from qd_studio.engine.cache import explain
from qd_studio.engine.cache.parts import digest

KERNEL = """@qd.kernel
def saxpy(x: A, y: A, a: qd.f32):
    for i in x:
        y[i] = scale(x[i], a)
"""
HELPER = "@qd.func\ndef scale(v, a):\n    b = v * a\n    return b + y0\n"


class Info(NamedTuple):
    about: dict[str, Any]
    key: str = ""


def source(name, text, line, file="/u/k.py"):
    return {"name": name, "file": file, "line": line, "digest": digest(text), "text": text}


def about(kernel=KERNEL, helper=HELPER, captures=(("scale", "y0", "int", "3"),), **parts):
    texts = {
        "kernel": "saxpy", "engine": "0.1.0+ab", "backend": "cpu", "config.fast_math": "True",
        "config.opt_level": "1", "noalias": "True", "signature": "x: f32[:]",
        "ir": digest(kernel + helper + str(captures)), "places": digest("p"),
    } | {name.replace("__", "."): value for name, value in parts.items()}  # fmt: skip
    return {
        "kernel": "saxpy", "file": "/u/k.py", "line": 20, "created": 1.0, "backend": "cpu",
        "parts": {k: v for k, v in texts.items() if v is not None},
        "sources": [source("saxpy", kernel, 20)] + [source("scale", helper, 10)] * bool(helper),
        "captures": [dict(zip(("in", "name", "kind", "value"), c, strict=True)) for c in captures],
    }  # fmt: skip


def texts(old, new):
    return [d.text for d in explain.differences(old, new)]


def test_nothing_differs_from_itself():
    assert explain.differences(about(), about()) == ()


def test_a_toggled_option_is_named_exactly():
    (found,) = explain.differences(about(), about(config__fast_math="False"))
    assert found.text == "config.fast_math: True -> False"
    assert (found.part, found.before, found.after) == ("config.fast_math", "True", "False")
    assert not found.lines


def test_an_edited_helper_is_named_with_its_changed_lines_and_not_by_a_digest():
    edited = HELPER.replace("b = v * a\n    return b + y0", "b = v * a * a\n    return b - y0")
    (found,) = explain.differences(about(), about(helper=edited))
    assert found.text == "source of helper `scale` changed, lines 12-13"
    assert (found.part, found.name, found.file, found.line) == ("source", "scale", "/u/k.py", 10)
    assert found.lines == (
        "-12     b = v * a", "-13     return b + y0",
        "+12     b = v * a * a", "+13     return b - y0",
    )  # fmt: skip


def test_the_kernel_itself_is_called_a_kernel():
    assert texts(about(), about(kernel=KERNEL.replace("a)", "a + 1)"))) == [
        "source of kernel `saxpy` changed, line 23"
    ]


def test_lines_have_the_numbers_of_the_files_they_are_in():
    moved = about(helper=HELPER.replace("b = v", "b = 2 * v"))
    moved["sources"][1]["line"] = 110
    (found,) = explain.differences(about(), moved)
    assert [line.partition(" ")[0] for line in found.lines] == ["-12", "+112"]
    assert found.text.endswith("line 112")


def test_a_removed_line_is_reported_by_where_it_was():
    (found,) = explain.differences(about(), about(helper=HELPER.replace("    b = v * a\n", "")))
    assert found.text == "source of helper `scale` changed, line 12 removed"
    assert found.lines == ("-12     b = v * a",)


def test_helpers_come_and_go():
    assert texts(about(helper=""), about()) == ["source of helper `scale` is new"]
    assert texts(about(), about(helper="")) == ["helper `scale` is no longer used"]


def test_helpers_of_one_name_are_distinguished_by_their_files():
    def two(changed):
        made = about()
        made["sources"].append(source("scale", HELPER + changed, 3, "/u/other.py"))
        return made

    (found,) = explain.differences(two(""), two("    pass\n"))
    assert (found.file, found.lines) == ("/u/other.py", ("+7     pass",))


def test_a_captured_constant_is_named_with_both_values():
    changed = about(captures=(("scale", "y0", "int", "4"),))
    (found,) = explain.differences(about(), changed)
    assert found.text == "capture y0 in `scale`: 3 -> 4"
    assert (found.part, found.name, found.before, found.after) == ("capture", "y0", "3", "4")
    assert texts(about(captures=()), about()) == ["capture y0 in `scale` is new: 3"]
    assert texts(about(), about(captures=())) == ["capture y0 in `scale` is no longer read"]


def test_what_was_edited_is_reported_first_and_the_engine_last():
    new = about(
        kernel=KERNEL.replace("a)", "a + 1)"), captures=(("scale", "y0", "int", "4"),),
        config__opt_level="0", engine="0.2.0+cd",
    )  # fmt: skip
    assert [d.part for d in explain.differences(about(), new)] == [
        "source", "capture", "config.opt_level", "engine",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "reported"),
    [
        ("(n: i32, a: ndarray<f32, 1>)", "(n: i32, a: ndarray<f64, 1>)",
         "a: ndarray<f32, 1> -> ndarray<f64, 1>"),
        ("(n: i32)", "(n: i32, k: (x) -> y)", "k: (x) -> y is new"),
        ("(n: i32, k: f32)", "(n: i64)", "n: i32 -> i64, k: f32 is gone"),
        ("(n: i32) -> (f32)", "(n: i32) -> (i32)", "result (f32) -> (i32)"),
        ("(n: i32)", "(n: i32) -> (i32)", "result none -> (i32)"),
        ("(n: i32, k: f32)", "(k: f32, n: i32)", "(n: i32, k: f32) -> (k: f32, n: i32)"),
        ("(n: [i32", "(n: [i64", "(n: [i32 -> (n: [i64"),
        ("0" * 32, "1" * 32, "000000000000 -> 111111111111"),
    ],
)  # fmt: skip
def test_of_a_signature_only_the_parameters_that_differ_are_reported(before, after, reported):
    (found,) = explain.differences(about(signature=before), about(signature=after))
    assert found.text == f"signature: {reported}"
    assert (found.before, found.after) == (before, after)


def test_of_a_machine_only_what_differs_is_reported():
    old, new = "x86-64 Linux, A family 2, features ab", "x86-64 Linux, A family 3, features cd"
    assert texts(about(target=old), about(target=new)) == [
        "target: A family 2 -> A family 3, features ab -> features cd"
    ]


def test_ir_that_differs_without_a_known_reason_is_reported_as_such():
    (found,) = explain.differences(about(), about(ir=digest("other")))
    assert found.part == "ir" and "the source is the same" in found.text
    signature, ir = explain.differences(about(), about(ir=digest("o"), signature="x: f64[:]"))
    assert signature.text == "signature: x: f32[:] -> x: f64[:]"
    assert "may follow" in ir.text


def test_sources_count_where_keys_are_equal():
    """A fastcache key names the kernel's own lines only; helpers are checked on loading."""
    same = about(helper=HELPER.replace("b = v", "b = 2 * v"))
    same["parts"] = about()["parts"]
    assert texts(about(), same) == ["source of helper `scale` changed, line 12"]


def test_parts_may_be_new_or_gone():
    assert texts(about(), about(coverage="kcov")) == ["coverage: new, kcov"]
    assert texts(about(coverage="kcov"), about()) == ["coverage: gone, was kcov"]


def test_the_nearest_entry_is_the_one_with_fewest_differences_and_the_newest_of_equals():
    new = about(config__fast_math="False", config__opt_level="0")
    infos = [
        Info(about(config__opt_level="2"), "far"),
        Info(about(config__opt_level="0"), "near"),
        Info(about(config__fast_math="False"), "older"),
    ]
    found = explain.nearest(infos, new)
    assert found is not None and found.info.key == "near"
    assert [d.text for d in found.differences] == ["config.fast_math: True -> False"]


def test_a_kernel_of_the_same_name_in_another_file_is_another_kernel():
    other = about(kernel=KERNEL.replace("a)", "a + 1)"))
    other["file"] = "/u/other.py"
    assert explain.nearest([Info(other)], about()) is None
    moved = about(config__fast_math="False")
    moved["file"] = "/u/moved.py"
    assert explain.nearest([Info(moved)], about()) is not None


@pytest.mark.parametrize(
    "broken",
    [
        {}, {"parts": None}, {"parts": [1]}, {"sources": "x"}, {"sources": [3, {"name": 4}]},
        {"captures": {"a": 1}}, {"captures": [None, {}]}, {"kernel": 3, "file": None},
    ],
)  # fmt: skip
def test_an_entry_of_another_form_is_taken_as_unknown(broken):
    old = {"kernel": "saxpy", "file": "/u/k.py", **broken}
    assert explain.differences(old, about())
    explain.differences(about(), old)
    explain.nearest([Info(old)], about())


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ((), ""), (("+3 a",), "line 3"), (("-3 a", "+5 b", "+6 c", "+9 d"), "lines 5-6, 9"),
        (tuple(f"+{n} x" for n in range(1, 20, 2)), "lines 1, 3, 5, 7, ..."),
    ],
)  # fmt: skip
def test_spans_of_lines(lines, text):
    assert explain.span_of(lines) == text
