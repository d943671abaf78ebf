"""Programs that run in processes of their own, over a cache directory that they share.

    runs = Runs(tmp_path)
    runs.write(PROGRAM)
    first = runs.run()          # {"result": ..., "kernels": {...}, ...} as a `Run`
    second = runs.run()
    assert second.of("scale").loaded

A program is the text of a module that says ``import quadrants as qd`` and has a function ``main``,
whose result must be fit for JSON. It is written to a file, so that its source can be read and
edited between runs.

Where processes can fork, `fork_server` saves each of them the import of the engine. Runs alternate
between two servers, which hash texts differently: no key may depend on the order of a set.
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("two_runs_child.py")
OPTIONS = "QD_"
TIMEOUT_S = 120


@dataclass
class Seen:
    """What one kernel of a program reports about its last compile.

    layers: layer -> (state, source, reason, key, parts, stored), as the engine observed it.
    """

    key_generated: bool
    validated: bool
    loaded: bool
    stored: bool
    frontend_hit: bool
    found_materialized: bool
    counts: dict[str, int]
    layers: dict[str, dict[str, Any]]

    @property
    def fresh(self) -> bool:
        """Compiled and written to the fastcache."""
        return self.key_generated and self.stored and not (self.validated or self.loaded)

    def state(self, layer: str) -> str:
        return self.layers[layer]["state"]


@dataclass
class Run:
    """What a program did.

    result: of its ``main``; None if that raised. error: the classes of what it raised.
    """

    result: Any
    error: str
    message: str
    warnings: list[str]
    kernels: dict[str, Seen]
    modules: set[str]
    stdout: str
    stderr: str
    passes: int
    parses: int

    def of(self, kernel: str) -> Seen:
        return self.kernels[kernel]

    @property
    def ran_frontend(self) -> bool:
        return "qd_studio.engine.frontend.func_builder" in self.modules

    @property
    def ran_llvm(self) -> bool:
        return "qd_studio.engine.backends.llvm.library" in self.modules

    @property
    def ran_passes(self) -> bool:
        return self.passes > 0


class Server:
    """A module that is a `fork_server`, and its children, which are a process group."""

    def __init__(self, module: str, hash_seed: int = 0) -> None:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(OPTIONS)}
        clean["QD_TIERED"] = "0"  # entries are written at the call
        self._process = subprocess.Popen(
            [sys.executable, "-m", module], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
            env={**clean, "PYTHONHASHSEED": str(hash_seed), "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        atexit.register(self.end)

    def run(self, **request: Any) -> int:
        """The exit status of the program of a request.

        Raises:
            TimeoutError: It does not end. It and the server are then ended.
        """
        pipes = self._process.stdin, self._process.stdout
        assert pipes[0] is not None and pipes[1] is not None
        print(json.dumps(request), file=pipes[0], flush=True)
        if not select.select([pipes[1]], [], [], TIMEOUT_S)[0]:
            self.end()
            raise TimeoutError(f"{request['path']} did not end within {TIMEOUT_S} s")
        return int(pipes[1].readline())

    def end(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        server.cache_clear()


server = cache(Server)
_turns = itertools.count()


@dataclass
class Runs:
    """A folder for programs and the cache directory that they share."""

    folder: Path
    name: str = "program"
    env: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        """What XDG_CACHE_HOME is for the programs."""
        return self.folder / "cache"

    @property
    def path(self) -> Path:
        return self.folder / f"{self.name}.py"

    def write(self, text: str, name: str | None = None) -> Path:
        """Write a program, or a module beside it."""
        path = self.path if name is None else self.folder / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        return path

    def edit(self, old: str, new: str, name: str | None = None) -> None:
        """Change a text of a program, which must be there."""
        path = self.path if name is None else self.folder / f"{name}.py"
        text = path.read_text(encoding="utf-8")
        assert old in text, f"nothing to edit: {old!r}"
        self.write(text.replace(old, new), name)

    def command(self) -> list[str]:
        return [sys.executable, "-B", str(CHILD), str(self.path)]

    def environment(self, **env: str) -> dict[str, str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(OPTIONS)}
        clean["QD_TIERED"] = "0"  # entries are written at the call
        return {**clean, "XDG_CACHE_HOME": str(self.home), "OMP_NUM_THREADS": "1",
                **self.env, **env}  # fmt: skip

    def run(self, error: str = "", **env: str) -> Run:
        """Run the program in a new process. Fails if it dies, or raises not what it should.

        error: the class of the exception that ``main`` raises, or one that it derives from.
        """
        run = read(self._process(self.environment(**env)))
        as_expected = error in run.error.split() if error else not run.error
        assert as_expected, f"{run.error}: {run.message}\n{run.stderr}"
        return run

    def _process(self, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """Run the program in a new process, to its end."""
        if not hasattr(os, "fork"):
            return subprocess.run(
                self.command(), env=env, capture_output=True, text=True, timeout=TIMEOUT_S,
                cwd=self.folder,
            )  # fmt: skip
        out, err = self.folder / "stdout.txt", self.folder / "stderr.txt"
        status = server("tests.caches.fork_server", next(_turns) % 2).run(
            path=str(self.path), cwd=str(self.folder), env=env, out=str(out), err=str(err)
        )
        texts = [path.read_text(encoding="utf-8") for path in (out, err)]
        return subprocess.CompletedProcess((), status, *texts)

    def files(self, layer: str = "") -> list[Path]:
        """The entries on disk, of one layer or all."""
        root = self.home / "qd-studio" / "qdcache" / layer
        return sorted(path for path in root.rglob("*") if path.is_file())


def read(done: subprocess.CompletedProcess[str]) -> Run:
    """What a finished child says."""
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    *printed, last = done.stdout.splitlines()
    reported = json.loads(last)
    kernels = {name: Seen(**seen) for name, seen in reported.pop("kernels").items()}
    modules = set(reported.pop("modules"))
    return Run(
        **reported, kernels=kernels, modules=modules, stdout="\n".join(printed), stderr=done.stderr
    )
