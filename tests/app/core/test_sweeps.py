"""Sweeps: the order of visits, verdicts over rounds, the best value; and options as forms."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from qd_studio.app.core.forms import accepts, stepped, sweep_values
from qd_studio.app.core.lines import plain
from qd_studio.app.core.sweeps import (
    paste_line,
    plot_svg,
    reference_first,
    sweep_lines,
    sweep_of,
    visits,
)
from qd_studio.engine import inspect
from qd_studio.engine.inspect.record_launch import EarlierRecord

from tests.inspect.test_compare import BUSY, timed

INFOS = {info.name: info for info in inspect.options()}


def sweep(*rounds, option="fast_math", values=(True, False)):
    return sweep_of(option, values, rounds, "scale.py:scale", "cpu")


def test_every_other_round_goes_backwards_and_the_present_value_is_first():
    assert visits([1, 2, 3], 3) == [[1, 2, 3], [1, 3, 2], [1, 2, 3]]
    assert reference_first([2, 4], 8) == [8, 2, 4] and reference_first([2, 4], 4) == [4, 2]


def test_a_value_that_is_better_in_every_round_wins():
    found = sweep((timed(100), timed(80, text="a")), (timed(101), timed(81, text="a")))
    assert [p.verdict for p in found.points] == ["reference", "better"] and found.winner == 1
    assert paste_line(found) == "qd.init(fast_math=False)"
    text = plain(sweep_lines(found))
    assert "0.80x" in text and "best: qd.init(fast_math=False)" in text
    ascii_text = plain(sweep_lines(found, ascii_only=True))
    assert "###" in ascii_text and "▇" not in ascii_text
    svg = plot_svg(found)
    assert svg.count("<path fill=") == 2 and "80.0 us, 0.80x, better" in svg


def in_turns(record, before, after):
    """The record, its launches made in turns with those of the reference."""
    (kernel,) = record.kernels
    cpu, *others = kernel.backends
    found = EarlierRecord(
        stamp="reference", before_us=before, after_us=after, n=60, ratio=after / before * 1.001,
        band=0.02, verdict="slower", clock="wall clock",
    )  # fmt: skip
    launch = replace(cpu.launches[0], earlier=found, stamp="")
    cpu = replace(cpu, launches=(launch,))
    return replace(record, kernels=(replace(kernel, backends=(cpu, *others)),))


def test_the_ratio_is_that_of_the_times_that_are_shown():
    (kernel,) = timed(5.44).kernels
    launch = replace(kernel.backends[0].launches[0], stamp="reference")
    cpu = replace(kernel.backends[0], launches=(launch,))
    first = replace(timed(5.44), kernels=(replace(kernel, backends=(cpu, *kernel.backends[1:])),))
    value = timed(6.46, text="a")
    found = sweep((first, in_turns(value, 4.0, 6.0)), (first, in_turns(value, 4.5, 6.3)))
    point = found.points[1]
    assert (point.reference_us, point.us, point.verdict) == (4.5, 6.3, "worse")
    assert point.ratio == point.us / point.reference_us
    row = next(x for x in plain(sweep_lines(found, 120)).splitlines() if x.startswith("False"))
    assert "4.50 us -> 6.30 us" in row and "1.40x" in row
    assert "6.30 us, 1.40x, worse" in plot_svg(found)


@pytest.mark.parametrize(
    ("second", "verdict", "words"),
    [
        (timed(99, text="a"), "within noise", "No value is better"),
        (timed(80, BUSY, "a"), "unknown", "1 could not be judged"),
    ],
)
def test_one_round_is_not_enough(second, verdict, words):
    found = sweep((timed(100), timed(80, text="a")), (timed(100), second))
    assert (found.points[1].verdict, found.winner) == (verdict, 0)
    assert words in plain(sweep_lines(found))


def test_a_wrong_result_does_not_win():
    wrong = timed(50, text="a")
    (kernel,) = wrong.kernels
    agreement = replace(kernel.backends[0].agreement, state="differs")
    cpu = replace(kernel.backends[0], agreement=agreement)
    wrong = replace(wrong, kernels=(replace(kernel, backends=(cpu, *kernel.backends[1:])),))
    found = sweep((timed(100), wrong))
    assert (found.points[1].verdict, found.points[1].agreement) == ("better", "differs")
    assert found.winner == 0


def test_equal_code_and_failed_values_are_stated():
    same = plain(sweep_lines(sweep((timed(100), timed(80)))))
    assert "The code is the same for every value" in same
    empty = replace(timed(80), kernels=())
    text = plain(sweep_lines(sweep((timed(100), empty))))
    assert "False: the kernel was not found" in text and "not launched" in text


def test_a_block_size_is_a_line_for_a_loop():
    found = sweep(
        (timed(100), timed(80, text="a")), option="default_gpu_block_dim", values=(128, 256)
    )
    assert paste_line(found).startswith("qd.loop_config(block_dim=256) ")


@pytest.mark.parametrize(
    ("name", "value", "step", "new"),
    [
        ("fast_math", True, 1, False),
        ("default_fp", "f64", 1, "f16"),
        ("default_fp", "f16", -1, "f64"),
        ("unrolling_limit", 32, 1, 64),
        ("unrolling_limit", 0, 1, 1),
        ("unrolling_limit", 0, -1, 0),
        ("default_cpu_block_dim", 1, -1, 1),
    ],
)
def test_the_next_value_is_one_that_the_option_accepts(name, value, step, new):
    assert stepped(INFOS[name], value, step) == new
    assert inspect.parse_setting(f"{name}={new}")


def test_forms_say_what_they_accept_and_what_a_sweep_tries():
    assert accepts(INFOS["fast_math"]) == "on or off"
    assert accepts(INFOS["default_fp"]) == "one of f16, f32, f64"
    assert accepts(INFOS["default_cpu_block_dim"]) == "integer from 1"
    assert accepts(INFOS["validate_autodiff"]) == "has no effect here"
    assert sweep_values(INFOS["default_fp"], "f64") == ["f64", "f16", "f32"]
    values = sweep_values(INFOS["default_cpu_block_dim"], 32)
    assert values[0] == 32 and set(values) == {2, 4, 8, 16, 32, 64, 128, 256, 512}
    with pytest.raises(ValueError, match="is text"):
        sweep_values(INFOS["require_version"], "")


@pytest.mark.parametrize("info", INFOS.values(), ids=lambda info: info.name)
def test_every_option_has_a_form(info):
    assert accepts(info)
    if info.works and (info.type != "str" or info.choices):
        for value in sweep_values(info, info.default):
            assert inspect.parse_setting(f"{info.name}={value}")[1] == value
