"""The parts of the benchmark harness that decide what a number means. No time is measured here."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from bench import caches, child, compare, fifty, generated, gpu, tables, terminal  # noqa: E402
from bench.model import Section, Target, geometric_mean, paired_ratio  # noqa: E402
from bench.steady import agree  # noqa: E402


def test_a_target_says_by_how_much_it_was_missed():
    assert Target("launch", 4.0, 3.5, " us").verdict() == "reached: 3.5 us, limit 4 us"
    assert Target("launch", 4.0, 4.0).reached
    assert Target("launch", 4.0, 5.0, " us").verdict() == "missed by 25 %: 5 us, limit 4 us"
    assert Target("launch", 4.0, None).verdict() == "not measured"
    assert not Target("launch", 4.0, None).reached


def test_paired_ratio_cancels_drift():
    """The machine got three times slower half way; the quotient within a round did not."""
    others = [1.0, 1.0, 3.0, 3.0, 3.0]
    assert paired_ratio([2 * t for t in others], others) == 2.0
    assert paired_ratio([], others) is None


def test_geometric_mean_of_a_ratio_and_its_inverse():
    assert geometric_mean([4.0, 0.25]) == pytest.approx(1.0)
    assert geometric_mean([]) is None


def test_results_are_compared_by_scale():
    assert agree([1e-9, 100.0, 5.0], [0.0, 100.1, 5.001])
    assert not agree([10.0, 100.0, 5.0], [0.0, 100.0, 5.0])
    assert not agree([float("nan")] * 3, [1.0, 2.0, 3.0])


def test_tables_align_and_mark_what_is_absent():
    section = Section("T", ["kernel", "ms"], [["saxpy", 1.25], ["a|b", None]])
    assert tables.text_table(section).splitlines() == [
        "kernel    ms", "------  ----", "saxpy   1.25", "a|b        -",
    ]  # fmt: skip
    assert "| a\\|b | - |" in tables.markdown_section(section)


def test_a_new_page_keeps_the_reasons():
    section = Section("T", ["kernel"], [["saxpy"]], targets=[Target("fast", 1.0, 2.0)])
    first = tables.markdown({"date": "today"}, [section], "It is early.\n\n- Very early.")
    again = tables.markdown({"date": "later"}, [section], tables.reasons_in(first))
    assert "It is early.\n\n- Very early." in again
    assert again == first.replace("today", "later")
    assert tables.reasons_in("# No such heading\n") == ""


@pytest.mark.parametrize("statements", [11, 500, 5000])
def test_generated_kernels_have_the_wanted_size(statements):
    tree = ast.parse(generated.kernel_source(statements, marker=7.25))
    (kernel,) = [n for n in tree.body if getattr(n, "name", "") == "generated"]
    found = sum(isinstance(node, ast.stmt) for node in ast.walk(kernel)) - 2  # def and outer for
    assert abs(found - statements) <= 8
    assert "x[i] + 7.25" in ast.unparse(kernel)


@pytest.mark.parametrize("fastcache", [False, True])
def test_fifty_kernels_read_alike_but_for_the_import(fastcache):
    ours, reference = (fifty.kernels_text(e, fastcache) for e in ("ours", "reference"))
    assert ours.replace(fifty.IMPORTS["ours"], fifty.IMPORTS["reference"]) == reference
    kernels = [n for n in ast.parse(ours).body if isinstance(n, ast.FunctionDef)]
    assert len({ast.unparse(kernel.body) for kernel in kernels}) == fifty.COUNT
    assert ours.count("fastcache=True") == fifty.COUNT * fastcache


ENGINE = """
import numpy

cpu = f32 = 0

def init(**options): pass

sync = init

class ndarray:
    def __init__(self, dtype, shape):
        self.to_numpy = lambda: numpy.ones(shape)
"""


def test_a_run_states_where_its_time_went(tmp_path):
    """The program of the harness, with an engine of a few lines in the place of a real one."""
    main = tmp_path / "main.py"
    text = fifty.MAIN.format(engine="import engine as qd", cells=4)
    main.write_text(text)
    (tmp_path / "kernels.py").write_text("CALLS = [lambda x, y, m: 1.5] * 3\nKERNELS = []\n")
    (tmp_path / "engine.py").write_text(ENGINE)
    found = caches.run(sys.executable, main, tmp_path)
    assert found.results == [1.5] * 3 + [4.0] * 6 + [256.0] * 3
    assert len(found.calls) == 3 and sum(found.calls) == pytest.approx(found.parts["calls"])
    assert sum(found.parts.values()) == pytest.approx(found.ms)
    main.write_text("raise SystemExit('no such engine')")
    with pytest.raises(child.ChildError, match="no such engine"):
        caches.run(sys.executable, main, tmp_path)


def test_painted_text_is_free_of_escapes():
    painted = b"\x1b[?1049h\x1b[1;31mred\x1b[0m\x1b]0;title\x07\x1bP+q\x1b\\\xe2\x94\x82end"
    assert terminal.Terminal.text_of(painted).split() == ["red", "│end"]


def test_a_dead_child_says_its_last_words(tmp_path, monkeypatch):
    (tmp_path / "dies.py").write_text("raise SystemExit('no such engine')\n")
    monkeypatch.setattr(child, "CHILDREN", tmp_path)
    with child.Child("x", sys.executable, "dies.py") as dying:
        for _ in range(2):
            with pytest.raises(child.ChildError, match="x ended: no such engine"):
                dying.ask("prepare", case="saxpy")
    with pytest.raises(child.ChildError, match="no such engine"):
        child.run_once("x", sys.executable, "dies.py")


def test_children_answer_over_their_own_pipe(tmp_path, monkeypatch):
    """What an engine prints does not get between the answers, and an error is an answer."""
    script = (BENCHMARKS / "children" / "wire.py").read_text()
    (tmp_path / "wire.py").write_text(script)
    (tmp_path / "adds.py").write_text(
        "from wire import Wire\nwire = Wire()\nprint('banner')\n"
        "wire.serve({'add': lambda a, b: a + b})\n"
    )
    monkeypatch.setattr(child, "CHILDREN", tmp_path)
    with child.Child("adder", sys.executable, "adds.py") as adder:
        assert adder.ask("add", a=2, b=3) == 5
        with pytest.raises(child.ChildError, match="TypeError"):
            adder.ask("add", a=2, b="x")
        assert adder.ask("add", a=1, b=1) == 2


def test_results_of_the_two_engines_are_compared_element_by_element():
    x = np.linspace(0, 1, 8, dtype=np.float32)
    off = x.copy()
    off[3] += 5e-3
    same, wrong, shape, missing = compare.differences(
        "smoke",
        {"a": x + 1e-6, "b": off, "c": x, "d": x},
        {"a": x, "b": x, "c": x[:4]},
    )
    assert same.text == "" and same.worst < 2e-6
    assert "12.50% differ, most at [3]" in wrong.text
    assert "reference float32(4,)" in shape.text
    assert missing.text == "only this engine has it"
    gone = compare.differences("smoke", {"a": np.array([np.nan])}, {"a": np.array([1.0])})
    assert gone[0].text


def test_few_pixels_may_be_on_the_other_side_of_an_edge():
    picture = np.ones((100, 100))
    other = picture.copy()
    other[5, :5] = 0
    assert compare.differences("raymarch", {"p": other}, {"p": picture})[0].text == ""
    other[5, :50] = 0
    assert compare.differences("raymarch", {"p": other}, {"p": picture})[0].text


def test_without_the_reference_there_is_a_reason_and_no_failure():
    command = [sys.executable, str(BENCHMARKS / "compare_reference.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("skipped: no interpreter")
    assert compare.why_not("/nowhere/python").startswith("/nowhere/python cannot be run")
    assert compare.why_not(sys.executable).endswith("has no quadrants")


def test_the_gpu_benchmark_runs_all_its_cases():
    """On a CPU, with tiny sizes."""
    with child.Child("ours", sys.executable, "run_gpu.py", "ours", "cpu") as ours:
        section = gpu.shares({"ours": ours}, "cpu", gpu.SMALL)
        assert ours.ask("loop", how="host", cells=10, rounds=5) > 0
    assert [row[0] for row in section.rows] == [case.title for case in gpu.CASES]
    assert all(isinstance(row[2], float) and row[2] > 0 for row in section.rows)
    assert len(section.notes) == 1
