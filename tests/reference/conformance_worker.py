"""Run each feature of the conformance suite on Quadrants and print what it gives, as JSON lines.

`python conformance_worker.py`, run by a Python that has Quadrants: the suite's modules find it in
the place of our engine. Each feature runs in a process of its own, since some end theirs.
"""

import importlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
SUITE = "qd_studio.app.conformance"


def features():
    """The registered features, after an import in which `engine` is Quadrants."""
    import quadrants as qd
    from quadrants.lang.util import to_numpy_type

    # What the suite's helpers ask of our types.
    type(qd.i32).np = property(to_numpy_type)
    type(qd.i32).bits = property(lambda dtype: to_numpy_type(dtype)().itemsize * 8)
    names = SUITE.split(".")
    for depth in range(1, len(names) + 1):
        package = ModuleType(".".join(names[:depth]))
        package.__path__ = [str(ROOT.joinpath(*names[1:depth]))]
        sys.modules[package.__name__] = package
    sys.modules["qd_studio"].engine = sys.modules["qd_studio.engine"] = qd
    importlib.import_module(f"{SUITE}.kernels")
    return qd, importlib.import_module(f"{SUITE}.feature").REGISTRY


def plain(value):
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "to_list"):
        return plain(value.to_list())
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def run(qd, feature, write):
    qd.init(arch=qd.cpu, log_level=qd.ERROR, offline_cache=False, **feature.options)
    try:
        record = {"value": plain(feature.run())}
    except Exception as error:
        record = {"error": type(error).__name__}
    write(feature, record)


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the reference prints itself is no result

    def write(feature, record):
        out.write(json.dumps({"id": feature.id, **record}) + "\n")
        out.flush()

    qd, found = features()
    for feature in found:
        pid = os.fork()
        if not pid:
            run(qd, feature, write)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status:
            write(feature, {"died": status})


if __name__ == "__main__":
    main()
