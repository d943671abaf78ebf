"""Boolean operators, conditional values, augmented assignment, operators that do not fit."""

import quadrants as qd

INIT = {"case_and_or_without_short_circuit": {"short_circuit_operators": False}}


def case_chained_comparisons():
    @qd.kernel
    def k(a: qd.i32) -> tuple[qd.i32, qd.i32]:
        return 1 < a < 5, 1 < a <= 5 != 3

    return [k(0), k(2), k(5)]


def case_chain_evaluates_the_middle_once():
    @qd.kernel
    def k(n: qd.types.NDArray[qd.i32, 1]) -> qd.i32:
        r = 0
        if 0 <= qd.atomic_add(n[0], 1) < 5:
            r = 1
        return r

    a = qd.ndarray(qd.i32, 1)
    return [k(a), a[0]]


def case_and_or_chains():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32, c: qd.i32) -> tuple[qd.i32, qd.i32, qd.i32]:
        return a and b and c, a or b or c, (a and b) or c

    return [k(1, 2, 3), k(0, 2, 3), k(1, 0, 3), k(0, 0, 0)]


def case_and_or_without_short_circuit():
    @qd.kernel
    def k(n: qd.types.NDArray[qd.i32, 1], a: qd.i32) -> qd.i32:
        r = 0
        if a > 0 and qd.atomic_add(n[0], 1) >= 0:
            r += 1
        return r

    n = qd.ndarray(qd.i32, 2)
    return [k(n, 0), k(n, 1), list(n.to_numpy())]


def case_conditional_expression_promotes():
    @qd.kernel
    def k(c: qd.i32) -> qd.f32:
        return (1 if c else 2.5) / 2

    return [k(0), k(1)]


def case_select_evaluates_both():
    @qd.kernel
    def k(n: qd.types.NDArray[qd.i32, 1], c: qd.i32) -> qd.i32:
        return qd.select(c, qd.atomic_add(n[0], 1) + 10, qd.atomic_add(n[1], 1) + 20)

    n = qd.ndarray(qd.i32, 2)
    return [k(n, 1), k(n, 0), list(n.to_numpy())]


def case_select_promotes():
    @qd.kernel
    def k(c: qd.i32, a: qd.i32, b: qd.f64) -> qd.f64:
        return qd.select(c > 0, a, b)

    return [k(1, 3, 0.1), k(0, 3, 0.1)]


def case_augmented_division_truncates_into_an_int():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        x = a
        x /= 2
        return x

    return [k(7), k(-7)]


def case_augmented_assignment_of_reals():
    @qd.kernel
    def k(a: qd.f32) -> tuple[qd.f32, qd.f32, qd.f32]:
        x = a
        x += 1
        x *= 2
        x /= 3
        y = a
        y //= 2
        z = a
        z %= 2
        z **= 2
        return x, y, z

    return [k(7.5), k(-7.5)]


def case_augmented_assignment_of_elements():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1]):
        a[0] += 5
        a[1] -= 5
        a[2] *= 5
        a[3] //= 2
        a[4] %= 3
        a[5] |= 8
        a[6] &= 6
        a[7] ^= 5
        a[8] <<= 2
        a[9] >>= 1
        a[10] **= 2
        a[11] /= 2

    a = qd.ndarray(qd.i32, 12)
    a.fill(7)
    k(a)
    return a.to_numpy()


def case_augmented_assignment_casts_to_the_element():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1], b: qd.types.NDArray[qd.f32, 1]):
        a[0] += 2.7
        a[1] = 3.9
        b[0] += 1
        b[1] = 7

    a, b = qd.ndarray(qd.i32, 2), qd.ndarray(qd.f32, 2)
    k(a, b)
    return [a.to_numpy(), b.to_numpy()]


def mistake_shift_of_reals():
    """unsupported operand type(s) for '<<': 'f32' and 'i32'"""

    @qd.kernel
    def k(a: qd.f32) -> qd.f32:
        return a << 1

    k(1.0)


def mistake_bit_and_of_reals():
    """unsupported operand type(s) for '&': 'f32' and 'f32'"""

    @qd.kernel
    def k(a: qd.f32) -> qd.f32:
        return a & a

    k(1.0)


def mistake_bit_not_of_reals():
    """takes integral inputs only, however 'f32' is provided"""

    @qd.kernel
    def k(a: qd.f32) -> qd.f32:
        return ~a

    k(1.0)


def mistake_and_of_reals():
    """unsupported operand type(s) for '&&'"""

    @qd.kernel
    def k(a: qd.f32) -> qd.i32:
        return a and a

    k(1.0)


def mistake_not_of_a_real():
    """takes integral inputs only"""

    @qd.kernel
    def k(a: qd.f32) -> qd.i32:
        return not a

    k(1.0)


def mistake_real_condition_of_a_conditional_expression():
    @qd.kernel
    def k(a: qd.f32) -> qd.i32:
        return 1 if a else 2

    k(1.0)


def mistake_is():
    """Operator "is" in Quadrants scope is not supported."""

    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        return a is a

    k(1)


def mistake_is_not():
    """Operator "is not" in Quadrants scope is not supported."""

    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        return a is not a

    k(1)


def mistake_in():
    """ "In" is only supported inside `qd.static`."""

    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        return a in (1, 2)

    k(1)


def mistake_negative_constant_exponent():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        return a ** (-2)

    k(2)
