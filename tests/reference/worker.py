"""Run the cases of one program and write what each gave, a JSON line a case.

`python worker.py PROGRAM OUTPUT ENGINE ARCH [CASE ...]`, where ENGINE is ``ours`` or
``reference``. `python worker.py` runs ours in forks of a process that has imported the engine,
which takes longer than most programs. This file is run by two interpreters, one of which has no
qd_studio: it must not import anything of the project before it knows which system it is to run.

A program is a Python file with functions ``case_*``, which return something to compare, and
``mistake_*``, which must raise. ``INIT`` maps names of cases to options of `qd.init`; ``*`` stands
for those that it does not name. A name is written before its case starts, so that the caller knows
which one ended the process.
"""

import contextlib
import importlib
import importlib.util
import json
import os
import re
import sys
import tempfile
import warnings
from pathlib import Path

NOISE = re.compile(r"^\[(Quadrants|[A-Z])[ \]]")
PLACE = re.compile(r'File "([^"\n]*)", line (\d+), in \w+:')


def plain(value):
    """A value as JSON can hold it, with all that is to be compared."""
    if type(value).__module__ == "numpy" and type(value).__name__ != "ndarray":
        value = value.item()  # a scalar of NumPy counts as the number that it is
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [plain(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[plain(key), plain(item)] for key, item in value.items()]}
    if type(value).__module__ == "numpy" and type(value).__name__ == "ndarray":
        return {"array": str(value.dtype), "shape": list(value.shape), "data": value.tolist()}
    if hasattr(value, "to_list"):
        return {"matrix": plain(value.to_list())}
    if hasattr(value, "to_dict"):
        return {"struct": plain(value.to_dict())}
    return {"type": type(value).__name__}


def error_of(error, program, engine):
    """Class, builtin bases, text and the line of the program that the error shows.

    Of an error inside of inlined functions that is the line of the innermost: the reference shows
    it first, we show it last.
    """
    text = str(error)
    classes = [cls.__name__ for cls in type(error).__mro__ if cls is not object]
    lines = Path(program).read_text(encoding="utf-8").splitlines()
    name = Path(program).name
    places = [int(n) for path, n in PLACE.findall(text) if Path(path).name == name]
    if engine == "ours":
        places.reverse()
    shown = lines[places[0] - 1].strip() if places else None
    return {"classes": classes, "text": text[-3000:], "line": shown}


class Output:
    """What is written to file descriptor 1, by Python or not."""

    def __enter__(self):
        sys.stdout.flush()
        self.file = tempfile.TemporaryFile()
        self.saved = os.dup(1)
        os.dup2(self.file.fileno(), 1)
        return self

    def __exit__(self, *exc):
        sys.stdout.flush()
        os.dup2(self.saved, 1)
        os.close(self.saved)
        self.file.seek(0)
        text = self.file.read().decode(errors="replace")
        self.text = "".join(s for s in text.splitlines(True) if not NOISE.match(s))
        self.file.close()


def run_case(qd, function, program, engine):
    record = {}
    with Output() as output, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            record["value"] = plain(function())
            qd.sync()
        except Exception as error:
            record.pop("value", None)
            record["error"] = error_of(error, program, engine)
    record["output"] = output.text
    return record


def start(qd, engine, arch, options):
    chosen = {"log_level": qd.ERROR, "offline_cache": False, **options}
    if chosen.pop("no_init", False):
        qd.reset()
        return
    for name in ("default_fp", "default_ip"):
        if name in chosen:
            chosen[name] = getattr(qd, chosen[name])
    qd.init(arch=getattr(qd, arch if engine == "ours" else "cpu"), **chosen)


def device(arch):
    """Where CUDA is asked for: the device of this machine, or a simulated one."""
    if arch != "cuda":
        return contextlib.nullcontext()
    from tests import cuda_sim

    return cuda_sim.cuda()


def serve():
    """Run the programs of requests, each in a fork; see `fork_server`."""
    import pkgutil

    from qd_studio.engine import frontend, passes
    from qd_studio.engine.backends import cpu, llvm

    from tests.caches import fork_server

    for package in (frontend, passes, llvm, cpu):
        for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            importlib.import_module(found.name)
    request = fork_server.next_request()
    if request is not None:
        fork_server.become(request)
        main(*request["arguments"])


def main(program, output, engine, arch, *wanted):
    os.environ["QD_ENABLE_PYBUF"] = "0"  # print to the descriptor, not through Python
    if engine == "ours":
        from qd_studio.engine import alias

        alias.install("quadrants")
    import quadrants as qd

    spec = importlib.util.spec_from_file_location(Path(program).stem, program)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    init = getattr(module, "INIT", {})
    now = None
    with device(arch), open(output, "a", encoding="utf-8") as out:
        for name in wanted:
            out.write(json.dumps({"start": name}) + "\n")
            out.flush()
            options = init.get(name, init.get("*", {}))
            if now != options:
                start(qd, engine, arch, options)
                now = options
            record = run_case(qd, getattr(module, name), program, engine)
            if "error" in record:
                now = None  # the reference may be left with half of a declaration
            out.write(json.dumps({"name": name, **record}) + "\n")
            out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:]) if sys.argv[1:] else serve()
