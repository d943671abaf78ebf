"""Runs one program and prints, as its last line, what it did; see `two_runs`."""

import builtins
import importlib.util
import json
import sys
import warnings

import qd_studio.engine.alias as alias

FLAGS = {
    "key_generated": ("src_ll_cache_observations", "cache_key_generated"),
    "validated": ("src_ll_cache_observations", "cache_validated"),
    "loaded": ("src_ll_cache_observations", "cache_loaded"),
    "stored": ("src_ll_cache_observations", "cache_stored"),
    "frontend_hit": ("fe_ll_cache_observations", "cache_hit"),
    "found_materialized": ("launch_observations", "found_kernel_in_materialize_cache"),
}

ONLY_AST = 0x400  # ast.PyCF_ONLY_AST

counts = {"parses": 0}


def count_parses():
    """Count the texts that the engine parses into a syntax tree; `ast` need not be loaded.

    Libraries that a program imports parse texts of their own.
    """
    real = builtins.compile

    def is_ours(frame):
        while frame is not None and not frame.f_globals["__name__"].startswith("qd_studio."):
            frame = frame.f_back
        return frame is not None

    def counted(source, filename, mode, flags=0, *args, **kwargs):
        counts["parses"] += bool(flags & ONLY_AST) and is_ours(sys._getframe(1))
        return real(source, filename, mode, flags, *args, **kwargs)

    builtins.compile = counted


def kernels_of(module):
    """Kernels by their names: of the module, and of objects that it keeps in `objects`."""
    from qd_studio.engine.lang.kernel import Kernel

    found = {k: v for k, v in vars(module).items() if isinstance(v, Kernel)}
    found.update(getattr(module, "kernels", {}))
    return found


def seen_of(kernel):
    primal = kernel._primal
    flags = {k: bool(getattr(getattr(primal, a), b)) for k, (a, b) in FLAGS.items()}
    layers = {}
    for variant in kernel.launchers.variants.values():
        for layer in variant.compiled.layers:
            layers[layer.layer] = {
                "state": layer.state, "reason": layer.reason, "source": layer.source,
                "key": layer.key, "parts": dict(layer.parts), "stored": layer.stored,
            }  # fmt: skip
    stats = getattr(primal, "launch_stats", None)  # not there before the first launch
    counted = stats.kernel_args_count_by_type if stats else {}
    return {**flags, "counts": {k.name: v for k, v in counted.items()}, "layers": layers}


def main(path):
    alias.install("quadrants")
    count_parses()
    sys.path.insert(0, path.rpartition("/")[0])
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["program"] = module
    reported = {"result": None, "error": "", "message": "", "kernels": {}}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            spec.loader.exec_module(module)
            reported["result"] = module.main()
        except Exception as error:
            reported["error"] = " ".join(c.__name__ for c in type(error).__mro__)
            reported["message"] = str(error)
    reported["warnings"] = [str(w.message) for w in caught]
    # A list first: the thread that loads LLVM may be importing.
    reported["modules"] = [name for name in list(sys.modules) if not name.startswith("encodings")]
    reported["passes"] = int("qd_studio.engine.passes.pipeline" in sys.modules)
    reported["parses"] = counts["parses"]
    reported["kernels"] = {name: seen_of(k) for name, k in kernels_of(module).items()}
    print(json.dumps(reported))


if __name__ == "__main__":
    main(sys.argv[1])
