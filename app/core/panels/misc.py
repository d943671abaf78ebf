"""The panels that are plain lists: caches, options, log, remarks."""

from __future__ import annotations

from collections.abc import Sequence

from ....engine.inspect.record import ConfigEntry, KernelRecord, PassRun, Record
from .. import format as fmt
from ..lines import LazyLines, Line, table
from ..memo import by_identity

__all__ = ["cache_lines", "config_lines", "log_lines", "remark_lines"]


def cache_lines(kernel: KernelRecord, ascii_only: bool = False) -> list[Line]:
    """A row a backend and layer: state and reason."""
    rows = [(b.backend, layer) for b in kernel.backends for layer in b.caches]
    if not rows:
        return [Line((("No cache was looked at.", "dim"),))]
    head, lines = table(
        ("backend", "layer", "", "state", "reason"),
        [
            (
                (name, "accent"), (x.name, ""), (fmt.GLYPHS[x.state][ascii_only], ""),
                (x.state.replace("_", " "), "ok" if x.state == "hit" else ""), (x.reason, "dim"),
            )
            for name, x in rows
        ],
        [x.name for _, x in rows],
        (False,) * 5,
        (10, 14, 2, 16, 100),
    )  # fmt: skip
    return [head, *lines]


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
