"""A second specialization is what the same specialization is where it is the first."""

import hashlib
import subprocess
import sys

from qd_studio import engine as qd
from qd_studio.engine import passes
from qd_studio.engine.backends.cpu import baseline
from qd_studio.engine.backends.llvm.kernel import lower_kernel
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.errors import QuadrantsTypeError
from qd_studio.engine.frontend.build import build
from qd_studio.engine.frontend.specialization import NdarrayKey
from qd_studio.engine.ir import to_text, walk
from qd_studio.engine.lang.kernel import Kernel
from qd_studio.engine.pipeline_kind import PipelineKind
from qd_studio.engine.types import f32, f64

from tests.passes.test_stages import SAMPLES, arguments, load, sample_files, spec_keys


def kernels():
    sys.path.insert(0, str(SAMPLES))
    try:
        modules = map(load, sample_files())
        return [k for module in modules for k in vars(module).values() if isinstance(k, Kernel)]
    finally:
        sys.path.remove(str(SAMPLES))


def widened(keys):
    """Specialization keys with f64 in place of f32, also where one is an argument's type."""
    return tuple([
        key._replace(dtype=f64) if isinstance(key, NdarrayKey) and key.dtype is f32
        else f64 if key is f32 else key
        for key in keys
    ])  # fmt: skip


def first_code(text, clear=False):
    """First-tier code, with what is kept of others or without. It holds addresses of a process."""
    if clear:
        baseline._kept.cache_clear()
    try:
        return baseline.compile_first(text, 1)
    except baseline.Unsupported as error:
        return str(error)


def digest(kernel, keys):
    """What a compile makes: IR before and after passes, with its locations, and its text."""
    config = CompileConfig(cpu_max_num_threads=3)
    try:
        func = build(kernel.decl, keys, config).func
    except QuadrantsTypeError as error:  # a type that the kernel states
        return repr(error)
    made = [to_text(func), *[repr(op.loc.chain()) for op in walk(func.body)]]
    passes.run(func, config, PipelineKind.CPU)
    text = lower_kernel(func, True, threads=3)
    made += [to_text(func), text.text, str(text.ids)]
    assert first_code(text) == first_code(text, clear=True)
    return hashlib.sha256("\n".join(made).encode()).hexdigest()


def of_second(first):
    """The digest of each sample kernel with f64, after it was compiled with f32 if ``first``."""
    found = []
    for kernel in kernels():
        keys = spec_keys(kernel, arguments(kernel))
        if first:
            digest(kernel, keys)
        if keys != widened(keys):
            found.append(f"{kernel.decl.name} {digest(kernel, widened(keys))!r}")
    return found


def test_sample_kernels_with_other_types_are_as_in_a_process_of_their_own():
    code = f"from {__name__} import of_second; print(*of_second(False), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=SAMPLES.parent, check=True, capture_output=True, text=True
    )
    found = of_second(True)
    assert done.stdout.splitlines() == found
    assert sum("Error" not in one for one in found) > 15


def test_locations_are_kept_with_the_tree():
    @qd.func
    def twice(v):
        return v + v

    @qd.kernel
    def some(x: qd.types.ndarray()):
        for i in x:
            x[i] = twice(x[i]) * 3

    def locs(dtype):
        func = build(some.decl, (NdarrayKey(dtype, 1, False),), CompileConfig()).func
        return [op.loc for op in walk(func.body)]

    first, second = locs(f32), locs(f64)
    own = [loc for loc in first if loc.parent is None]
    again = [loc for loc in second if loc.parent is None]
    assert len(first) > len(own) > 5
    assert all(a is b for a, b in zip(own, again, strict=True))
    src = some.decl.src
    assert src.locs and not any(loc.has_inlined for loc in src.locs.values())
    src.forget_tree()
    assert not src.locs
