"""Mistakes in declarations and calls of kernels, and at the edges of a program."""

import numpy as np
import quadrants as qd

INIT = {
    "mistake_kernel_without_init": {"no_init": True},
    "mistake_field_without_init": {"no_init": True},
    "mistake_ndarray_without_init": {"no_init": True},
    "mistake_templated_float": {"raise_on_templated_floats": True},
    "mistake_captured_float": {"raise_on_templated_floats": True},
    "mistake_assert_of_a_comparison": {"debug": True},
}


@qd.kernel
def takes_an_int(a: qd.i32):
    pass


def mistake_kernel_without_init():
    @qd.kernel
    def k():
        pass

    k()


def mistake_field_without_init():
    qd.field(qd.i32, shape=3)


def mistake_ndarray_without_init():
    qd.ndarray(qd.i32, 3)


def mistake_field_after_reset():
    """Maybe you forgot to call `qd.init()` first?"""
    f = qd.field(qd.i32, shape=3)
    qd.reset()
    f[0]


def mistake_kernel_from_exec():
    space = {"qd": qd}
    exec("@qd.kernel\ndef k() -> qd.i32:\n    return 3\n", space)
    space["k"]()


def mistake_parameter_without_annotation():
    """Quadrants kernels parameters must be type annotated"""

    @qd.kernel
    def k(a):
        pass


def mistake_default_value():
    """Quadrants kernels do not support default values for arguments"""

    @qd.kernel
    def k(a: qd.i32 = 3):
        pass


def mistake_star_args():
    """Quadrants kernels do not support variable positional parameters (i.e., *args)"""

    @qd.kernel
    def k(*a: qd.i32):
        pass


def mistake_star_kwargs():
    @qd.kernel
    def k(**a: qd.i32):
        pass


def mistake_keyword_only():
    @qd.kernel
    def k(*, a: qd.i32):
        pass


def mistake_annotation_of_str():
    """Invalid type annotation (argument 0) of Quadrants kernel: <class 'str'>"""

    @qd.kernel
    def k(a: str):
        pass


def mistake_annotation_of_a_number():
    """Invalid type annotation (argument 1) of Quadrants kernel"""

    @qd.kernel
    def k(b: qd.i32, a: 3):
        pass


def mistake_annotation_of_list():
    @qd.kernel
    def k(a: list):
        pass


def mistake_missing_argument():
    """Missing argument 'a'."""
    takes_an_int()


def mistake_too_many_arguments():
    """Too many arguments. Expected (a : i32), got (1, 2)."""
    takes_an_int(1, 2)


def mistake_unexpected_argument():
    """Unexpected argument 'b'."""
    takes_an_int(1, b=2)


def mistake_argument_twice():
    """Multiple values for argument 'a'."""
    takes_an_int(1, a=2)


def mistake_result_without_annotation():
    """A kernel with a return value must be annotated with a return type"""

    @qd.kernel
    def k(a: qd.i32):
        return a

    k(1)


def mistake_missing_return():
    """Kernel has a return type but does not have a return statement"""

    @qd.kernel
    def k() -> qd.i32:
        pass

    k()


def mistake_return_under_if():
    """Return inside non-static if/for is not supported"""

    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        if a > 0:
            return 1
        return 2

    k(1)


def mistake_return_in_a_loop():
    """Return inside non-static if/for is not supported"""

    @qd.kernel
    def k() -> qd.i32:
        for i in range(3):
            return i

    k()


def mistake_two_results_for_one():
    """cannot be converted into required type i32"""

    @qd.kernel
    def k() -> qd.i32:
        return 1, 2

    k()


def mistake_one_result_for_two():
    @qd.kernel
    def k() -> tuple[qd.i32, qd.i32]:
        return 1

    k()


def mistake_vector_result_for_a_number():
    @qd.kernel
    def k() -> qd.i32:
        return qd.Vector([1, 2])

    k()


def mistake_vector_result_of_other_length():
    @qd.kernel
    def k() -> qd.types.vector(3, qd.i32):
        return qd.Vector([1, 2])

    k()


def mistake_result_annotation():
    @qd.kernel
    def k() -> str:
        return "x"

    k()


def mistake_unknown_init_option():
    qd.init(arch=qd.cpu, speed=3)


def mistake_templated_float():
    @qd.kernel
    def k(a: qd.template()) -> qd.f32:
        return a

    k(1.5)


def mistake_captured_float():
    x = 2.5

    @qd.kernel
    def k() -> qd.f32:
        return x

    k()


def mistake_assert_of_a_comparison():
    @qd.kernel
    def k(a: qd.i32):
        assert a == 3

    k(1)
    qd.sync()


def mistake_unhashable_template_value():
    @qd.kernel
    def k(a: qd.template()):
        pass

    k([1, 2])


def mistake_kernel_as_a_value():
    @qd.kernel
    def other():
        pass

    @qd.kernel
    def k():
        x = other

    k()


def mistake_module_as_a_value():
    @qd.kernel
    def k():
        x = np

    k()


def mistake_attribute_of_a_number():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        return a.shape

    k(1)


def mistake_subscript_of_a_number():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        return a[0]

    k(1)


def mistake_call_of_a_number():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        return a(1)

    k(1)


def mistake_assignment_to_a_literal_call():
    @qd.kernel
    def k(a: qd.i32):
        qd.abs(a)[0] = 3

    k(1)


def mistake_second_line_of_a_long_statement():
    """Name "missing" is not defined"""

    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        b = (
            a
            + missing
        )  # fmt: skip
        return b

    k(1)


def mistake_in_a_nested_block():
    """Name "missing" is not defined"""

    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        s = 0
        for i in range(a):
            while s < 10:
                if s == 5:
                    s += missing
                s += 1
        return s

    k(1)


def mistake_in_a_function_of_a_function():
    """Name "missing" is not defined"""

    @qd.func
    def g(x):
        return x + missing

    @qd.func
    def f(x):
        return g(x) + 1

    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        return f(a)

    k(1)


def mistake_out_of_range_vector_index():
    @qd.kernel
    def k() -> qd.f32:
        v = qd.Vector([1.0, 2.0])
        return v[2]

    k()


def mistake_async_function():
    @qd.kernel
    async def k():
        pass

    k()


def mistake_yield():
    @qd.kernel
    def k():
        yield 1

    k()


def case_usable_after_a_mistake():
    @qd.kernel
    def bad(a: qd.i32) -> qd.i32:
        return a + missing

    @qd.kernel
    def good(a: qd.i32) -> qd.i32:
        return a + 1

    out = []
    for _ in range(2):
        try:
            bad(1)
        except qd.QuadrantsCompilationError:
            out.append("error")
        out.append(good(1))
    return out


def case_error_classes():
    bases = {}
    for name in (
        "CompilationError", "SyntaxError", "NameError", "TypeError", "RuntimeError",
        "AssertionError", "RuntimeTypeError",
    ):  # fmt: skip
        cls = getattr(qd, f"Quadrants{name}")
        bases[name] = [c.__name__ for c in cls.__mro__[1:-2] if not c.__name__.startswith("_")]
    return bases


def case_kernels_survive_a_new_init():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        return a + 1

    out = [k(1)]
    qd.init(arch=qd.cpu, log_level=qd.ERROR, offline_cache=False)
    out.append(k(2))
    qd.init(arch=qd.cpu, log_level=qd.ERROR, offline_cache=False)
    out.append(k(3))
    return out
