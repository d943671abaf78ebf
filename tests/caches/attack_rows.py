"""The programs of `attacks`: a value that is reached in one of many ways, and read in another.

A row sets a global ``G`` up, with ``pick(x, y)`` where the variants differ, and lists expressions
for `qd.static` that read it as ``X``. A *reach* puts ``G`` where the kernel finds it: a global, a
closure, an attribute, a container, an argument. ``§1`` ... ``§4`` are different small numbers.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from tests.caches.attack_names import alias_program
from tests.caches.attack_values import ROWS, Row

__all__ = ["REACHES", "Program", "generated"]

HEAD = """\
import abc, array, builtins, cmath, collections, collections.abc, contextvars, dataclasses
import datetime, decimal, enum, fractions, functools, importlib, itertools, locale, math, numbers
import operator, os, random, sys, time, types, typing, warnings, weakref
import numpy as np
from qd_studio import engine as qd
import attack_helper

PICK = 'VARIANT'
F32 = qd.types.NDArray[qd.f32, 1]


def pick(x, y):
    return x if PICK == 'a' else y


def call(kernel, *args):
    a = np.zeros(1, np.float32)
    kernel(a, *args)
    return float(a[0])


"""
KERNEL = """

@qd.kernel(fastcache=True)
def k(a: F32PARAMETERS) -> None:
    for i in range(1):
        a[i] = VALUE


def main():
    return call(kARGUMENTS)
"""


class Program(NamedTuple):
    """A program in two variants. kept: unchanged, it must be found again."""

    kind: str
    name: str
    body: str
    kept: bool
    module: str = ""

    def text(self, pick: str) -> str:
        """The main module of a variant."""
        return HEAD.replace("VARIANT", pick) + self.body

    def helper(self, pick: str) -> str:
        """The module that it imports."""
        return f"PICK = '{pick}'\n{self.module}"


def _kernel(value: str, parameters: str = "", arguments: str = "") -> str:
    text = KERNEL.replace("VALUE", value).replace("PARAMETERS", parameters)
    return text.replace("ARGUMENTS", arguments)


def _static(use: str, x: str) -> str:
    return f"1.0 * qd.static({use.replace('X', x)})"


def _named(use: str) -> str:
    return _kernel(_static(use, "G"))


def _closure(use: str) -> str:
    inner = _named(use).partition("\n\ndef main")[0].replace("\n", "\n    ")
    made = f"\n\ndef make(G):{inner}\n    return k\n\n\nk = make(G)\n"
    return made + "\n\ndef main():\n    return call(k)\n"


def _at(setup: str, x: str):
    return lambda use: setup + _kernel(_static(use, x))


def _alias(use: str) -> str:
    text = _kernel(_static(use, "x"))
    return text.replace("        a[i] =", "        x = qd.static(G)\n        a[i] =")


def _func(use: str) -> str:
    return f"\n\n@qd.func\ndef f():\n    return {_static(use, 'G')}\n" + _kernel("f()")


def _parameter(use: str) -> str:
    head = f"\n\n@qd.func\ndef f(x: qd.template()):\n    return {_static(use, 'x')}\n"
    return head + _kernel("f(G)")


def _default(use: str) -> str:
    head = f"\n\n@qd.func\ndef f(x: qd.template() = G):\n    return {_static(use, 'x')}\n"
    return head + _kernel("f()")


def _oriented(init: str):
    head = f"\n\n@qd.data_oriented\nclass S:\n    {init}\n"
    return lambda use: head + _kernel(_static(use, "s.g"), ", s: qd.template()", ", S()")


def _record(use: str) -> str:
    head = "\n\n@dataclasses.dataclass(frozen=True)\nclass R:\n    g: object\n"
    return head + _kernel(_static(use, "r.g"), ", r: qd.template()", ", R(G)")


def _argument(use: str) -> str:
    return _kernel(_static(use, "x"), ", x: qd.template()", ", G")


REACHES = {
    "a global": _named,
    "a closure": _closure,
    "an attribute of an object": _at("\n\nN = types.SimpleNamespace(g=G)\n", "N.g"),
    "an attribute of a class": _at("\n\nclass N:\n    g = G\n", "N.g"),
    "an attribute of a module": _at("\n\nattack_helper.g = G\n", "attack_helper.g"),
    "a list": _at("\n\nN = [G]\n", "N[0]"),
    "a dict": _at("\n\nN = {'g': G}\n", 'N["g"]'),
    "a local name": _alias,
    "a function": _func,
    "a template parameter": _parameter,
    "a default": _default,
    "an attribute of an argument": _oriented("def __init__(self):\n        self.g = G"),
    "an attribute of an argument's class": _oriented("g = G"),
    "a member of an argument": _record,
    "an argument": _argument,
}
KEPT = frozenset(("a global", "a closure", "an attribute of an object", "a function"))
"""Reaches through which what is cached by a name is cached, too."""


def _program(row: Row, use: str, reach: str, numbers: list[int]) -> Program:
    body = row.setup + REACHES[reach](use)
    module = row.module
    for k, number in enumerate(numbers, 1):
        body, module = (text.replace(f"§{k}", str(number)) for text in (body, module))
    name = f"{row.name}, by {use}, through {reach}"
    return Program(row.kind, name, body, row.kept and reach in KEPT, module)


def _of_aliases(rng: random.Random) -> Program:
    name, body, texts = alias_program(rng)
    body += KERNEL.replace("a[i] =", "LOCALSa[i] =")
    for key, text in texts.items():
        body = body.replace(key, text)
    for k, number in enumerate(rng.sample(range(2, 9), 4), 1):
        body = body.replace(f"§{k}", str(number))
    return Program("alias", name, body, False)


def generated(rng: random.Random, count: int, only: str = "") -> list[Program]:
    """So many different programs, each kind as often as the others as far as there are as many."""
    found: dict[str, list[Program]] = {}
    for row in ROWS:
        for use in row.uses:
            for reach in REACHES if "X" in use else ("a global",):
                numbers = rng.sample(range(2, 9), 4)
                program = _program(row, use, reach, numbers)
                if only in f"{program.kind}: {program.name}":
                    found.setdefault(row.kind, []).append(program)
    drawn = [_of_aliases(rng) for _ in range(count)]
    found["alias"] = [one for one in drawn if only in f"{one.kind}: {one.name}"]
    for programs in found.values():
        rng.shuffle(programs)
    out: list[Program] = []
    while len(out) < count and any(found.values()):
        for programs in found.values():
            if programs and len(out) < count:
                out.append(programs.pop())
    return out
