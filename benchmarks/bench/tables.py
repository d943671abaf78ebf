"""Sections as text for the terminal, and the whole run as Markdown."""

from collections.abc import Sequence

from .model import Section


def cell(value: str | float | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def text_table(section: Section) -> str:
    """Columns aligned with spaces: names to the left, numbers to the right."""
    rows = [list(section.columns), *([cell(value) for value in row] for row in section.rows)]
    widths = [max(len(row[c]) for row in rows) for c in range(len(section.columns))]
    lines = [
        "  ".join(
            text.rjust(width) if column else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def text_section(section: Section) -> str:
    parts = [f"== {section.title}", text_table(section)]
    parts += [f"   {note}" for note in section.notes]
    parts += [f" * {target.claim}: {target.verdict()}" for target in section.targets]
    return "\n".join(parts) + "\n"


def markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |"


def markdown_section(section: Section) -> str:
    rule = ["---", *("---:" for _ in section.columns[1:])]
    lines = [f"## {section.title}", "", markdown_row(section.columns), markdown_row(rule)]
    lines += [markdown_row([cell(value) for value in row]) for row in section.rows]
    if section.notes:
        lines += ["", *(f"- {note}" for note in section.notes)]
    return "\n".join(lines) + "\n"


REASONS = "## Why the missed ones are missed"


def reasons_in(page: str) -> str:
    """The hand-written part of an earlier page, which a new run keeps."""
    _, found, rest = page.partition(REASONS + "\n")
    return rest.partition("\n## ")[0].strip() if found else ""


def markdown(facts: dict[str, str], sections: Sequence[Section], reasons: str = "") -> str:
    """The whole run: where and when, the verdict on every target, why, then the tables."""
    head = ["# Benchmark results", "", "Written by `benchmarks/run.py --markdown`.", ""]
    head += [f"- {name}: {value}" for name, value in facts.items()]
    head += ["", "## Targets", "", markdown_row(["target", "outcome"]), markdown_row(["---"] * 2)]
    head += [
        markdown_row([target.claim, target.verdict()])
        for section in sections
        for target in section.targets
    ]
    head += ["", REASONS, "", reasons or "Nothing is noted.", ""]
    return "\n".join([*head, *(markdown_section(section) for section in sections)])
