"""Child processes that are kept alive and measured in turns."""

import contextlib
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

CHILDREN = Path(__file__).parents[1] / "children"

# Between two children: idle threads of the last one may spin for a while before they sleep.
PAUSE_S = 0.02


class ChildError(RuntimeError):
    """A child answered with an error, or died."""


# Quadrants reads what earlier programs of the user left in its cache even where it does not use
# it: with tens of megabytes its first call takes four times as long.
_EMPTY = tempfile.TemporaryDirectory(prefix="bench-cache-")


def environment() -> dict[str, str]:
    """The parent's, without options that would steer an engine behind the benchmark's back.

    The caches of the user are not seen.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("QD_")}
    kept.pop("PYTHONPATH", None)
    return kept | {
        "QD_OFFLINE_CACHE": "0",
        "PYTHONDONTWRITEBYTECODE": "",
        "XDG_CACHE_HOME": _EMPTY.name,
    }


class Child:
    """One interpreter running a script of `children/`, answering requests over its pipes."""

    def __init__(self, name: str, python: str, script: str, *arguments: str):
        self.name = name
        self._ended = ""
        # A file, not a pipe: what an engine says there must never block it.
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [python, str(CHILDREN / script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=environment() | {"QD_TIERED": "off"},  # launches of full code are measured
        )

    def ask(self, do: str, **arguments: Any) -> Any:
        """Send a request and wait for its answer. Raises ChildError."""
        if self._ended:
            raise ChildError(self._ended)
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._ended = f"{self.name} ended: {self._last_words()}"
            raise ChildError(self._ended)
        answer = json.loads(line)
        time.sleep(PAUSE_S)
        if "error" in answer:
            raise ChildError(f"{self.name}: {answer['error']}")
        return answer["value"]

    def _last_words(self) -> str:
        self._process.wait(timeout=10)
        self._errors.seek(0)
        return (
            self._errors.read().strip().rpartition("\n")[2]
            or f"exit code {self._process.returncode}"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._errors.close()


def run_once(
    name: str, python: str, script: str, *arguments: str, **variables: str
) -> list[dict[str, Any]]:
    """Run a script that sends answers unasked and ends; all it sent. Raises ChildError.

    variables: of the environment, in addition.
    """
    done = subprocess.run(
        [python, str(CHILDREN / script), *arguments],
        capture_output=True,
        text=True,
        env=environment() | variables,
        timeout=300,
        check=False,
    )
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise ChildError(f"{name} {script} {' '.join(arguments)}: {last}")
    return [json.loads(line) for line in done.stdout.splitlines()]
