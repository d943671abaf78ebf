"""Made-up records of applications, with many kernels."""

from qd_studio.engine.inspect.application.model import (
    Application,
    Cache,
    Compile,
    Frame,
    KeptLaunch,
    Kernel,
    Limits,
    Process,
    Site,
)  # fmt: skip


def site(file, line, count, us, *outer):
    frames = (Frame(file, line, f"caller_{line}", f"call({line})"), *outer)
    total = int(count * us * 1000)
    return Site(frames, count, count, total, count, total // count, total // count)


def kernel(number, folder="/src", count=500):
    """Later kernels take more time, compile in less, and have fewer launches."""
    states = ("hit", "miss", "off")
    made = Compile(
        process=0, specialization=("i32", "ndarray<f32, 1>"), params=("n: i32",), config={},
        backend="cpu", device="", timings={"frontend_ms": 1.0, "passes_ms": float(count - number)},
        caches=(Cache("fastcache", "off", "not marked"), Cache("offline", states[number % 3])),
        sites=(site(f"{folder}/main.py", number + 1, count - number, 2.0 * (number + 1) ** 2),
               site(f"{folder}/other.py", 3, 1, 1.0, Frame(f"{folder}/main.py", 9, "run", "r()"))),
        kept=(KeptLaunch(1, reason="too large"),), stack_bytes=1024 * number,
    )  # fmt: skip
    return Kernel(
        f"kernel_{number}", f"Solver.kernel_{number}", f"{folder}/solver.py", 10 * number + 1,
        f"def kernel_{number}():\n    pass\n", compiles=(made,),
    )  # fmt: skip


def application(count=500, folder="/src"):
    return Application(
        command=("main.py", "--size", "4"), status=0, limits=Limits(), tool="0", time=0.0,
        seconds=9.0, processes=(Process(7, 1, ("main.py",), "3.11", 0.0, True, 8.0),),
        kernels=tuple(kernel(number, folder, count) for number in range(count)),
    )  # fmt: skip
