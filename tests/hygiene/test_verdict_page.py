"""docs/verdicts.md names the words, numbers and exit codes that the code has, and no others."""

import re
import typing

import pytest
from qd_studio.app import cli
from qd_studio.app.core import format as fmt
from qd_studio.app.core import rules
from qd_studio.app.core.views import flow
from qd_studio.app.worker.protocol import Limits
from qd_studio.engine.inspect import agreement, machine_load, record, verdicts

from tests.hygiene.tree import ROOT

PAGE = (ROOT / "docs" / "verdicts.md").read_text(encoding="utf-8")


def section(title):
    """The text under a heading."""
    return re.split(r"^## ", PAGE.partition(f"## {title}\n")[2], flags=re.MULTILINE)[0]


def rows(title):
    """The cells of the table under a heading, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def words(title):
    return {cells[0].strip("`") for cells in rows(title)}


def documented(struct, field):
    """The words that the description of a field of a record lists."""
    meta = typing.get_type_hints(struct, include_extras=True)[field].__metadata__[0]
    return set(re.findall(r"``(\w+)``", meta.description))


def test_verdicts_and_their_signs():
    assert words("Results") == set(rules.AGREEMENTS)
    for word, sign, _ in rows("Results"):
        assert fmt.GLYPHS[word.strip("`")][0] == sign.strip("`")


def test_checks_and_statuses():
    assert words("The author's check") == documented(record.AgreementRecord, "check")
    assert words("Status of a backend") == documented(record.BackendRecord, "status")


def test_states_of_rules_and_which_fail():
    source = (ROOT / "app" / "core" / "rules.py").read_text(encoding="utf-8")
    assert words("Rules") == {"passed", "failed", "unknown", "not judged", "skipped"}
    for word in words("Rules"):
        assert f'"{word}"' in source
    fails = {cells[0].strip("`") for cells in rows("Rules") if cells[2] == "yes"}
    assert fails == set(rules.FAILING)


def test_exit_codes():
    codes = {value for name, value in vars(cli).items() if name.startswith("EXIT_")}
    assert words("Exit codes") == {*map(str, codes), "128 + n"}
    (row,) = [cells for cells in rows("Rules") if cells[0] == "`not judged`"]
    assert row[2] == f"exit code {cli.EXIT_NOT_JUDGED}"


def test_how_tasks_run():
    assert words("How tasks run") == set(flow._WAYS)


@pytest.mark.parametrize("place", [0, 1])
def test_tolerances(place):
    numbers = [f"{agreement._TOLERANCE[size][place]:g}" for size in (2, 4, 8)]
    (text,) = re.findall(r"The tolerance:.*?\n\n", PAGE, re.DOTALL)
    said = [f"{float(n):g}" for n in re.findall(r"\d+e-\d+", text)]
    assert said[3 * place : 3 * place + 3] == numbers


def test_numbers_of_times():
    text = " ".join(section("Times").split())
    for said in (
        f"more than {machine_load._WAITED:.0%}".replace("%", " %"),
        f"more than {machine_load._SPREAD:g} times as long as the fast tenth",
        f"more than {machine_load._SLOWER:g} times as long as those of the other",
        f"at least {verdicts._LEAST_OF_RUNS:.0%}".replace("%", " %"),
        f"Fewer than {verdicts._BLOCK} launches",
    ):
        assert said in text
    assert f"is stopped after {Limits().launch_s:g} s" in PAGE
    assert f"{fmt._FAR_ULP:,} ulp" in PAGE


def test_metrics_without_noise():
    named = re.search(r"measured once \((.*?)\)", " ".join(PAGE.split()))[1]
    for name in re.findall(r"`(\w+)`", named):
        family = "launch" if name == "host_us" else "compile"
        with pytest.raises(rules.RuleError, match="noise"):
            rules.parse_rule(f"{family}.cpu.{name}>+5%")


def test_rules_on_the_page_can_be_read():
    for rule in re.findall(r"`([a-z_.]+(?:!=|>)[^`]*)`", PAGE):
        rules.parse_rule(rule)


def test_the_page_is_linked():
    for name in ("index.md", "studio.md"):
        assert "(verdicts.md)" in (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert typing.get_type_hints(record.PassRun)["moved"] is int
