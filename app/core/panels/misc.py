"""The panels that are plain lists: options, log, remarks."""

from __future__ import annotations

from collections.abc import Sequence

from ....engine.inspect.record import ConfigEntry, PassRun, Record
from ..lines import LazyLines, Line, table
from ..memo import by_identity

__all__ = ["config_lines", "log_lines", "remark_lines"]


def config_lines(config: tuple[ConfigEntry, ...]) -> list[Line]:
    """A row an option, keyed by name; those that differ from the default stand out."""
    head, lines = table(
        ("option", "value", "default", "from"),
        [
            (
                (e.name, "title" if e.value != e.default else ""),
                (str(e.value), "warn" if e.value != e.default else ""),
                (str(e.default), "dim"),
                (e.origin, "dim"),
            )
            for e in config
        ],
        [e.name for e in config],
        (False,) * 4,
        (44, 28, 28, 10),
    )
    return [head, *lines]


@by_identity(2)
def log_lines(record: Record) -> Sequence[Line]:
    """What user code and the engine wrote."""
    styles = {"stderr": "warn", "engine": "dim"}
    log = record.log
    if not log:
        return [Line((("Nothing was written.", "dim"),))]

    def build(i: int) -> Line:
        x = log[i]
        text = x.text.expandtabs(8)
        return Line(((f"{x.stream:>6} ", "gutter"), (text, styles.get(x.stream, ""))), i, x.text)

    width = 8 + max(len(x.text.expandtabs(8)) for x in log)
    return LazyLines(range(len(log)), build, lambda i: log[i].text, width)


def remark_lines(run: PassRun | None) -> list[Line]:
    """Why the pass did or did not do something, one line a remark, keyed by op."""
    if run is None or not run.remarks:
        return []
    return [Line((("! ", "warn"), (r.text, "")), r.op, r.text) for r in run.remarks]
