"""Ends the process groups of workers when this process is gone, however it went.

A worker ends by itself when its pipe from the studio closes, but not while native code holds the
interpreter, and not what the user's file started. So a small shell, which nothing can make busy,
keeps the list of groups and kills what is left when its own pipe closes: the system closes it even
where this process was killed. `kill_all` does the same from here, for an end in a hurry.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from typing import Final

__all__ = ["forget", "kill_all", "protect"]

# Each line is the whole list; what counts is the last one before the pipe closes.
_SCRIPT: Final = """\
groups=
while read -r line; do groups=$line; done
for group in $groups; do kill -KILL "-$group"; done
"""
_lock: Final = threading.Lock()
_groups: Final = set[int]()
_shell: subprocess.Popen[bytes] | None = None


def protect(group: int) -> None:
    """Kill this process group at the latest when this process ends."""
    with _lock:
        _groups.add(group)
        _send_list()


def forget(group: int) -> None:
    """The group is over. To be called before its leader is waited for: after that, the number may
    be that of another group."""
    with _lock:
        _groups.discard(group)
        _send_list()


def kill_all() -> None:
    """End all protected groups now."""
    # Without the lock if it is held: who holds it may be what does not end.
    held = _lock.acquire(timeout=0.1)
    try:
        for group in tuple(_groups):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
    finally:
        if held:
            _lock.release()


def _send_list() -> None:
    """Give the shell the list. Without one (none can be started), workers end by themselves."""
    global _shell
    line = " ".join(map(str, sorted(_groups))).encode() + b"\n"
    for _ in range(2):
        if _shell is None:
            _shell = _start()
        if _shell is None or _shell.stdin is None:
            return
        try:
            os.write(_shell.stdin.fileno(), line)
            return
        except OSError:  # another process ended it
            _shell.stdin.close()
            _shell.wait()
            _shell = None


def _start() -> subprocess.Popen[bytes] | None:
    with contextlib.suppress(OSError):
        return subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd="/",
            # Signals for the studio's group, as when a terminal closes, are not for it.
            start_new_session=True,
        )  # fmt: skip
    return None
