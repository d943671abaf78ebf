"""Differentiable kernels with vectors, matrices and structs, predicates, and settings of loops.

What `slopes` generates, and in it local values of several parts, whose kinds are ``2`` and ``3``
(vectors), ``m`` (a matrix of two rows) and ``s`` (a struct of a number ``a`` and a vector ``v``),
elements of arrays and fields of them, functions of vectors, and results of several parts:

    xv, xm, pv, pm, ps, x2   inputs: ndarrays of vectors and matrices, fields of vectors, matrices
                             and structs, one more ndarray of numbers, and the vector ``kv``
    ov, yv, qs               what is computed: one of them in each loop of the root

Some loops have a predicate: their body is under one ``if`` that compares an element at the
loop's index with a number.
"""

from __future__ import annotations

from .slope_model import Made, N, Node
from .slopes import Generator, Scope

__all__ = ["generate"]

_PARTS = {"2": ("[0]", "[1]", ".x", ".y"), "3": ("[0]", "[2]", ".y", ".z"),
          "m": ("[0, 0]", "[0, 1]", "[1, 0]", "[1, 1]"), "s": (".a", ".v[0]", ".v.y")}  # fmt: skip
_RESULTS = (("ov", "2"), ("yv", "3"), ("qs", "s"))


def generate(seed: int, real: str = "f64") -> Made:
    """The kernel with this seed."""
    return _Parts(seed, real).made()


class _Parts(Generator):
    def __init__(self, seed: int, real: str) -> None:
        super().__init__(seed, real)
        self.inputs = [("xv[{}]", "2"), ("xm[{}]", "m"), ("pv[{}]", "3"), ("pm[{}]", "m"),
                       ("ps[{}].v", "2"), ("ps[{}]", "s")]  # fmt: skip
        self.outputs: list[tuple[str, str]] = []
        self.vector_functions: list[str] = []
        self.integers = self.r.choice(("i32", "i32", "i8", "i16", "i64", "u8"))
        self.carry = False
        """Whether a loop of the root still needs an inner loop that carries a value."""

    def made(self) -> Made:
        if self.chance(0.5):
            self.vector_function()
        made = super().made()
        body: list[Node] = []
        for k, node in enumerate(made.body):
            plain = not (k and "loop_config" in made.body[k - 1].text)
            if node.text.startswith("for ") and plain and self.chance(0.15):
                how = self.r.choice(
                    ("block_dim=32", "serialize=True", "parallelize=2", "name='it'")
                )
                body.append(Node(f"qd.loop_config({how})"))
            body.append(node)
        return made._replace(name=f"v{self.seed}", body=tuple(body), parts=True,
                             integer=self.integers)  # fmt: skip

    def vector_function(self) -> None:
        """A function of a vector of any length and a number."""
        name = self.fresh("h")
        kind = self.r.choice(("plain", "loop", "reference", "returns"))
        text = {
            "plain": "    return qd.sin(v) * s / qd.sqrt(1.0 + v.norm_sqr())",
            "loop": "    e = v * 0.5\n    for _k in range(3):\n"
                    "        e = 0.5 * e + qd.cos(e + v) * s\n    return e",
            "reference": "    e = v + s\n    change(e, s)\n    return qd.tanh(e)",
            "returns": "    e = v\n    if s > 0.6:\n        e = qd.tanh(v * s)\n    else:\n"
                       "        e.x = s * v.y\n    return e",
        }[kind]  # fmt: skip
        if kind == "reference":
            self.functions.append(
                "@qd.func\ndef change(e: qd.template(), s):\n    e.x += e.y * s\n    e *= 0.5"
            )
        self.functions.append(f"@qd.func\ndef {name}(v, s):\n{text}")
        self.vector_functions.append(name)

    def prelude(self, scope: Scope) -> tuple[list[Node], Scope]:
        names, self.vector_functions = self.vector_functions, []
        out = super().prelude(scope)
        self.vector_functions = names
        return out

    def root(self, stage: str, scope: Scope, accumulators: tuple[str, ...]) -> Node:
        left = [r for r in _RESULTS if r not in self.outputs]
        self.outputs.append(self.r.choice(left))
        self.budget += 6
        self.carry = self.chance(0.7)
        node = super().root(stage, scope, accumulators)
        used = tuple(
            Node(f"loss[None] += qd.sin({name}{self.r.choice(_PARTS[kind])})")
            for name, kind in self.last.shaped[:2]
        )
        node = node._replace(bodies=((*node.bodies[0], *used),))
        array, kind = self.outputs[-1]
        self.inputs.append((f"{array}[{{}}]", kind))
        if not self.chance(0.5):
            return node
        index = next(t for t in _words(node.text) if t[0] == "i" and t[1:].isdigit())
        both = stage == "w"
        element = self.r.choice(
            (f"u{_both(node.text)}", f"u{_both(node.text)}") if both
            else (f"x[{index}]", f"p[{index}]", f"c[{index}]", f"x2[{index}]", f"xv[{index}].x",
                  f"ps[{index}].a", f"q[{index}]")
        )  # fmt: skip
        level = str(self.r.randint(0, 3)) if element[0] in "cq" else self.number()
        compare = self.r.choice(("<", "<=", ">", ">=", "==", "!="))
        sides = [element, level] if self.chance(0.8) else [level, element]
        bodies = [node.bodies[0]]
        if self.chance(0.4):
            bodies.append((Node(f"loss[None] += qd.sin(x[{index}])"),))
        if self.chance(0.3):
            bodies = bodies[::-1] if len(bodies) == 2 else [(Node("pass"),), *bodies]
        return Node(node.text, ((Node(f"if {f' {compare} '.join(sides)}:", tuple(bodies)),),))

    def bounds(self, i: str) -> tuple[str, ...]:
        more = (
            f"cv[{i}].x", f"cv[{i}][1]", f"qv[{i}].y", f"cv[o[{i}]][0]", "box.k", f"box.b[{i}]",
            f"qv[{i}][0], qv[{i}][1] + 2", "box.k, box.b[1]", f"box.b[c[{i}]]", f"qv[c[{i}]].x",
            f"qd.max(cv[{i}][0], qv[{i}].x)", f"cv[{i}].sum() // 2", f"cv[{i}].x * box.k // 2",
        )  # fmt: skip
        return (*super().bounds(i), *more)

    # --- statements --------------------------------------------------------------------------

    def statement(self, scope: Scope) -> tuple[list[Node], Scope]:
        local = bool(scope.shaped)
        if (
            local
            and self.budget > 0
            and scope.depth > 0
            and self.chance(0.3 if scope.loops else 0.6)
        ):
            return self.s_loop(scope)
        if not self.chance(0.7 if scope.loops else 0.5):
            return super().statement(scope)
        options = [self.let_parts, self.let_parts, self.result, self.result]
        if local:
            options += [self.set_parts] * (9 if scope.loops else 3)
        return self.r.choice(options)(scope)

    def let_parts(self, scope: Scope) -> tuple[list[Node], Scope]:
        name, kind = self.fresh("z"), self.r.choice("223ms")
        node = Node(f"{name} = {self.parts(scope, kind, 2)}")
        return [node], scope._replace(shaped=(*scope.shaped, (name, kind)))

    def set_parts(self, scope: Scope) -> tuple[list[Node], Scope]:
        name, kind = self.r.choice(scope.shaped)
        e = self.expr(scope, 1)
        if kind == "s":
            v = self.parts(scope, "2", 1)
            forms = [f"{name}.a = {e}", f"{name}.a = qd.sin({name}.a + {e})",
                     f"{name}.v = qd.tanh({v})", f"{name}.v += {v}", f"{name}.v[0] *= qd.cos({e})",
                     f"{name} = S(a={e}, v={name}.v * 0.5)"]  # fmt: skip
        else:
            v = self.parts(scope, kind, 2)
            forms = [f"{name} = qd.sin({v})", f"{name} = 0.6 * {name} + qd.tanh({v})",
                     f"{name} *= qd.cos({v})", f"{name} -= 0.2 * qd.sin({v})",
                     f"{name} = qd.tanh({name} + {e})", f"{name} /= 1.5 + qd.abs({e})",
                     f"{name} = qd.max({name}, {v})"]  # fmt: skip
            if kind == "m":
                forms += [f"{name}[{self.at(scope, 2)}, {self.at(scope, 2)}] = {e}",
                          f"{name}[1, 0] *= qd.sin({e})",
                          f"{name} = qd.tanh({name} @ {v})"]  # fmt: skip
            else:
                size = int(kind)
                forms += [f"{name}[{self.at(scope, size)}] = {e}", f"{name}.y += qd.sin({e})",
                          f"{name}[{self.at(scope, size)}] += 0.5 * {e}",
                          f"{name}.yx = {self.parts(scope, '2', 1)}",
                          f"{name}.xy += qd.sin({self.parts(scope, '2', 1)})"]  # fmt: skip
        return [Node(self.r.choice(forms))], scope

    def result(self, scope: Scope) -> tuple[list[Node], Scope]:
        """Change the parts of the result at the loop's own index."""
        index = scope.cells[0].partition("[")[2][:-1] if scope.cells else ","
        if "," in index or "+" in index or not self.outputs:
            return self.s_set(scope)
        array, kind = self.outputs[-1]
        cell, e = f"{array}[{index}]", self.expr(scope, 1)
        if kind == "s":
            v = self.parts(scope, "2", 1)
            forms = [
                f"{cell}.a += {e}",
                f"{cell}.v += {v}",
                f"{cell}.v[{self.at(scope, 2)}] -= {e}",
            ]
            stores = [f"{cell}.a = {e}", f"{cell}.v = {v}", f"{cell}.v.x = 0.5 * {cell}.v.x + {e}"]
        else:
            v = self.parts(scope, kind, 2)
            forms = [f"{cell} += {v}", f"{cell} -= {v}", f"{cell}.x += {e}",
                     f"{cell}[{self.at(scope, int(kind))}] += {e}",
                     f"{cell}.yx += {self.parts(scope, '2', 1)}"]  # fmt: skip
            stores = [f"{cell} = {v}", f"{cell} = 0.5 * {cell} + {v}", f"{cell}.y = {e}",
                      f"{cell}[{self.at(scope, int(kind))}] = {e}"]  # fmt: skip
            if self.seed % 2:
                stores = [f"{array}[o[{index}]] += {v}", f"{array}[({index} + 1) % {N}].x -= {e}"]
        if self.seed % 2 and kind == "s":
            stores = [f"{array}[o[{index}]].v += {v}"]
        return [Node(self.r.choice(forms + stores))], scope

    # --- expressions -------------------------------------------------------------------------

    def at(self, scope: Scope, size: int) -> str:
        """An index into a vector, mostly of run time."""
        i = self.integer(scope)
        return self.r.choice((f"{i} % {size}", f"c[{i}] % {size}", str(self.r.randrange(size))))

    def real_value(self, scope: Scope) -> str:
        if not scope.arrays or not self.chance(0.4):
            return super().real_value(scope)
        kind = self.r.choice("223msx")
        i = self.integer(scope)
        if kind == "x":
            return self.r.choice((f"x2[{i}]", f"ps[{i}].a", "kv.x", f"kv[{i} % 2]"))
        v = self.leaf(scope, kind)
        if kind in "23":
            w = self.leaf(scope, kind)
            return self.r.choice((
                f"{v}{self.r.choice(_PARTS[kind])}", f"{v}[{self.at(scope, int(kind))}]",
                f"{v}.dot({w})", f"{v}.sum()", f"{v}.norm(0.3)", f"{v}.max()",
                f"{v}.norm_sqr()",
            ))  # fmt: skip
        if kind == "m":
            return self.r.choice((
                f"{v}{self.r.choice(_PARTS[kind])}", f"{v}.trace()", f"{v}.determinant()",
                f"{v}[{self.at(scope, 2)}, {self.at(scope, 2)}]",
            ))  # fmt: skip
        return f"{v}{self.r.choice(_PARTS[kind])}"

    def leaf(self, scope: Scope, kind: str) -> str:
        """A value of several parts that is there already."""
        local = [name for name, k in scope.shaped if k == kind]
        local += [f"{name}.v" for name, k in scope.shaped if k == "s" and kind == "2"]
        if local and self.chance(0.7):
            return self.r.choice(local)
        i = self.integer(scope)
        place = self.r.choice((i, i, f"({i} + 1) % {N}", f"o[{i}]"))
        found = [text for text, k in self.inputs if k == kind]
        return "kv" if kind == "2" and self.chance(0.15) else self.r.choice(found).format(place)

    def parts(self, scope: Scope, kind: str, depth: int) -> str:
        """An expression of several parts, of moderate size."""
        if kind == "s":
            if self.chance(0.2):
                return self.leaf(scope, kind)
            return f"S(a={self.expr(scope, 1)}, v={self.parts(scope, '2', 1)})"
        if depth <= 0 or self.chance(0.15):
            return self.leaf(scope, kind)
        v, w = self.parts(scope, kind, depth - 1), self.parts(scope, kind, depth - 1)
        e = self.expr(scope, 1)
        forms = [
            f"(0.5 * ({v} + {w}))", f"({v} - {w})", f"(0.4 * {v} * {w})", f"({v} * {e})",
            f"qd.sin({v})", f"qd.tanh({v} + {e})", f"({v} / (1.5 + {w} * {w}))",
            f"qd.min({v}, {w})", f"qd.max({v}, {e})", f"qd.abs({v})", f"(-{v})",
            f"({v} * 3.0 % 1.7)",
            f"qd.select({self.condition(scope)}, {v}, {w})", f"qd.sqrt(1.1 + {v} * {v})",
        ]  # fmt: skip
        if kind == "m":
            a = self.parts(scope, "2", depth - 1)
            forms += [
                f"(0.4 * {v} @ {w})", f"{v}.transpose()", f"(0.3 * {a}.outer_product(kv))",
                f"(qd.Matrix.identity(real, 2) * 3.0 + qd.tanh({v})).inverse()",
                f"qd.Matrix([[{e}, {self.real_value(scope)}], [0.5, {self.real_value(scope)}]])",
            ]  # fmt: skip
            return self.r.choice(forms)
        size = int(kind)
        forms += [
            f"qd.Vector([{', '.join(self.expr(scope, 1) for _ in range(size))}])",
            f"({v} / {w}.norm(0.5))", f"(qd.abs({v}) + 1.0).normalized()",
            *(f"{name}({v}, {e})" for name in self.vector_functions * 3),
        ]  # fmt: skip
        if kind == "3":
            forms += [
                f"{v}.cross({w})",
                f"{v}.cross({w})",
                f"{v}.zxy",
                f"{self.leaf(scope, '2')}.yxy",
            ]
        else:
            m = self.parts(scope, "m", depth - 1)
            forms += [f"({m} @ {v})", f"({m} @ {v})", f"{self.leaf(scope, '3')}.zx", f"{v}.yx",
                      f"({m}.transpose() @ {v})", f"{self.leaf(scope, '3')}[1:3]"]  # fmt: skip
        return self.r.choice(forms)


def _words(text: str) -> list[str]:
    return "".join(ch if ch.isalnum() else " " for ch in text).split()


def _both(head: str) -> str:
    """The two indices of a loop, as those of an element of ``u``."""
    names = [t for t in _words(head) if t[0] == "i" and t[1:].isdigit()]
    return f"[{names[0]}, {names[1]}]"
