"""Mistakes in loops."""

import quadrants as qd


def mistake_range_with_step():
    """Range should have 1 or 2 arguments, found 3"""

    @qd.kernel
    def k():
        for i in range(0, 10, 2):
            pass

    k()


def mistake_ndrange_arity():
    """Ndrange for loop with number of the loop variables not equal to the dimension"""

    @qd.kernel
    def k():
        for i in qd.ndrange(3, 4):
            pass

    k()


def mistake_ndrange_of_a_real():
    """Every argument of ndrange should be an integer scalar or a tuple/list of (int, int)"""

    @qd.kernel
    def k():
        for i, j in qd.ndrange(3, 2.5):
            pass

    k()


def mistake_struct_for_arity():
    """Number of struct-for indices does not match loop variable dimensionality (1 != 2)"""
    f = qd.field(qd.i32, shape=(2, 3))

    @qd.kernel
    def k():
        for i in f:
            f[i, 0] = 1

    k()


def mistake_loop_over_a_list():
    """Cannot loop over the object <class 'list'>"""

    @qd.kernel
    def k():
        for i in [1, 2]:
            pass

    k()


def mistake_static_range_of_a_run_time_value():
    @qd.kernel
    def k(n: qd.i32):
        for i in qd.static(range(n)):
            pass

    k(3)


def mistake_for_else():
    @qd.kernel
    def k():
        for i in range(3):
            pass
        else:
            pass

    k()


def mistake_while_else():
    @qd.kernel
    def k():
        while False:
            pass
        else:
            pass

    k()


def mistake_break_in_a_parallel_loop():
    """Cannot break in the outermost loop"""

    @qd.kernel
    def k():
        for i in range(10):
            if i > 3:
                break

    k()


def mistake_break_in_a_static_loop_under_if():
    """You are trying to `break` a static `for` loop"""

    @qd.kernel
    def k(n: qd.i32):
        for i in qd.static(range(10)):
            if n > i:
                break

    k(3)


def mistake_continue_in_a_static_loop_under_if():
    """You are trying to `continue` a static `for` loop"""

    @qd.kernel
    def k(n: qd.i32):
        for i in qd.static(range(10)):
            if n > i:
                continue

    k(3)


def mistake_loop_variable_shadows():
    """Variable 'i' is already declared in the outer scope and cannot be used as loop variable"""

    @qd.kernel
    def k():
        i = 1
        for i in range(3):
            pass

    k()


def mistake_nested_loop_variable_shadows():
    """Variable 'i' is already declared in the outer scope and cannot be used as loop variable"""

    @qd.kernel
    def k():
        for i in range(3):
            for i in range(3):
                pass

    k()


def mistake_loop_variable_after_the_loop():
    """Name "i" is not defined"""

    @qd.kernel
    def k() -> qd.i32:
        for i in range(3):
            pass
        return i

    k()


def mistake_unknown_loop_config():
    @qd.kernel
    def k():
        qd.loop_config(speed=3)
        for i in range(3):
            pass

    k()


def mistake_real_while_condition():
    """conditions must be an integer; found f32"""

    @qd.kernel
    def k(x: qd.f32):
        y = x
        while y:
            y -= 1.0

    k(3.0)
