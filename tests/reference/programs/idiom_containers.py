"""Lists and dicts that change while a kernel is compiled, and dicts with keys of run time."""

import quadrants as qd


def case_append_in_a_static_loop():
    @qd.kernel
    def k(n: qd.i32) -> qd.types.vector(3, qd.i32):
        xs = []
        for i in qd.static(range(3)):
            xs.append(n * i)
        return qd.Vector(xs)

    return k(4)


def case_append_vectors():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        xs = []
        for i in qd.static(range(2)):
            xs.append(qd.Vector([n, i]))
        return xs[1][1] + xs[0][0] * 10

    return k(4)


def case_append_in_a_function():
    @qd.func
    def f(x):
        xs = []
        for i in qd.static(range(3)):
            xs.append(x + i)
        return xs

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        xs = f(n)
        return len(xs) * 10 + xs[2]

    return k(4)


def case_append_to_a_template():
    @qd.func
    def f(xs: qd.template(), x):
        xs.append(x)

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        xs = [n]
        f(xs, n + 1)
        return len(xs) * 10 + xs[1]

    return k(4)


def case_append_under_a_static_if():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        xs = [n]
        if qd.static(True):
            xs.append(3)
        return len(xs) * 10 + xs[1]

    return k(4)


def case_appended_variable_is_assigned():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        xs = []
        m = n
        xs.append(m)
        m = 9
        return xs[0]

    return k(4)


def case_append_in_a_run_time_loop():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        xs = []
        for i in range(n):
            xs.append(i)
        return len(xs)

    return k(4)


def case_append_to_a_copy():
    @qd.func
    def f(xs, x):
        xs.append(x)

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        xs = [n]
        f(xs, n)
        return len(xs)

    return k(4)


def case_extend_insert_pop():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        xs = [n, 5]
        xs.insert(0, 7)
        xs.extend([n + 1, 3])
        last = xs.pop()
        return xs[0] * 1000 + xs[3] * 100 + last * 10 + len(xs)

    return k(4)


def case_dict_update():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        d = {"a": n}
        d.update({"b": n + 1})
        d["a"] = 7
        return d["b"] * 10 + d["a"]

    return k(4)


def case_new_entry_of_a_dict():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        d = {"a": n}
        d["b"] = n + 1
        return d["b"]

    return k(4)


def case_dict_with_keys_of_run_time():
    @qd.kernel
    def k(n: qd.i32) -> qd.types.vector(3, qd.i32):
        d = {n * i: i + n for i in range(3)}
        m = n + 1
        e = {m: 7}
        return qd.Vector([len(d), sum(d.values()), e[m]])

    return k(4)


def case_dict_read_with_a_key_of_run_time():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        d = {3: 30, 4: 40, 5: 50}
        return d[n]

    return [k(3), k(4), k(5)]


def case_set_of_constants():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        s = n
        for v in qd.static({i // 2 for i in range(6)}):
            s += v
        return s + qd.static(3 in {3, 4})

    return k(4)
