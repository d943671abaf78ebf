"""``qd-studio check`` of a recorded application: its kernels, without the program."""

from __future__ import annotations

import msgspec

from ...engine.inspect.checking.recorded import check_application
from ...engine.inspect.record import CheckRecord
from .. import progress, streams
from ..core.lines import plain
from ..core.views.checks import check_lines, counts
from ..core.visible import json_text
from ..usage import EXIT_FAILED, EXIT_OK, EXIT_USAGE, Failure
from .show import read

__all__ = ["check"]


def check(path: str, kernel: str | None, *, as_json: bool) -> int:
    """Check the kernels of the record in a file, or one of them; return the exit code."""
    file = read(path)
    names = [kernel] if kernel else []
    known = {name for one in file.about.kernels for name in (one.name, one.qualname)}
    if kernel and kernel not in known:
        raise Failure(EXIT_USAGE, f"check: the record has no kernel {kernel!r}")
    found: list[tuple[str, CheckRecord]] = []
    with progress.line() as line:
        for one in check_application(
            file, names, lambda text, done, total: line.counted(text, done, total, "kernel")
        ):
            kind = f" for {', '.join(one.specialization)}" if one.specialization else ""
            found.append((f"{one.place} {one.kernel}{kind}", one.check))
    if as_json:
        values = [{"kernel": name, "check": msgspec.to_builtins(one)} for name, one in found]
        streams.write(json_text(values), True)
    else:
        streams.write("\n".join(f"== {name}\n{plain(check_lines(c))}" for name, c in found))
    checks = [verdicts for _, verdicts in found]
    streams.talk_line(f"{len(checks)} compiled kernels: {counts(checks)}")
    fault = any(v.outcome == "fault" for one in checks for v in one.verdicts)
    return EXIT_FAILED if fault else EXIT_OK
