"""Run one program for Taichi, on Taichi or on this engine, and save what its fields hold.

    PYTHON taichi_example.py ours|reference PROGRAM OUT.json FIELDS.npz FRAMES plain|compare|single

Windows are stand-ins that close after FRAMES frames. OUT.json gets the error, if there is one, and
the times of the frames since the start. With ``compare`` the program computes in f64, on one thread
and with random numbers that both engines make in the same way, and FIELDS.npz gets every field,
array and number that the program's modules, objects and open functions hold at the end. ``single``
is the same without f64.
"""

import importlib.util
import json
import os
import random
import sys
import time
import traceback
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BEGAN = time.perf_counter()
WINDOWS = Path(__file__).parents[2] / "engine" / "windows.py"
LARGEST = 1 << 20
DEPTH = 4
_KEPT = ("main", "<module>")
OF_LIST = 40


def language(engine: str) -> Any:
    """The module that programs import as taichi, and the stand-ins for its windows."""
    if engine == "ours":
        from qd_studio import engine as ours
        from qd_studio.engine import alias, windows

        alias.install("taichi")
        windows.install()
        return ours, windows
    import taichi

    # The same stand-ins as on this engine; the file needs nothing else of it.
    spec = importlib.util.spec_from_file_location("stand_in_windows", WINDOWS)
    assert spec and spec.loader
    windows = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(windows)
    windows.install("taichi", ("taichi",))
    return taichi, windows


def replace_init(ti: Any, compare: bool, double: bool) -> None:
    """Make every program start on the CPU without caches; for comparisons exact and repeatable."""
    init = ti.init

    def replaced(*_: Any, **options: Any) -> Any:
        options = {k: v for k, v in options.items() if k in ("default_ip", "debug")}
        options |= {"arch": ti.cpu, "offline_cache": False, "random_seed": 0}
        if compare:
            options |= {"fast_math": False, "cpu_max_num_threads": 1}
            options |= {"default_fp": ti.f64} if double else {}
        result = init(**options)
        if compare:
            ti.random, ti.randn = counted_random(ti)
        return result

    ti.init = replaced
    for name in ("f32", "float32") if double else ():
        setattr(ti, name, ti.f64)
    if compare:
        clock = iter(range(1 << 60))
        time.time = lambda: 1e9 + next(clock) / 64
        time.time_ns = lambda: 10**18 + next(clock) * 10**7


def counted_random(ti: Any) -> tuple[Any, Any]:
    """Replacements of ``ti.random`` and ``ti.randn``: functions of the number of calls so far."""
    count = ti.field(ti.i32, shape=())

    @ti.func
    def counted(dtype: ti.template() = float):  # type: ignore[valid-type]
        n = ti.atomic_add(count[None], 1)
        n = (n ^ (n >> 15)) * 739982445
        n = (n ^ (n >> 12)) * 695872825
        n = (n ^ (n >> 15)) & 0x3FFFFFFF
        return ti.cast(n, ti.f64) / 1073741824.0

    @ti.func
    def normal(dtype: ti.template() = float):  # type: ignore[valid-type]
        one = counted()
        other = counted()
        return ti.sqrt(-2.0 * ti.log(1.0 - one)) * ti.cos(6.283185307179586 * other)

    return counted, normal


class Anything(types.ModuleType):
    """Stands for a library of plots that is not installed: whatever is asked of it does nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name)

    def __call__(self, *_: Any, **__: Any) -> Any:
        return Anything("result")

    def __array__(self, *_: Any, **__: Any) -> Any:
        import numpy as np

        return np.zeros((2, 2, 4))

    def __getitem__(self, _: Any) -> Any:
        return Anything("item")

    def __iter__(self) -> Iterator[Any]:
        return iter((Anything("one"), Anything("other")))


def replace_plots() -> None:
    """Put `Anything` in the place of matplotlib where that is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        for name in ("matplotlib", "mpl_toolkits"):
            sys.modules[name] = Anything(name)
        for name in ("matplotlib.pyplot", "matplotlib.cm", "mpl_toolkits.mplot3d"):
            sys.modules[name] = Anything(name)


class Snapshot:
    """The values that a program holds, by name."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.values: dict[str, Any] = {}

    def of_stack(self) -> None:
        """Values of all functions of the program that are running, and of its modules."""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename.startswith(self.folder):
                self.of_frame(frame)
            frame = frame.f_back

    def of_frame(self, frame: Any) -> None:
        inside = frame.f_code.co_name
        prefix = "" if inside == "<module>" else f"{inside}."
        for holder, start in ((frame.f_locals, prefix), (frame.f_globals, "")):
            for name, value in list(holder.items()):
                if not name.startswith("__"):
                    self.add(start + name, value, DEPTH)

    def add(self, name: str, value: Any, depth: int) -> None:
        import numpy as np

        if depth == 0 or name in self.values or isinstance(value, type | types.ModuleType):
            return
        if isinstance(value, np.ndarray):
            found = value
        elif hasattr(value, "to_numpy") and not callable(value):
            try:
                found = value.to_numpy()
            except Exception:
                return
            if isinstance(found, dict):
                for key, inner in found.items():
                    self.add(f"{name}.{key}", inner, depth)
                return
        else:
            for inner_name, inner in self.inside(name, value):
                self.add(inner_name, inner, depth - 1)
            return
        if getattr(found, "dtype", None) is not None and found.dtype.kind in "fiub":
            flat = np.asarray(found).reshape(-1)
            self.values[name] = flat[:: max(1, len(flat) // LARGEST)].astype(np.float64)

    def inside(self, name: str, value: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(value, list | tuple):
            yield from ((f"{name}.{i}", inner) for i, inner in enumerate(value[:OF_LIST]))
        elif isinstance(value, dict):
            yield from ((f"{name}.{key}", inner) for key, inner in list(value.items())[:OF_LIST])
        else:
            module = sys.modules.get(type(value).__module__)
            file = getattr(module, "__file__", None) or ""
            if file.startswith(self.folder) and hasattr(value, "__dict__"):
                for key, inner in list(vars(value).items()):
                    yield f"{name}.{key}", inner


def main(engine: str, program: str, out: str, fields: str, frames: str, mode: str) -> None:
    compare = mode != "plain"
    ti, windows = language(engine)
    replace_init(ti, compare, double=mode == "compare")
    replace_plots()
    random.seed(0)
    folder = os.path.dirname(program)
    sys.argv = [program]
    sys.path.insert(0, folder)
    # The examples import each other as parts of the package that the alias hides.
    sys.path.append(program.partition(f"{os.sep}taichi{os.sep}examples{os.sep}")[0])
    import numpy as np

    np.random.seed(0)
    snapshot, times = Snapshot(folder), []

    def shown(count: int) -> None:
        times.append(time.perf_counter() - BEGAN)
        if compare and count == int(frames):
            snapshot.of_stack()

    def returned(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "return" and code.co_filename == program and code.co_name in _KEPT:
            snapshot.of_frame(frame)

    windows.begin(int(frames), shown)
    module = types.ModuleType("__main__")
    module.__file__ = program
    sys.modules["__main__"] = module
    error = ""
    try:
        code = compile(Path(program).read_bytes(), program, "exec", dont_inherit=True)
        if compare:
            sys.setprofile(returned)
        exec(code, module.__dict__)
    except windows.WindowsClosed:
        pass
    except SystemExit as exit:
        error = f"SystemExit: {exit.code}" if exit.code else ""
    except BaseException as caught:
        error = f"{type(caught).__name__}: {caught}"
        traceback.print_exc()
    sys.setprofile(None)
    ended = time.perf_counter() - BEGAN
    np.savez(fields, **{name.replace("/", "_"): v for name, v in snapshot.values.items()})
    Path(out).write_text(json.dumps({"error": error, "times": times, "ended": ended}))
    # A program may have left threads, or a runtime that is slow to end.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
