"""What a kernel from fastcache does not need: no parser, no frontend, no passes, no LLVM."""

from types import FunctionType

import pytest
from qd_studio.engine.frontend.source import FunctionSource
from qd_studio.engine.runtime.observed import Observed

from tests.caches.lab import HEAD, Lab
from tests.caches.programs import program

HELPERS = """
@qd.func
def double(x):
    return x * 2.0


@qd.func
def shifted(x: qd.f32, by: qd.template()):
    '''A text
at the margin, with a ( bracket.'''
    return double(x) + by


@qd.data_oriented
class Sim:
    def __init__(self):
        self.n = 3
        self.a = ones()

    @qd.func
    def step(self, x):
        return x + self.n

    @qd.kernel(fastcache=True)
    def run(self) -> qd.f32:
        for i in self.a:
            self.a[i] = self.step(self.a[i])
        return self.a[0]
"""
KERNEL = """
@qd.kernel(fastcache=True)
def k{n}(a: F32, t: qd.template(), x: qd.f32) -> qd.f32:
    for i in range(a.shape[0]):
        y = shifted(a[i], t) * x
        if y > 3.0:
            a[i] = y + {n}.0
        else:
            a[i] = max(y, 2.0)
    return a[0]
"""
MAIN = """
def main():
    qd.init(arch=qd.cpu)
    out = [k(ones(), 1.0, 2.0) for k in KERNELS]
    return out + [Sim().run()]
"""
NOT_NEEDED = (
    "qd_studio.engine.frontend.build",
    "qd_studio.engine.frontend.func_builder",
    "qd_studio.engine.passes",
    "qd_studio.engine.backends.llvm.library",
    "hashlib",
    "msgspec",
)


@pytest.mark.parametrize("count", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_many_kernels_without_anything_that_compiles(runs, count):
    kernels = "".join(KERNEL.format(n=n) for n in range(count))
    names = ", ".join(f"k{n}" for n in range(count))
    runs.write(program(f"{HELPERS}{kernels}\nKERNELS = [{names}]\n{MAIN}"))
    first, second = runs.run(), runs.run()
    assert first.result == second.result == [6.0 + n for n in range(count)] + [4.0]
    assert first.parses > count and first.ran_passes and first.ran_llvm
    assert second.parses == 0
    assert not [name for name in NOT_NEEDED if name in second.modules]
    for n in range(count):
        assert second.of(f"k{n}").loaded
        assert second.of(f"k{n}").layers["offline"]["source"] == "disk"
    files = runs.files()
    third = runs.run()
    assert third.result == first.result and runs.files() == files


def test_the_source_is_read_once(lab, monkeypatch):
    """A function that several kernels use, and a kernel that is called with other types."""
    body = """
@qd.func
def double(x):
    return x * 2.0

@qd.kernel(fastcache=True)
def k(a: qd.types.NDArray) -> None:
    for i in range(1):
        a[i] = double(a[i])

@qd.kernel(fastcache=True)
def other(a: F32) -> None:
    for i in range(1):
        a[i] = double(a[i])

def main():
    k(np.ones(1, np.int32))
    k(np.ones(1, np.float64))
    return call(k) + call(other)
"""
    lab.write(body, head=HEAD)
    assert lab.warm() == 4.0
    cut: list[str] = []
    real = FunctionSource._block

    def counted(source: FunctionSource) -> list[str]:
        if source._text is None:
            cut.append(source.name)
        return real(source)

    monkeypatch.setattr(FunctionSource, "_block", counted)
    assert lab.run()[:2] == (4.0, "hit")
    assert sorted(cut) == ["double", "k", "other"]


class TestWhatIsSeen:
    """``kernel._primal``: what caches and launches did."""

    BODY = """
@qd.func
def double(x):
    return x * 2.0

@qd.kernel(fastcache=True)
def k(a: qd.types.NDArray, x: qd.f32, n: qd.i32, u: qd.u32, t: qd.template()) -> None:
    for i in range(1):
        a[i] = double(a[i]) * x * t

def main():
    return 1.0
"""

    @pytest.fixture
    def lab(self, tmp_path) -> Lab:
        lab = Lab(tmp_path)
        lab.write(self.BODY)
        return lab

    def test_before_and_after(self, lab):
        for warm in (False, True):
            with lab.started() as module:
                primal = module.k._primal
                assert primal.src_ll_cache_observations == (False, False, False, False)
                assert not primal.launch_observations.found_kernel_in_materialize_cache
                assert dict(primal.launch_stats.kernel_args_count_by_type) == {}
                a = module.qd.ndarray(module.qd.f32, (1,))
                module.k(a, 1.0, 2, 3, 4)
                seen = primal.src_ll_cache_observations
                assert seen == ((True, True, True, False) if warm else (True, False, False, True))
                assert primal.launch_observations.found_kernel_in_materialize_cache is warm
                assert not primal.fe_ll_cache_observations.cache_hit

    def test_later_launches_find_the_kernel(self, lab):
        with lab.started() as module:
            k, a = module.k, module.np.ones(1, module.np.float32)
            found = []
            for t in (1, 1, 1, 2, 1, 2, 2, 3, 3, 1):
                k(a, 1.0, 2, 3, t)
                found.append(k._primal.launch_observations.found_kernel_in_materialize_cache)
            expected = [False, True, True, False, True, True, True, False, True, True]
            assert found == expected
            assert isinstance(k._hot, FunctionType)

    def test_parameters_are_counted(self, lab):
        with lab.started() as module:
            qd, k = module.qd, module.k
            kinds = qd.lang._kernel_types.KernelBatchedArgType
            k(qd.ndarray(qd.f32, (1,)), 1.0, 2, 3, 4)
            counts = k._primal.launch_stats.kernel_args_count_by_type
            numbers = {kinds.FLOAT: 1, kinds.INT: 1, kinds.UINT: 1}
            assert counts == {**numbers, kinds.QD_ARRAY: 1}
            k(module.np.ones(1, module.np.float32), 1.0, 2, 3, 5)
            assert k._primal.launch_stats.kernel_args_count_by_type == numbers
            k(qd.ndarray(qd.f32, (1,), needs_grad=True), 1.0, 2, 3, 6)
            counts = k._primal.launch_stats.kernel_args_count_by_type
            assert counts == {**numbers, kinds.QD_ARRAY_WITH_GRAD: 1}

    def test_the_frontend_ran_for_a_hit_of_the_offline_cache(self, lab):
        lab.edit("@qd.kernel(fastcache=True)", "@qd.kernel")
        for warm in (False, True):
            with lab.started() as module:
                module.k(module.np.ones(1, module.np.float32), 1.0, 2, 3, 4)
                primal = module.k._primal
                assert primal.fe_ll_cache_observations.cache_hit is warm
                assert primal.src_ll_cache_observations == (False, False, False, False)
                assert lab.seen().state == "off"
                assert lab.seen().reason == "the kernel is not marked fastcache=True"

    def test_a_kernel_can_be_called_and_asked_through_it(self, lab):
        with lab.started() as module:
            a = module.np.ones(1, module.np.float32)
            module.k._primal(a, 1.0, 2, 3, 4)
            assert a[0] == 8.0
            assert module.k._primal.name == "k"
            assert repr(module.k._primal) == repr(module.k)

    def test_nothing_of_a_launch_is_kept_alive(self):
        assert set(Observed.__slots__) == {"counts", "in_process", "layers"}
