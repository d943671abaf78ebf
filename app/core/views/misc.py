"""The panels that are plain lists: log, remarks."""

from __future__ import annotations

from collections.abc import Sequence

from ....engine.inspect.record import ConfigEntry, PassRun, Record
from ..lines import LazyLines, Line
from ..memo import by_identity

__all__ = ["config_of", "log_lines", "options_by_file", "options_of", "remark_lines"]


def config_of(record: Record, kernel: str) -> tuple[ConfigEntry, ...]:
    """All options that the kernel of this id was compiled with."""
    path = next((k.file for k in record.kernels if k.id == kernel), "")
    own = next((f.config for f in record.files if f.path == path), ())
    return own or record.config


def options_of(record: Record, path: str) -> tuple[ConfigEntry, ...]:
    """The options that the kernels of a file were compiled with, other than the defaults."""
    file = next((f for f in record.files if f.path == path), None)
    entries = file.config if file is not None and file.config else record.config
    if any(f.config for f in record.files) and (file is None or not file.config):
        entries = ()
    return tuple(e for e in entries if e.origin != "default" and e.value != e.default)


def options_by_file(record: Record) -> list[tuple[str, tuple[ConfigEntry, ...]]]:
    """(file, its options other than the defaults); one entry without a name where all files have
    the same, none where these are the defaults."""
    from ..session import labels_of

    paths = [f.path for f in record.files if f.config]
    paths = paths or list(dict.fromkeys(k.file for k in record.kernels)) or [""]
    found = {path: options_of(record, path) for path in paths}
    if len(set(found.values())) == 1:
        entries = found[paths[0]]
        return [("", entries)] if entries else []
    labels = labels_of(paths)
    return [(labels[path], entries) for path, entries in found.items()]


@by_identity(2)
def log_lines(record: Record) -> Sequence[Line]:
    """The output of user code and of the engine."""
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
    """The remarks of a pass (why it did or did not do something), a line each, keyed by op."""
    if run is None or not run.remarks:
        return []
    return [Line((("! ", "warn"), (r.text, "")), r.op, r.text) for r in run.remarks]
