"""Seeded generator of kernels that can be differentiated, as source text.

A kernel is a tree of statements (`Node`), so that a failing one can be made smaller. By
construction every index lies in its axis, values stay of moderate size, no parallel loop races, and
no element that a derivative needs is overwritten: arrays come in stages, each of which is written
by one root loop (own elements by stores, others by additions) and read by later ones.

    x, u, p        real inputs: an ndarray, one of two axes, a field
    y, w, t, loss  what is computed: an ndarray, a field, a later stage, a field without axes
    c, o, q        integers that bound loops and pick elements: ndarrays and a field
    n, a           scalar arguments, an integer and a real one

Functions are smooth but for comparisons, ``abs``, ``min`` and ``max``, next to whose steps hardly
any number lies; the harness leaves out what is.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from .slope_model import COLUMNS, ROWS, Made, N, Node

__all__ = ["Generator", "Scope", "generate"]


def generate(seed: int, real: str = "f64") -> Made:
    """The kernel with this seed."""
    return Generator(seed, real).made()


class Scope(NamedTuple):
    """What an expression may use.

    floats / settable: variables. integers: with bounds known to be in 0..N-1. vectors: local ones.
    shaped: local vectors, matrices and structs with their kinds, see `slope_parts`.
    arrays: real arrays that may be read, with their axes. own: the index of the root loop, and
    elements that this iteration may read after it wrote them. depth: of loops around.
    """

    floats: tuple[str, ...] = ()
    settable: tuple[str, ...] = ()
    integers: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    shaped: tuple[tuple[str, str], ...] = ()
    arrays: tuple[tuple[str, int], ...] = ()
    sums: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    depth: int = 0
    loops: int = 0
    can_skip: bool = False


class Generator:
    """Makes the statements of one kernel; `slope_parts` adds to it."""

    def __init__(self, seed: int, real: str) -> None:
        self.r = random.Random(seed)
        self.seed = seed
        self.real = real
        self.count = 0
        self.functions: list[str] = []
        self.names: list[str] = []
        self.budget = 26

    def chance(self, share: float) -> bool:
        return self.r.random() < share

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def made(self) -> Made:
        for _ in range(self.r.choice((0, 0, 1))):
            self.function()
        readable: list[tuple[str, int]] = [("x", 1), ("u", 2), ("p", 1)]
        stages = ["y", "w", "t"]
        body: list[Node] = []
        outer: tuple[str, ...] = ()
        accumulators: tuple[str, ...] = ()
        for _ in range(self.r.choice((1, 1, 1, 2, 2, 3))):
            scope = Scope(floats=("a", *outer), arrays=tuple(readable))
            if self.chance(0.3):
                more, scope = self.prelude(scope)
                body += more
                outer += tuple(v for v in scope.floats if v != "a" and v not in outer)
                if self.chance(0.4):
                    name = self.fresh("r")
                    body.append(Node(f"{name} = {self.number()}"))
                    accumulators += (name,)
            stage = stages.pop(0)
            inner = scope._replace(floats=("a", *outer))
            if self.chance(0.2):
                body += self.chain(stage, inner)
                outer = (*outer, *accumulators)  # set, but never summed into
                accumulators = ()
            else:
                body.append(self.root(stage, inner, accumulators))
            readable.append((stage, 2 if stage == "w" else 1))
            outer, accumulators = (*outer, *accumulators), ()
        tail = [v for v in outer if v.startswith("r")]
        for name in tail:
            body.append(Node(f"loss[None] += qd.sin({name})"))
        return Made(f"g{self.seed}", self.seed, tuple(body), tuple(self.functions), self.real)

    def function(self) -> None:
        """A `qd.func` with a loop, which is inlined."""
        name = self.fresh("f")
        scope = Scope(floats=("b", "d"), settable=("b",), depth=1, loops=1)
        value = self.expr(scope, 2)
        kind = self.r.choice(("plain", "loop", "branch"))
        lines = ["@qd.func", f"def {name}(b, d):"]
        if kind == "loop":
            lines += ["    e = b", f"    for _k in range({self.r.choice((1, 2, 3))}):",
                      f"        e = 0.6 * e + {value} * qd.cos(e)", "    return e"]  # fmt: skip
        elif kind == "branch":
            lines += ["    e = d", "    if b > 0.7:", f"        e = {value}", "    return e"]
        else:
            lines += [f"    return {value}"]
        self.functions.append("\n".join(lines))
        self.names.append(name)

    def prelude(self, scope: Scope) -> tuple[list[Node], Scope]:
        """Statements at the root."""
        out: list[Node] = []
        # A loop of a function that is called here would be one of the root, and parallel.
        names, self.names = self.names, []
        serial = scope._replace(integers=("0", "1", "2"), depth=2)
        for _ in range(self.r.randint(1, 2)):
            name = self.fresh("g")
            out.append(Node(f"{name} = {self.expr(serial, 2)}"))
            serial = serial._replace(floats=(*serial.floats, name), settable=(name,))
            if self.chance(0.3):
                condition = self.condition(serial)
                out.append(Node(f"if {condition}:", ((Node(f"{name} = {self.expr(serial, 1)}"),),)))
        self.names = names
        return out, scope._replace(floats=serial.floats)

    def chain(self, stage: str, scope: Scope) -> list[Node]:
        """Loops that run one after the other, each with what the one before has made."""
        s, i = self.fresh("i"), self.fresh("i")
        if stage == "w":
            head, inside = f"for {s} in range({ROWS - 1}):", f"for {i} in range({COLUMNS}):"
            cell = f"w[{s} + 1, {i}]"
            before: tuple[str, ...] = (f"w[{s}, {i}]", f"w[{s}, ({i} + 1) % {COLUMNS}]")
            integers: tuple[str, ...] = (s, i)
        else:
            head, inside = f"for {s} in range({N - 1}):", ""
            cell, before, integers = f"{stage}[{s} + 1]", (f"{stage}[{s}]",), (s,)
        inner = scope._replace(
            floats=(*scope.floats, *before), integers=integers, cells=(cell,), sums=("loss[None]",),
            depth=2, can_skip=True,
        )  # fmt: skip
        name = self.fresh("v")
        body: tuple[Node, ...] = (
            Node(f"{name} = {self.r.choice(before)} * {self.expr(inner, 1)}"),
        )
        inner = inner._replace(floats=(*inner.floats, name), settable=(*inner.settable, name))
        body += self.statements(inner, self.r.randint(1, 3))
        body += (Node(f"{cell} = 0.5 * {cell} + qd.sin({name})"),)
        loop = Node(head, ((Node(inside, (body,)),) if inside else body,))
        if self.chance(0.5):
            return [Node("for _ in range(1):", ((loop,),))]
        return [Node("qd.loop_config(serialize=True)"), loop]

    def root(self, stage: str, scope: Scope, accumulators: tuple[str, ...]) -> Node:
        """A loop of the root, which computes the array ``stage``."""
        i = self.fresh("i")
        sums = ("loss[None]", *accumulators)
        if stage == "w":
            j = self.fresh("i")
            head = self.r.choice((
                f"for {i}, {j} in qd.ndrange({ROWS}, {COLUMNS}):", f"for {i}, {j} in w:",
                f"for {i}, {j} in qd.ndrange(u.shape[0], u.shape[1]):",
            ))  # fmt: skip
            cells, integers = (f"w[{i}, {j}]",), (i, j)
        else:
            head = self.r.choice((
                f"for {i} in range({N}):", f"for {i} in {stage}:", f"for {i} in range(x.shape[0]):",
                f"for {i} in p:",
            ))  # fmt: skip
            cells, integers = (f"{stage}[{i}]",), (i,)
        inner = scope._replace(
            integers=integers, cells=cells, sums=sums, depth=3, loops=0, can_skip=True
        )
        body = list(self.statements(inner, self.r.randint(2, 4), first=True))
        cell = cells[0]
        if not any(cell in text for text in _texts(body)):
            body.append(self.write(self.last))
        return Node(head, (tuple(body),))

    # --- statements ------------------------------------------------------------------------

    def statements(self, scope: Scope, count: int, first: bool = False) -> tuple[Node, ...]:
        out: list[Node] = []
        if first:
            name = self.fresh("v")
            out.append(Node(f"{name} = {self.expr(scope, 2)}"))
            scope = scope._replace(floats=(*scope.floats, name), settable=(*scope.settable, name))
            self.last = scope
        for _ in range(count):
            self.budget -= 1
            made, scope = self.statement(scope)
            out += made
            if first:
                self.last = scope
        if scope.settable and self.chance(0.7):
            out.append(self.use(scope))
        return tuple(out)

    def statement(self, scope: Scope) -> tuple[list[Node], Scope]:
        r = self.r
        options = ["let", "set", "set", "set", "use"]
        if self.budget > 0 and scope.depth > 0:
            options += ["loop"] * 5 + ["if"] * 2 + ["static"]
        options += ["vector"] if self.chance(0.4) else []
        if scope.vectors:
            options += ["element", "element"]
        if scope.can_skip:
            options += ["skip"] if self.chance(0.25) else []
        options += ["search"] if self.chance(0.1) else []
        options += ["index"] if self.chance(0.5) else []
        return getattr(self, "s_" + r.choice(options))(scope)

    def s_let(self, scope: Scope) -> tuple[list[Node], Scope]:
        name = self.fresh("v")
        node = Node(f"{name} = {self.expr(scope, 3)}")
        return [node], scope._replace(
            floats=(*scope.floats, name), settable=(*scope.settable, name)
        )

    def s_set(self, scope: Scope) -> tuple[list[Node], Scope]:
        if not scope.settable:
            return self.s_let(scope)
        name = self.r.choice(scope.settable)
        e = self.expr(scope, 2)
        text = self.r.choice((
            f"{name} = {e}", f"{name} += {e}", f"{name} -= {e}", f"{name} = 0.6 * {name} + {e}",
            f"{name} = {name} * qd.cos({e})", f"{name} *= qd.tanh({e})",
            f"{name} = qd.sin({name} * {e})", f"{name} = qd.max({name}, {e})",
            f"{name} = 0.5 * {name} * {name} / (1.0 + {name} * {name}) + {e}",
            f"{name} = qd.sqrt(1.0 + {name} * {name}) * 0.7", f"qd.atomic_max({name}, {e})",
            f"{name} /= 1.5 + qd.abs({e})",
        ))  # fmt: skip
        return [Node(text)], scope

    def s_use(self, scope: Scope) -> tuple[list[Node], Scope]:
        return [self.use(scope)], scope

    def use(self, scope: Scope) -> Node:
        """Hand something on to what is computed."""
        if self.chance(0.5) or not scope.cells:
            return (
                Node(f"{self.r.choice(scope.sums)} += {self.expr(scope, 2)}")
                if (scope.sums)
                else Node(f"{self.r.choice(scope.settable)} += {self.expr(scope, 1)}")
            )
        return self.write(scope)

    def write(self, scope: Scope) -> Node:
        """Change the iteration's own element; what it held is not needed by any derivative."""
        cell = self.r.choice(scope.cells)
        e = self.expr(scope, 2)
        array, _, index = cell.partition("[")
        index = index[:-1]
        forms = [f"{cell} += {e}", f"{cell} -= {e}", f"{cell} = 0.5 * {cell} + {e}",
                 f"{cell} = {e}"]  # fmt: skip
        if "," not in index and "+" not in index:
            forms += [f"{array}[({index} + 1) % {N}] += {e}",
                      f"{array}[o[{index}]] += {e}"]  # fmt: skip
        # Additions to elements of others must not meet stores: one kind in each kernel.
        mode = self.seed % 2
        return Node(self.r.choice([forms[0], forms[1], *forms[4:]] if mode else forms[:4]))

    def s_if(self, scope: Scope) -> tuple[list[Node], Scope]:
        condition = self.condition(scope)
        inner = scope._replace(depth=scope.depth - 1)
        bodies = [self.statements(inner, self.r.randint(1, 2))]
        if self.chance(0.5):
            bodies.append(self.statements(inner, self.r.randint(1, 2)))
        return [Node(f"if {condition}:", tuple(bodies))], scope

    def s_skip(self, scope: Scope) -> tuple[list[Node], Scope]:
        inside: tuple[Node, ...] = (Node("continue"),)
        if self.chance(0.4):
            inside = (self.use(scope), *inside)
        return [Node(f"if {self.condition(scope)}:", (inside,))], scope

    def s_loop(self, scope: Scope) -> tuple[list[Node], Scope]:
        j = self.fresh("j")
        i = self.integer(scope)
        inner = scope._replace(
            integers=(*scope.integers, j), depth=scope.depth - 1, loops=scope.loops + 1,
            can_skip=True,
        )  # fmt: skip
        bounds = self.r.choice(self.bounds(i))
        head = f"for {j} in range({bounds}):"
        if self.chance(0.12):
            k = self.fresh("j")
            head = f"for {j}, {k} in qd.ndrange({self.r.choice(('2', 'n', f'c[{i}]'))}, 2):"
            inner = inner._replace(integers=(*inner.integers, k))
        body: tuple[Node, ...] = ()
        if self.chance(0.3):
            name = self.fresh("v")
            body = (Node(f"{name} = {self.expr(inner, 2)}"),)
            inner = inner._replace(floats=(*inner.floats, name), settable=(*inner.settable, name))
        body += self.statements(inner, self.r.randint(1, 3))
        return [Node(head, (body,))], scope

    def bounds(self, i: str) -> tuple[str, ...]:
        """Bounds of a loop, for an index ``i``."""
        return (
            "3", "n", f"c[{i}]", f"q[{i}]", f"{i}", f"{i}, {N}", "x.shape[0]", f"0, n % {N}",
            f"c[{i}] - 1, c[{i}] + 1", f"n, {i}", "q[0]", f"c[o[{i}]]", f"qd.min(n, c[{i}])",
            f"qd.max(c[{i}], 1)", f"c[{i}] % 2 + 1", f"{i} // 2, {i} + 1", f"c[{i}] * n // 2",
            "u.shape[0]", "0",
        )  # fmt: skip

    def s_static(self, scope: Scope) -> tuple[list[Node], Scope]:
        j = self.fresh("k")
        inner = scope._replace(depth=scope.depth - 1, can_skip=False)
        body = self.statements(inner, 1)
        body = (Node(f"{self.r.choice(scope.settable)} += 0.1 * {j}"), *body) if (
            scope.settable) else body  # fmt: skip
        return [Node(f"for {j} in qd.static(range({self.r.choice((1, 2))})):", (body,))], scope

    def s_vector(self, scope: Scope) -> tuple[list[Node], Scope]:
        name = self.fresh("m")
        parts = ", ".join(self.expr(scope, 1) for _ in range(3))
        node = Node(f"{name} = qd.Vector([{parts}])")
        return [node], scope._replace(vectors=(*scope.vectors, name))

    def s_element(self, scope: Scope) -> tuple[list[Node], Scope]:
        name = self.r.choice(scope.vectors)
        i = self.integer(scope)
        at = self.r.choice(("0", "1", f"{i} % 3", f"c[{i}] % 3"))
        e = self.expr(scope, 2)
        text = self.r.choice((
            f"{name}[{at}] = {e}", f"{name}[{at}] += {e}", f"{name} = {name} * qd.cos({e})",
            f"{name}[{at}] = {name}[{at}] * {e}", f"{name} = {name} + qd.sin({name}) * {e}",
        ))  # fmt: skip
        return [Node(text)], scope

    def s_search(self, scope: Scope) -> tuple[list[Node], Scope]:
        """A while loop that no derivative goes through."""
        name = self.fresh("k")
        i = self.integer(scope)
        body = (Node(f"{name} += 1"),)
        loop = Node(f"while {name} < {N - 1} and c[{name}] < c[{i}]:", (body,))
        out = [Node(f"{name} = 0"), loop]
        return out, scope._replace(integers=(*scope.integers, name))

    def s_index(self, scope: Scope) -> tuple[list[Node], Scope]:
        name = self.fresh("k")
        i = self.integer(scope)
        text = self.r.choice((
            f"o[{i}]", f"({i} * 2 + 1) % {N}", f"c[{i}]", f"({i} + n) % {N}",
            f"qd.cast({self.real_value(scope)} * 2.0, qd.i32) % {N}",
        ))  # fmt: skip
        return [Node(f"{name} = {text}")], scope._replace(integers=(*scope.integers, name))

    # --- expressions -----------------------------------------------------------------------

    def number(self) -> str:
        return repr(round(self.r.uniform(0.2, 1.3), 3))

    def integer(self, scope: Scope) -> str:
        """An index that is inside of every axis of length `N`."""
        name = self.r.choice(scope.integers or ("0",))
        # The index of an inner loop may have any value.
        return name if name.isdigit() or name[0] in "ik" else f"({name} + {N}) % {N}"

    def condition(self, scope: Scope) -> str:
        if not scope.arrays:  # in a function
            return f"{self.real_value(scope)} > {self.number()}"
        i = self.integer(scope)
        return self.r.choice((
            f"{self.real_value(scope)} > {self.number()}",
            f"{self.real_value(scope)} < {self.real_value(scope)}",
            f"c[{i}] > 1", f"{i} % 2 == 0", "n > 1", f"q[{i}] != {i}",
            f"{self.real_value(scope)} > 0.4 and {i} > 0",
        ))  # fmt: skip

    def real_value(self, scope: Scope) -> str:
        if scope.floats and self.chance(0.5):
            return self.r.choice(scope.floats)
        if scope.vectors and self.chance(0.3):
            i = self.integer(scope)
            return f"{self.r.choice(scope.vectors)}[{self.r.choice(('0', '2', f'{i} % 3'))}]"
        if scope.arrays:
            array, axes = self.r.choice(scope.arrays)
            i = self.integer(scope)
            if axes == 1:
                return f"{array}[{self.r.choice((i, i, f'({i} + 1) % {N}', f'o[{i}]'))}]"
            return f"{array}[{i} % {ROWS}, {self.integer(scope)}]"
        return self.number()

    def expr(self, scope: Scope, depth: int) -> str:
        """A real expression of moderate size."""
        if depth <= 0 or self.chance(0.15):
            return self.real_value(scope) if self.chance(0.85) else self.number()
        a = self.expr(scope, depth - 1)
        kind = self.r.randrange(24)
        if kind < 8:
            b = self.expr(scope, depth - 1)
            return (
                f"0.5 * ({a} + {b})", f"({a} - {b})", f"0.4 * {a} * {b}",
                f"{a} / (1.5 + {b} * {b})", f"qd.min({a}, {b})", f"qd.max({a}, {b})",
                f"qd.atan2({a}, 1.5 + qd.abs({b}))",
                f"qd.select({self.condition(scope)}, {a}, {b})",
            )[kind]  # fmt: skip
        if kind == 8 and self.names:
            return f"{self.r.choice(self.names)}({a}, {self.expr(scope, depth - 1)})"
        if kind == 9 and scope.integers:
            return f"({a} + 0.1 * {self.integer(scope)})"
        return self.r.choice((
            f"qd.sin({a})", f"qd.cos({a})", f"qd.tanh({a})", f"qd.exp(-qd.abs({a}))",
            f"qd.log(1.2 + {a} * {a})", f"qd.sqrt(1.1 + {a} * {a})", f"qd.abs({a})",
            f"qd.rsqrt(1.3 + {a} * {a})", f"qd.tan(0.5 * qd.sin({a}))",
            f"qd.asin(0.7 * qd.sin({a}))", f"qd.acos(0.7 * qd.cos({a}))",
            f"(1.2 + qd.abs({a})) ** 0.7", f"qd.sin({a}) ** 2",
            f"0.3 * qd.tanh({a}) ** 3", f"(-qd.sin({a}))", f"({a} * 3.0 % 1.7)", f"qd.floor({a})",
            f"(0.8 + 0.1 * qd.cos({a})) ** qd.sin({a})", f"qd.cast(qd.cast({a}, qd.f32), real)"
            if self.real == "f32" else f"({a} * 1.0)",
        ))  # fmt: skip


def _texts(body: list[Node] | tuple[Node, ...]) -> Iterator[str]:
    for node in body:
        yield node.text
        for inner in node.bodies:
            yield from _texts(inner)
