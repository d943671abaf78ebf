"""The configurations that every generated kernel is compiled in."""

from __future__ import annotations

from typing import Any, NamedTuple

from qd_studio.engine import passes
from qd_studio.engine.config import CompileConfig

__all__ = ["CUDA_VARIANTS", "OPENCL_VARIANTS", "TIER_VARIANTS", "VARIANTS", "Variant"]


class Variant(NamedTuple):
    """One way to compile.

    options: of the config, besides ``fast_math=False`` and two threads. skip: optional passes that
    do not run. pieces: cut parallel loops into pieces however small they are. errors: the kernel
    may fail with an assertion, on all backends alike. plain: it is a matter of our own passes, so
    LLVM need not optimise what they give, which takes most of the time (see `quick`).
    target: the backend. tiers: with first-tier code, see `tiers`.
    """

    name: str
    options: dict[str, Any]
    skip: tuple[str, ...] = ()
    pieces: bool = False
    errors: bool = False
    plain: bool = False
    target: str = "cpu"
    tiers: bool = False

    @property
    def fast(self) -> bool:
        return bool(self.options.get("fast_math"))

    def quick(self) -> Variant:
        """The same for our passes; LLVM's own optimisation is off where it does not matter."""
        options = {**self.options, "external_optimization_level": 0}
        return self._replace(options=options) if self.plain else self

    def config(self) -> CompileConfig:
        own = {
            "fast_math": False,
            "cpu_max_num_threads": 2,
            "tiered": "on" if self.tiers else "off",
        }
        return CompileConfig(**{**own, **self.options})


def _variants() -> tuple[Variant, ...]:
    off: dict[str, bool] = {
        "advanced_optimization": False, "cfg_optimization": False, "constant_folding": False,
        "make_thread_local": False, "cache_loop_invariant_global_vars": False,
        "detect_read_only": False, "make_cpu_multithreading_loop": False,
        "move_loop_invariant_outside_if": True, "flatten_if": True,
    }  # fmt: skip
    out = [Variant("all passes", {})]
    out += [
        Variant(f"without {info.name}", {}, (info.name,), plain=True)
        for info in passes.all_passes()
        if info.optional
    ]
    out += [Variant(f"{name}={value}", {name: value}, plain=True) for name, value in off.items()]
    fast = {"fast_math": True}
    out += [
        Variant("opt_level=0", {"opt_level": 0}),
        Variant("external_optimization_level=0", {"external_optimization_level": 0}),
        Variant("max_vector_width=0", {"max_vector_width": 0}),
        Variant("fast_math", fast),
        Variant("fast_math, opt_level=0", {**fast, "opt_level": 0}),
        Variant(
            "fast_math, advanced_optimization=False",
            {**fast, "advanced_optimization": False},
            plain=True,
        ),
    ]
    for n in (1, 2, 4):
        name = f"threads={n}, small pieces"
        out.append(Variant(name, {"cpu_max_num_threads": n}, pieces=True, plain=n != 2))
    out += [
        Variant("fast_math, small pieces", fast, pieces=True),
        Variant("check_out_of_bound", {"check_out_of_bound": True}, plain=True),
        # One thread, so that of several failures the same comes first on all backends.
        Variant("debug", {"debug": True, "cpu_max_num_threads": 1}, errors=True, plain=True),
    ]
    return tuple(out)


VARIANTS = _variants()


def _for_cuda() -> tuple[Variant, ...]:
    out = [
        Variant("cuda", {}),
        Variant("cuda, opt_level=0", {"opt_level": 0}),
        Variant("cuda, fast_math", {"fast_math": True}),
        Variant("cuda, blocks of 32", {"default_gpu_block_dim": 32}),
        Variant("cuda, one block", {"saturating_grid_dim": 1}),
        Variant("cuda, without sums of blocks", {"make_thread_local": False}),
        Variant("cuda, advanced_optimization=False", {"advanced_optimization": False}),
        Variant("cuda, check_out_of_bound", {"check_out_of_bound": True}),
    ]
    return tuple(variant._replace(target="cuda") for variant in out)


CUDA_VARIANTS = _for_cuda()


def _for_opencl(mapping: str) -> tuple[Variant, ...]:
    name = f"opencl, {mapping}"
    out = [
        Variant(name, {}),
        Variant(f"{name}, opt_level=0", {"opt_level": 0}),
        Variant(f"{name}, fast_math", {"fast_math": True}),
        Variant(f"{name}, make_thread_local=False", {"make_thread_local": False}),
        Variant(f"{name}, advanced_optimization=False", {"advanced_optimization": False}),
    ]
    if mapping == "chunks":
        out.append(Variant(f"{name}, small pieces", {}, pieces=True))
        out.append(Variant(f"{name}, two tiers", {}, tiers=True))
    else:
        out.append(Variant(f"{name}, blocks of 32", {"default_gpu_block_dim": 32}))
        out.append(Variant(f"{name}, one group", {"saturating_grid_dim": 1}))
    return tuple(
        v._replace(target="opencl", options={**v.options, "opencl_mapping": mapping}) for v in out
    )


OPENCL_VARIANTS = {mapping: _for_opencl(mapping) for mapping in ("chunks", "lanes")}

TIER_VARIANTS = tuple(
    Variant(f"first tier, {name}", options, pieces=pieces, errors="debug" in options, tiers=True)
    for name, options, pieces in (
        # On one thread both tiers have the same bits; see `runner`.
        ("all passes", {"cpu_max_num_threads": 1}, False),
        ("small pieces", {}, True),
        ("fast_math", {"fast_math": True}, False),
        ("debug", {"debug": True, "cpu_max_num_threads": 1}, False),
    )
)
