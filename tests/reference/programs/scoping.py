"""Names and scopes, statements, compile time."""

import quadrants as qd

CONSTANT = 7


def case_outer_name_is_updated():
    @qd.kernel
    def k(n: qd.i32) -> tuple[qd.i32, qd.i32]:
        a = 1
        b = 2
        if n > 0:
            a = 10
            c = 5
            b += c
        else:
            c = 7
            b -= c
        return a, b

    return [k(1), k(0)]


def case_condition_of_any_integer():
    @qd.kernel
    def k(n: qd.i64) -> qd.i32:
        r = 0
        if n:
            r = 1
        return r

    return [k(0), k(2), k(-1), k(2**40)]


def case_chained_assignment():
    @qd.kernel
    def k(n: qd.i32) -> tuple[qd.i32, qd.i32]:
        a = b = n + 1
        a += 1
        return a, b

    return k(4)


def case_tuple_assignment_swaps():
    @qd.kernel
    def k(x: qd.i32, y: qd.i32) -> tuple[qd.i32, qd.i32, qd.i32]:
        a, b = x, y
        a, b = b, a
        c, d = b - a, 1
        return a, b, c * d

    return k(3, 9)


def case_unpack_a_vector():
    @qd.kernel
    def k() -> tuple[qd.f32, qd.f32]:
        a, b = qd.Vector([1.5, 2.5])
        return b, a

    return k()


def case_pass_and_docstring():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        """Text of a kernel."""
        if n > 0:
            pass
        return n

    return k(3)


def case_closures_are_captured_by_value():
    x = 3

    @qd.kernel
    def k() -> qd.i32:
        return x

    first = k()
    x = 4
    return [first, k()]


def case_constant_lists_and_comprehensions():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        a = [n, n * 2, n * 3]
        b = [x + 1 for x in a]
        c = [x for x in range(6) if x % 2 == 1]
        s = 0
        for x in qd.static(b):
            s += x
        for x in qd.static(c):
            s += x * 1000
        return s

    return k(5)


def case_list_elements_can_be_set():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        a = [n, 2]
        a[0] = 10
        a[1] += n
        return a[0] + a[1]

    return k(5)


def case_dict_literal():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        d = {"a": n, "b": 3}
        return d["a"] * d["b"]

    return k(5)


def case_starred_call():
    @qd.func
    def f(a, b, c):
        return a * 100 + b * 10 + c

    @qd.kernel
    def k() -> qd.i32:
        t = (2, 3)
        return f(1, *t)

    return k()


def case_static_if():
    @qd.kernel
    def k(flag: qd.template(), n: qd.i32) -> qd.i32:
        r = n
        if qd.static(flag):
            r += 1
        else:
            r = undefined_name
        return r

    return k(True, 4)


def case_static_value_of_several():
    @qd.kernel
    def k() -> qd.i32:
        a, b = qd.static(3, 4)
        return a * b

    return k()


def case_static_alias_of_a_field():
    f = qd.field(qd.i32, shape=3)

    @qd.kernel
    def k():
        g = qd.static(f)
        for i in g:
            g[i] = i + 1

    k()
    return f.to_numpy()


def case_static_is_and_in():
    @qd.kernel
    def k(x: qd.template()) -> qd.i32:
        r = 0
        if qd.static(x is None):
            r = 1
        elif qd.static(x in (3, 4)):
            r = 2
        elif qd.static(x is not None and x not in (5, 6)):
            r = 3
        return r

    return [k(None), k(3), k(7), k(5)]


def mistake_name_of_an_if_after_it():
    """Name "y" is not defined"""

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        if n > 0:
            y = 1
        return y

    k(1)


def mistake_name_of_a_while_after_it():
    """Name "y" is not defined"""

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        i = n
        while i > 0:
            y = 1
            i -= 1
        return y

    k(1)


def mistake_argument_assigned():
    """Kernel argument "a" is immutable in the kernel."""

    @qd.kernel
    def k(a: qd.i32):
        a = 3

    k(1)


def mistake_argument_augmented():
    """Kernel argument "a" is immutable in the kernel."""

    @qd.kernel
    def k(a: qd.i32):
        a += 3

    k(1)


def mistake_real_condition():
    """`if` conditions must be an integer; found f32."""

    @qd.kernel
    def k(a: qd.f32):
        if a:
            pass

    k(1.0)


def mistake_unpack_too_many():
    """The number of targets is not equal to value length"""

    @qd.kernel
    def k():
        a, b = qd.Vector([1, 2, 3])

    k()


def mistake_unpack_a_number():
    """Cannot unpack type"""

    @qd.kernel
    def k(n: qd.i32):
        a, b = n

    k(3)


def mistake_run_time_value_in_static():
    """Input to qd.static must be compile-time constants"""

    @qd.kernel
    def k(n: qd.i32):
        if qd.static(n):
            pass

    k(1)


def mistake_static_assert_false():
    """too small"""

    @qd.kernel
    def k(n: qd.template()):
        qd.static_assert(n > 5, "too small")

    k(3)


def mistake_try():
    """Unsupported node "Try\""""

    @qd.kernel
    def k():
        try:
            pass
        finally:
            pass

    k()


def mistake_raise():
    """Unsupported node "Raise\""""

    @qd.kernel
    def k():
        raise ValueError

    k()


def mistake_lambda():
    """Unsupported node "Lambda\""""

    @qd.kernel
    def k():
        f = lambda x: x  # noqa: E731

    k()


def mistake_import():
    """Unsupported node "Import\""""

    @qd.kernel
    def k():
        import math

    k()


def mistake_global():
    """Unsupported node "Global\""""

    @qd.kernel
    def k():
        global CONSTANT

    k()


def mistake_delete():
    """Unsupported node "Delete\""""

    @qd.kernel
    def k():
        x = 1
        del x

    k()


def mistake_set():
    """Unsupported node "Set\""""

    @qd.kernel
    def k():
        x = {1, 2}

    k()


def mistake_with():
    """in Quadrants kernels only supports"""

    @qd.kernel
    def k():
        with open("x"):
            pass

    k()


def mistake_class():
    """Unsupported node "ClassDef\""""

    @qd.kernel
    def k():
        class A:
            pass

    k()


def mistake_nested_function():
    """Function definition is not allowed in 'qd.kernel'."""

    @qd.kernel
    def k():
        def f():
            pass

    k()


def mistake_field_assigned_to_a_local():
    """Invalid constant scalar data type"""
    f = qd.field(qd.i32, shape=3)

    @qd.kernel
    def k():
        g = f

    k()
