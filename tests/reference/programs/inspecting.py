"""`isinstance` of values of run time: functions that take fields or values."""

import quadrants as qd


def case_function_of_a_field_or_a_value():
    x = qd.field(qd.i32, 3)
    x.fill(4)

    @qd.func
    def first(a: qd.template()):
        r = 0
        if qd.static(isinstance(a, qd.Field)):
            r = a[0]
        elif qd.static(isinstance(a, (qd.Field, dict, type(None)))):
            r = -1
        else:
            r = qd.cast(a, qd.i32) * 10
        return r

    @qd.func
    def largest(a: qd.template()):
        r = 1
        if qd.static(not isinstance(a, (qd.ScalarField, str))):
            r = a.max()
        return r

    @qd.kernel
    def k(n: qd.i32) -> qd.types.vector(4, qd.i32):
        v = qd.Vector([n, n + 1])
        return qd.Vector([first(x), first(n), largest(v), largest(x)])

    return [int(one) for one in k(2)]
