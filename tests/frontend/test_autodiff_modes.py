"""What the frontend makes of kernels that are differentiated."""

import dataclasses

import pytest
from qd_studio import engine as qd
from qd_studio.engine.errors import NoGradientsError
from qd_studio.engine.frontend.specialization import READ_FLAGS
from qd_studio.engine.ir import codes as C
from qd_studio.engine.runtime.compile import CompileRequest, make_ir
from qd_studio.engine.runtime.program import current

ARRAY = qd.types.NDArray[qd.f32, 1]


pytestmark = pytest.mark.usefixtures("interp")


def made(kernel, mode, *args):
    """The function in IR for a call of ``kernel`` in a mode, and where its parameters lie."""
    of = kernel.in_mode(mode)
    spec_keys = tuple(a.spec_key for a in of.launchers.classify(args, current()))
    return make_ir(CompileRequest(of.decl, spec_keys, current().config, current().backend))


def companions(build):
    """Pairs of a parameter and the one that holds its gradients, by name."""
    params = build.func.params
    return {p.name: params[p.grad].name for p in params if p.grad >= 0}


def scalar(**needs):
    return qd.field(qd.f32, (), name="loss", **needs)


def array(**needs):
    return qd.ndarray(qd.f32, 3, **needs)


@dataclasses.dataclass
class Pair:
    a: ARRAY
    b: qd.Tensor


@qd.kernel
def total(pair: Pair, t: qd.Tensor, f: qd.Template, n: qd.i32) -> qd.f32:
    for i in range(n):
        t[i] += pair.a[i] * pair.b[i] * f[i]
    return t[0]


def test_arrays_and_fields_wherever_they_are_get_companions():
    field = qd.field(qd.f32, 3, name="f", needs_grad=True, needs_dual=True)
    args = Pair(array(needs_grad=True), array(needs_dual=True)), qd.wrap(field), field, 3
    reverse, forward = made(total, "reverse", *args), made(total, "forward", *args)
    assert reverse.func.autodiff == "reverse" and forward.func.autodiff == "forward"
    assert companions(reverse) == {"pair.a": "pair.a.grad", "f": "f.grad"}
    assert companions(forward) == {"pair.b": "pair.b.dual", "f": "f.dual"}
    bindings = {
        p.name: binding for p, binding in zip(reverse.func.params, reverse.bindings, strict=True)
    }
    assert bindings["pair.a.grad"][:2] == (0, ("a", "grad"))
    assert bindings["f.grad"].field is field.grad
    assert made(total, "none", *args).func.autodiff == "none"
    assert not companions(made(total, "none", *args))


def test_names_state_the_modes_apart_and_places_do_not():
    args = Pair(array(needs_grad=True), array()), array(), qd.field(qd.f32, 3), 3
    names = {mode: made(total, mode, *args).func.name for mode in ("reverse", "forward")}
    assert names == {"reverse": "total_reverse_grad", "forward": "total_forward_grad"}
    assert made(total, "validation", *args).func.name == "total_validate_grad"
    assert made(total, "reverse", *args).func.loc.func == "total"


def test_the_gradient_returns_nothing():
    args = Pair(array(needs_grad=True), array()), array(), qd.field(qd.f32, 3), 3
    reverse, forward = (made(total, mode, *args).func for mode in ("reverse", "forward"))
    assert reverse.results == () and C.RETURN not in [op.code for op in reverse.body.ops]
    assert forward.results == (qd.f32,) and C.RETURN in [op.code for op in forward.body.ops]


def test_integers_and_what_has_no_gradients_have_no_companions():
    n, plain = qd.field(qd.i32, 3, name="n"), qd.field(qd.f32, 3, name="plain")
    y = scalar(needs_grad=True)

    @qd.kernel
    def k():
        for i in n:
            y[None] += plain[i] * n[i]

    assert companions(made(k, "reverse")) == {"loss": "loss.grad"}
    assert companions(made(k, "forward")) == {}


def test_a_component_stands_for_its_field():
    v = qd.Vector.field(2, qd.f64, 3, name="v", needs_grad=True)
    s = qd.Struct.field({"p": qd.math.vec2, "m": qd.f32}, shape=3, name="s", needs_grad=True)
    x = v.get_scalar_field(1)

    @qd.kernel
    def k():
        for i in x:
            x[i] += s[i].p[0] * s[i].m

    found = companions(made(k, "reverse"))
    assert found == {"v": "v.grad", "s.p": "s.p.grad", "s.m": "s.m.grad"}


def test_objects():
    @qd.data_oriented
    class Model:
        def __init__(self):
            self.x, self.y = array(needs_grad=True), scalar(needs_grad=True)
            self.scale = 2.0

        @qd.kernel
        def step(self, by: qd.f32):
            for i in self.x:
                self.y[None] += self.x[i] * by * self.scale

    model = Model()
    build = made(Model.step.of(model), "reverse", model, 1.0)
    assert companions(build) == {"self.x": "self.x.grad", "loss": "loss.grad"}


def test_marks_are_like_what_they_mark():
    y = scalar(needs_grad=True)

    @qd.kernel
    def k(a: ARRAY, b: ARRAY):
        for i in a:
            y[None] += a[i] * b[i]

    build = made(k, "validation", array(needs_grad=True), array())
    assert companions(build) == {"a": "a.marks", "loss": "loss.marks"}
    by_name = {p.name: p for p in build.func.params}
    assert by_name["loss.marks"].layout == by_name["loss"].layout
    bindings = dict(zip([p.name for p in build.func.params], build.bindings, strict=True))
    assert bindings["a.marks"][:2] == (0, (READ_FLAGS,)) and bindings["loss.marks"].field is y


@dataclasses.dataclass
class Misnamed:
    grad: ARRAY
    dual: ARRAY
    marks: ARRAY


def test_members_may_be_called_like_companions():
    @qd.kernel
    def k(m: Misnamed):
        for i in m.grad:
            m.marks[i] = m.grad[i] * m.dual[i] + m.grad.grad[i]

    m = Misnamed(*[array(needs_grad=True) for _ in range(3)])
    m.grad.fill(2)
    m.dual.fill(3)
    for _ in range(3):
        k(m)
        assert m.marks.to_numpy().tolist() == [6, 6, 6]
    assert companions(made(k, "validation", m)) == {
        "m.grad": "m.grad.marks", "m.dual": "m.dual.marks", "m.marks": "m.marks.marks",
    }  # fmt: skip

    @qd.kernel
    def product(m: Misnamed):
        for i in m.grad:
            m.marks[i] = m.grad[i] * m.dual[i]

    for _ in range(3):
        m.marks.grad.fill(1)
        m.grad.grad.fill(0)
        product.grad(m)
        assert m.grad.grad.to_numpy().tolist() == [3, 3, 3]
        product.in_mode("validation")(m)


def loads(build):
    """By name of the parameter, whether it has gradients: those through which is read."""
    params = build.func.params
    blocks, out = [build.func.body], []
    while blocks:
        for op in blocks.pop(0).ops:
            blocks += op.regions
            if op.code == C.GLOBAL_LOAD:
                param = params[op.args[0].args[0].attr[0]]
                out.append((param.name, param.grad >= 0))
    return out


def test_stop_grad_reads_through_a_parameter_without_gradients():
    x, y = qd.field(qd.f32, 3, name="x", needs_grad=True), scalar(needs_grad=True)

    @qd.func
    def half(i):
        return x[i] * 0.5

    @qd.kernel
    def k(a: ARRAY, n: qd.i32):
        for i in x:
            y[None] += x[i] * a[i]
            if n > i:
                qd.stop_grad(x)
                y[None] += half(i) * a[i]
            qd.stop_grad(a)
            y[None] += x[i] * a[i]

    args = array(needs_grad=True, needs_dual=True), 2
    assert loads(made(k, "reverse", *args)) == [
        ("x", True), ("a", False), ("x", True), ("a", False), ("x", False), ("a", False),
    ]  # fmt: skip
    assert {name for name, _ in loads(made(k, "none", *args))} == {"x", "a"}
    assert len(made(k, "none", *args).func.params) == 4


def test_stop_grad_takes_what_has_gradients():
    s = qd.Struct.field({"p": qd.math.vec2, "m": qd.f32}, shape=3, name="s", needs_grad=True)
    y = scalar(needs_grad=True)

    @qd.kernel
    def k():
        for i in s:
            qd.stop_grad(s)
            y[None] += s[i].m * s[i].p[1]

    assert loads(made(k, "reverse")) == [("s.m", False), ("s.p", False)]

    @qd.kernel
    def wrong(n: qd.i32):
        qd.stop_grad(n)

    with pytest.raises(qd.QuadrantsTypeError, match="stop_grad takes a field or an ndarray") as e:
        made(wrong, "none", 3)
    assert e.value.span.source_line.strip() == "qd.stop_grad(n)"
    with pytest.raises(qd.QuadrantsAssertionError, match="can only be used in a kernel"):
        qd.stop_grad(y)


def test_forward_mode_cannot_both_stop_and_write():
    x = qd.field(qd.f32, 3, name="x", needs_dual=True)

    @qd.kernel
    def k():
        for i in x:
            qd.stop_grad(x)
            x[i] = 2 * x[i]

    with pytest.raises(qd.QuadrantsCompilationError, match="x is written in a kernel that") as e:
        made(k, "forward")
    assert e.value.span.source_line.strip() == "x[i] = 2 * x[i]"


def nested(over, path):
    """A function that makes a kernel with a loop over ``over`` in a loop."""
    target = "j, l" if "ndrange" in over else "j"
    source = f"""
import qd_studio.engine as qd
def make(x, y):
    @qd.func
    def inner(i, a):
        for {target} in {over}:
            y[None] += x[i]
    @qd.kernel
    def k(a: qd.types.NDArray, n: qd.i32):
        if n > 0:
            for i in x:
                inner(i, a)
    return k
"""
    path.write_text(source)
    scope = {"__name__": "nested"}
    exec(compile(source, str(path), "exec"), scope)
    return scope["make"]


@pytest.mark.parametrize("over", ["range(a.shape[0])", "a", "qd.grouped(a)"])
def test_a_loop_in_a_loop_needs_stacks(over, tmp_path):
    make = nested(over, tmp_path / "nested.py")
    x, y = qd.field(qd.f32, 3, needs_grad=True), scalar(needs_grad=True)
    k = make(x, y)
    args = array(), 3
    made(k, "none", *args), made(k, "forward", *args)
    with pytest.raises(qd.QuadrantsCompilationError) as caught:
        made(k, "reverse", *args)
    error = caught.value
    assert error.message == "Cannot use non static range in Backwards mode"
    assert "ad_stack_experimental_enabled=True" in error.hint
    assert error.span.source_line.strip() == f"for j in {over}:"
    qd.init(arch=qd.interp, ad_stack_experimental_enabled=True, log_level="error")
    x, y = qd.field(qd.f32, 3, needs_grad=True), scalar(needs_grad=True)
    assert companions(made(make(x, y), "reverse", array(), 3))


@pytest.mark.parametrize(
    "over", ["range(3)", "qd.ndrange(2, 2)", "qd.ndrange(a.shape[0], 2)", "x", "qd.grouped(x)"]
)
def test_a_loop_in_a_loop_with_a_known_trip_count_needs_no_option(over, tmp_path):
    x, y = qd.field(qd.f32, 3, needs_grad=True), scalar(needs_grad=True)
    k = nested(over, tmp_path / "nested.py")(x, y)
    assert companions(made(k, "reverse", array(), 3))


def test_one_loop_and_unrolled_loops_need_no_stacks():
    x, y = qd.field(qd.f32, 3, needs_grad=True), scalar(needs_grad=True)

    @qd.kernel
    def k(n: qd.i32):
        if n > 0:
            for i in x:
                for j in qd.static(range(3)):
                    y[None] += x[i] * j

    assert companions(made(k, "reverse", 3))


def test_gradients_cannot_be_read_where_they_are_made():
    x, y = qd.field(qd.f32, 3, name="x", needs_grad=True), scalar(needs_grad=True)

    @qd.kernel
    def reads():
        for i in x:
            y[None] += x[i] * x.grad[i]

    @qd.kernel
    def apart():
        for i in x:
            y[None] += x.grad[i]

    made(reads, "none")
    with pytest.raises(qd.QuadrantsCompilationError, match="differentiate through a grad tensor"):
        made(reads, "reverse")
    assert companions(made(apart, "reverse")) == {"loss": "loss.grad"}


def test_without_gradients_the_error_names_what_lacks_them():
    x, n = qd.field(qd.f32, 3, name="x"), qd.field(qd.i32, 3)

    @qd.kernel
    def k(a: ARRAY, b: ARRAY):
        for i in x:
            x[i] += a[i] * b[i] * n[i]

    @qd.kernel
    def count():
        for i in n:
            n[i] += 1

    with pytest.raises(NoGradientsError, match="what k uses: field x and arguments a, b") as e:
        made(k, "reverse", array(), array())
    assert "needs_grad=True" in e.value.hint
    with pytest.raises(NoGradientsError, match="count cannot be differentiated: it uses no field"):
        made(count, "reverse")
    assert made(count, "forward").func.autodiff == "forward"
