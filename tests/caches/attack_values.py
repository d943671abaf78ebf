"""What the programs of `attacks` read: the rows, kind by kind; see `attack_rows`."""

from __future__ import annotations

from typing import NamedTuple

from tests.caches.attack_names import NAME_ROWS
from tests.caches.attack_state import STATE_ROWS

__all__ = ["ROWS", "Row"]


class Row(NamedTuple):
    """setup: defines ``G``. uses: expressions of ``X``. kept: unchanged it must be found again.

    module: the text of the module ``attack_helper``.
    """

    kind: str
    name: str
    setup: str
    uses: tuple[str, ...]
    kept: bool = False
    module: str = ""


NUMBER = (
    "X", "X + 1", "X == §1", "X > §1", "X in (§1, 12)", "isinstance(X, int)", "max(X, §2)",
    "divmod(X, 3)[1]", "math.sqrt(X)", "len(f'{X}')", "f'{X}' == '§1'", "round(X / 3, 2)",
    "-X", "(X, 3)[0]", "sum([X, 1])", "int(X)", "str(X) == '§1'", "X if X else 7",
    "len([v for v in range(9) if v < X])", "'{}'.format(X) == '§1'", "np.float32(X)", "1 / (X + 1)",
)  # fmt: skip
TEXT = (
    "len(X)", "X == 'ab'", "X.upper() == 'AB'", "X[0] == 'a'", "X.count('b')", "X.find('c')",
    "f'{X}!' == 'ab!'", "X in ('ab', 'x')", "'b' in X", "len(X + 'c')", "len(X * 2)",
    "X.startswith('ab')", "{'ab': 3}.get(X, 4)", "len('%s' % X)", "len(X.split('b'))",
)  # fmt: skip
SEQUENCE = (
    "len(X)", "sum(X)", "X[0]", "X[-1]", "sorted(X)[0]", "§1 in X", "max(X)", "min(X)",
    "X.count(§1)", "sum([v * v for v in X])", "len(X[1:])", "X[0] + X[1]", "sum(reversed(X))",
    "list(X)[1]", "[v for v in X if v > §1][0] if len(X) > 9 else X[1]", "tuple(X) == (§1, §2)",
    "sum([i * v for i, v in enumerate(X)])", "X == X", "len(X) * 2 if X else 3", "any(X)",
)  # fmt: skip
TABLE = (
    "X['k']", "X.get('k', 1)", "len(X)", "sum(X.values())", "list(X)[0] == 'k'", "'z' in X",
    "sum([v for _, v in X.items()])", "X == {'k': §1}", "len(sorted(X.keys()))",
)  # fmt: skip

_VALUES = (
    ("an integer", "G = pick(§1, §2)", NUMBER),
    ("a float", "G = pick(§1.5, §2.5)", NUMBER),
    ("the type of a number", "G = pick(§1, §1.0)", (*NUMBER, "isinstance(X, float)", "X // 2")),
    ("a truth value", "G = pick(1, True)", ("X", "isinstance(X, bool)", "len(str(X))", "X + X")),
    ("a zero's sign", "G = pick(0.0, -0.0)", ("math.copysign(1.0, X)", "len(str(X))", "1.0 + X")),
    ("a text", "G = pick('ab', 'abc')", TEXT),
    ("a text's letters", "G = pick('ab', 'aB')", TEXT),
    ("None", "G = pick(None, §1)", ("1 if X is None else X", "X is None", "5 if X else 6")),
    ("a list", "G = [§1, pick(§2, §3)]", SEQUENCE),
    ("a tuple", "G = (§1, pick(§2, §3))", SEQUENCE),
    ("the length of a list", "G = [§1, §2, §3][:pick(2, 3)]", SEQUENCE),
    ("a list that is changed", "G = [§1, §2]\nif PICK == 'b':\n    G.append(§3)", SEQUENCE),
    ("the order of a tuple", "G = pick((§1, §2), (§2, §1))", SEQUENCE),
    ("the type in a list", "G = [§1, pick(1, 1.5)]", SEQUENCE),
    ("a range", "G = range(pick(§1, §2) + 2)", ("len(X)", "sum(X)", "X[1]", "max(X)", "3 in X")),
    ("a dict", "G = {'k': pick(§1, §2)}", TABLE),
    ("the keys of a dict", "G = {'k': §1, pick('y', 'z'): §2}", TABLE),
    ("the order of a dict", "G = pick({'k': 1, 'z': 2}, {'z': 2, 'k': 1})", TABLE),
    ("a nested list", "G = [[§1, [§2, pick(§3, §4)]], 1]",
     ("X[0][1][1]", "sum(X[0][1])", "max(X[0][1])", "len(X[0][1])", "X[0][1] == [§2, §3]")),
    ("a set", "G = {§1, pick(§2, §3)}", ("len(X)", "§2 in X", "max(X)", "sum(X)", "sorted(X)[1]")),
    ("a list in itself twice", "L = [§1]\nG = [L, pick(L, [§1])]",
     ("X[0] is X[1]", "X[0] == X[1]", "len(X)")),
    ("a complex number", "G = pick(1 + 2j, 1 + 3j)", ("X.imag", "abs(X)", "X == 1 + 2j")),
    ("bytes", "G = pick(b'ab', b'abc')", ("len(X)", "X[0]", "X.count(b'b')", "X == b'ab'")),
    ("a slice", "G = slice(0, pick(2, 3))", ("len('abcd'[X])", "X.stop", "X.indices(9)[1]")),
    ("equal numbers", "A = 10 ** 6 * §1\nG = [A, pick(A, int(str(A)))]", ("X[0] is X[1]",)),
    ("a NaN", "N = float('nan')\nG = [N, pick(N, float('nan'))]",
     ("X[1] in [X[0]]", "[X[0]] == [X[1]]", "X.count(X[0])", "X.index(X[1])")),
    ("a long integer", "G = 7 ** 900 * pick(1, 2)", ("X % 11", "X > 5", "X.bit_length()")),
    ("a vector", "G = qd.Vector([1.0, pick(2.0, 3.0)])", ("X[1]", "X.sum()", "X.norm()")),
    ("a data type", "G = pick(qd.f32, qd.f64)",
     ("1 if X is qd.f32 else 2", "X == qd.f64", "len(X.name)", "X.size")),
    ("a vector type", "G = qd.types.vector(pick(2, 3), qd.f32)", ("X.n", "X(1.0).sum()")),
    ("the keys' types", "G = {1: §1} if PICK == 'a' else {1.0: §1}", ("list(X)[0] / 2", "len(X)")),
)  # fmt: skip
_BY_IDENTITY = ("a NaN", "equal numbers", "a list in itself twice")
VALUES = [
    Row("value", name, setup, uses, name not in _BY_IDENTITY) for name, setup, uses in _VALUES
]

# ---- special methods

_SPECIAL = {
    "__len__": ("§", ("len(X)", "5 if X else 6")),
    "__getitem__": ("§", ("X[0]", "X['k']", "operator.getitem(X, 0)", "operator.itemgetter(0)(X)")),
    "__iter__": ("iter([§])", ("sum(X)", "list(X)[0]", "[v for v in X][0]", "max(X)",
        "sorted(X)[0]")),
    "__contains__": ("?", ("3 in X", "operator.contains(X, 3)", "1 if 3 not in X else 2")),
    "__eq__": ("?", ("X == 3", "X in (1, 2)", "[1].count(X)", "X != 3", "(X, 1) == (2, 1)")),
    "__ne__": ("?", ("X != 3",)),
    "__lt__": ("?", ("X < 3", "max([X, 1]) == 1", "operator.lt(X, 1)")),
    "__bool__": ("?", ("5 if X else 6", "bool(X)", "not X", "(X and 1) == 1", "operator.not_(X)")),
    "__add__": ("§", ("X + 1", "sum([1], X)", "operator.add(X, 1)")),
    "__radd__": ("§", ("1 + X", "sum([X])")),
    "__mul__": ("§", ("X * 2",)),
    "__neg__": ("§", ("-X", "operator.neg(X)")),
    "__abs__": ("§", ("abs(X)",)),
    "__int__": ("§", ("int(X)",)),
    "__float__": ("§.0", ("float(X)", "math.sqrt(X)", "np.float32(X)")),
    "__index__": ("§", ("range(X)[-1]", "[0, 1, 2, 3, 4, 5, 6, 7, 8][X]", "hex(X) == '0x2'")),
    "__round__": ("§", ("round(X)",)),
    "__call__": ("§", ("X()", "X(1, k=2)", "operator.call(X)", "functools.partial(X)()",
                       "sorted([3, 4], key=X)[0]", "list(map(X, [1]))[0]",
                       "functools.reduce(X, [1, 2])", "max([3, 4], key=X)")),
    "__str__": ("'x' * §", ("len(str(X))", "len(f'{X}')", "len('{}'.format(X))", "len('%s' % X)")),
    "__repr__": ("'x' * §", ("len(repr(X))", "len(f'{X!r}')", "len(f'{[X]}')", "len(str((X,)))")),
    "__format__": ("'x' * §", ("len(f'{X}')", "len(f'{X:3}')", "len(format(X))")),
    "__hash__": ("§", ("{§1: 5}.get(X, 6)", "hash(X)")),
    "__getattr__": ("§", ("X.anything", "getattr(X, 'anything')", "hasattr(X, 'anything') + 1")),
    "__dir__": ("['x'] * §", ("len(dir(X))",)),
    "__reversed__": ("[§]", ("list(reversed(X))[0]",)),
    "__or__": ("§", ("X | 1",)),
    "__matmul__": ("§", ("operator.matmul(X, 1)",)),
    "__length_hint__": ("§", ("operator.length_hint(X)",)),
}  # fmt: skip
_OF_CLASSES = {
    "__instancecheck__": ("?", ("isinstance(3, X)", "isinstance(3, (X, str))")),
    "__subclasscheck__": ("?", ("issubclass(int, X)",)),
}


def _body(value: str) -> str:
    """What a method returns: it differs between the variants."""
    if value == "?":
        return "pick(True, False)"
    return f"pick({value.replace('§', '§1')}, {value.replace('§', '§2')})"


def _specials() -> list[Row]:
    out: list[Row] = []
    for name, (value, uses) in {**_SPECIAL, **_OF_CLASSES}.items():
        method = f"    def {name}(self, *args, **kwargs):\n        return {_body(value)}\n"
        if name == "__getattr__":
            method = method.replace(
                "        return",
                "        if args[0][0] == '_':\n            raise AttributeError\n        return",
            )
        meta = f"class M(type):\n{method}\n\nclass G(metaclass=M):\n    pass\n"
        out.append(Row("metaclass", f"a metaclass's {name}", meta, uses))
        of_abc = meta.replace("(type)", "(abc.ABCMeta)")
        out.append(Row("metaclass", f"an ABC's {name}", of_abc, uses))
        if name in _OF_CLASSES:
            continue
        out.append(Row("object", f"an object's {name}", f"class C:\n{method}\n\nG = C()\n", uses))
        record = (
            f"@dataclasses.dataclass(eq=False)\nclass C:\n    n: int = 1\n{method}\n\nG = C()\n"
        )
        out.append(Row("object", f"a dataclass's {name}", record, uses))
        member = f"class E(enum.Enum):\n    A = 1\n    B = 2\n{method}\n\nG = E.A\n"
        out.append(Row("enum", f"an Enum's {name}", member, uses))
        number = f"class C(int):\n{method}\n\nG = C(3)\n"
        out.append(Row("object", f"a number's {name}", number, uses))
        listed = f"class C(list):\n{method}\n\nG = C([3, 4])\n"
        out.append(Row("object", f"a list's {name}", listed, uses))
    return out


# ---- attributes

_ROUTES = (
    "X.v", "getattr(X, 'v')", "getattr(X, 'v', 1)", "operator.attrgetter('v')(X)",
    "vars(X)['v']", "X.__dict__['v']", "'{0.v}'.format(X) == '§1'", "hasattr(X, 'v')",
    "getattr(X, 'w', 1) + X.v", "sorted([X], key=operator.attrgetter('v'))[0].v",
    "[o.v for o in [X]][0]", "(X, X)[0].v",
)  # fmt: skip
_METHODS = (
    "X.m()", "operator.methodcaller('m')(X)", "getattr(X, 'm')()", "list(map(X.m, [1]))[0]",
    "[o.m() for o in [X]][0]",
)  # fmt: skip
_CALLED = "    def m(*args):\n        return pick(§1, §2)\n"

_ATTRIBUTES = (
    ("of a class", "class G:\n    v = pick(§1, §2)\n", _ROUTES, False),
    ("of an object", "class C:\n    pass\n\n\nG = C()\nG.v = pick(§1, §2)\n", _ROUTES, False),
    ("of a base", "class B:\n    v = pick(§1, §2)\n\n\nclass G(B):\n    pass\n", _ROUTES, False),
    ("of a replaced base", "class A:\n    v = §1\n\n\nclass B:\n    v = §2\n\n\n"
     "class G(pick(A, B)):\n    pass\n", (*_ROUTES, "issubclass(X, A)", "len(X.__mro__)"), False),
    ("of one of two bases", "class A:\n    v = §1\n\n\nclass B:\n    v = §2\n\n\n"
     "class G(*pick((A, B), (B, A))):\n    pass\n", _ROUTES, False),
    ("that comes or goes", "class G:\n    u = 1\n\n\nif PICK == 'b':\n    G.v = 2\n",
     ("hasattr(X, 'v') + 1", "getattr(X, 'v', 7)"), False),
    ("in slots", "class C:\n    __slots__ = ('v',)\n\n\nG = C()\nG.v = pick(§1, §2)\n",
     _ROUTES, False),
    ("by a property", "class C:\n    @property\n    def v(self):\n        return pick(§1, §2)\n\n\n"
     "G = C()\n", _ROUTES, False),
    ("by a property of a global", "LIST = [pick(§1, §2)]\n\n\nclass C:\n    @property\n"
     "    def v(self):\n        return LIST[0]\n\n\nG = C()\n", _ROUTES, False),
    ("by a property with state", "class C:\n    n = pick(0, 1)\n\n    @property\n    def v(self):\n"
     "        C.n += 1\n        return C.n % 3\n\n\nG = C()\n",
     (*_ROUTES, "X.v + X.v * 10 + X.v * 100"), False),
    ("by a cached property", "class C:\n    @functools.cached_property\n    def v(self):\n"
     "        return pick(§1, §2)\n\n\nG = C()\n", _ROUTES, False),
    ("by a descriptor", "class D:\n    def __get__(self, obj, cls):\n"
     "        return pick(§1, §2)\n\n\n"
     "class G:\n    v = D()\n", _ROUTES, False),
    ("by __getattribute__", "class C:\n    def __getattribute__(self, name):\n"
     "        if name == 'v':\n            return pick(§1, §2)\n"
     "        return object.__getattribute__(self, name)\n\n\nG = C()\n", _ROUTES, False),
    ("by a metaclass", "class M(type):\n    @property\n    def v(cls):\n"
     "        return pick(§1, §2)\n"
     "\n\nclass G(metaclass=M):\n    pass\n", _ROUTES, False),
    ("by a class's parameter", "class G:\n    def __class_getitem__(cls, key):\n"
     "        return pick(§1, §2)\n", ("X[0]", "X[int]"), False),
    ("by a subclass", "class B:\n    def __init_subclass__(cls):\n        cls.v = pick(§1, §2)\n"
     "\n\n"
     "class G(B):\n    pass\n", _ROUTES, False),
    ("of a namespace", "G = types.SimpleNamespace(v=pick(§1, §2))\n", _ROUTES, False),
    ("of a module", "G = types.ModuleType('made')\nG.v = pick(§1, §2)\n", _ROUTES, False),
    ("of an imported module", "G = attack_helper\nG.v = pick(§1, §2)\n", _ROUTES, False),
    ("of a function", "def G():\n    return 1\n\n\nG.v = pick(§1, §2)\n", _ROUTES, False),
    ("of a named tuple", "T = collections.namedtuple('T', 'v w')\nG = T(pick(§1, §2), 3)\n",
     (*_ROUTES, "X[0]", "X._asdict()['v']", "len(X._fields)"), False),
    ("of a typed tuple", "class T(typing.NamedTuple):\n    v: int = pick(§1, §2)\n\n\nG = T()\n",
     (*_ROUTES, "X[0]", "X._field_defaults['v']"), False),
    ("of a dataclass", "@dataclasses.dataclass\nclass C:\n    v: int = pick(§1, §2)\n\n\nG = C()\n",
     (*_ROUTES, "dataclasses.astuple(X)[0]", "X == C(§1)", "C().v"), False),
    ("of a generic class", "T = typing.TypeVar('T')\n\n\nclass G(typing.Generic[T]):\n"
     "    v = pick(§1, §2)\n", (*_ROUTES, "X[int].v"), False),
    ("by a weak reference", "class C:\n    v = pick(§1, §2)\n\n\nO = C()\nG = weakref.ref(O)\n",
     ("X().v",), False),
    ("by a weak proxy", "class C:\n    v = pick(§1, §2)\n\n\nO = C()\nG = weakref.proxy(O)\n",
     _ROUTES, False),
    ("a method of a class", f"class G:\n{_CALLED}", _METHODS, False),
    ("a method of an object", f"class C:\n{_CALLED}\n\nG = C()\n", _METHODS, False),
    ("a class method", f"class G:\n    @classmethod\n{_CALLED}", _METHODS, False),
    ("a static method", f"class G:\n    @staticmethod\n{_CALLED}", _METHODS, False),
    ("a spoofed module", f"class C:\n    __module__ = 'math'\n{_CALLED}    v = pick(§1, §2)\n"
     "    __call__ = m\n\n\nG = C()\n", (*_METHODS, "X()", "X.v"), False),
    ("a class's name", "class G:\n    pass\n\n\nG.__name__ = pick('G', 'Glong')\n",
     ("len(X.__name__)", "len(str(X))", "len(f'{X}')"), False),
    ("a docstring", "class G:\n    __doc__ = pick('ab', 'abc')\n",
     ("len(X.__doc__)", "len(getattr(X, '__doc__'))"), False),
)  # fmt: skip
ATTRIBUTES = [
    Row("attribute", f"an attribute {name}", setup, uses, kept)
    for name, setup, uses, kept in _ATTRIBUTES
]

# ---- classes

_CLASSES = (
    ("a registered class", "class A(abc.ABC):\n    pass\n\n\nclass C:\n    pass\n\n\n"
     "if PICK == 'b':\n    A.register(C)\n    A.register(int)\nG = pick(A, A)\n",
     ("issubclass(C, X)", "isinstance(3, X)", "isinstance(5, (str, X))")),
    ("a class registered with Python's",
     "if PICK == 'b':\n    collections.abc.Sized.register(int)\n"
     "G = collections.abc.Sized\n", ("isinstance(3, X)", "issubclass(int, X)")),
    ("a subclass hook", "class G(abc.ABC):\n    @classmethod\n"
     "    def __subclasshook__(cls, other):\n"
     "        return pick(True, False)\n", ("isinstance(3, X)", "issubclass(int, X)")),
    ("a base", "class A:\n    pass\n\n\nclass G(pick(A, object)):\n    pass\n",
     ("issubclass(X, A)", "len(X.__mro__)", "len(X.__bases__)", "isinstance(G(), A)")),
    ("a base of the same name", "class A:\n    pass\n\n\nclass G(A):\n    pass\n\n\n"
     "if PICK == 'b':\n    class A:\n        pass\n", ("issubclass(X, A)",
     "issubclass(X, (A, str))")),
    ("the bases of an object's class", "class A:\n    pass\n\n\nclass C(pick(A, object)):\n"
     "    pass\n"
     "\n\nG = C()\n", ("isinstance(X, A)", "issubclass(type(X), A)", "issubclass(X.__class__, A)")),
    ("the bases of a dataclass", "class A:\n    pass\n\n\n@dataclasses.dataclass\n"
     "class C(pick(A, object)):\n    n: int = 1\n\n\nG = C()\n",
     ("isinstance(X, A)", "issubclass(X.__class__, A)")),
    ("a class behind a name", "class A:\n    pass\n\n\nclass B:\n    pass\n\n\nG = pick(A, B)\n",
     ("X is A", "X == A", "X in (A, int)", "issubclass(X, A)", "{A: 3}.get(X, 4)",
      "X.__name__ == 'A'")),
    ("a spoofed class", "class A:\n    pass\n\n\nclass C:\n    __class__ = pick(A, int)\n\n\n"
     "G = C()\n",
     ("isinstance(X, A)", "isinstance(X, int)")),
    ("a runtime protocol", "@typing.runtime_checkable\nclass G(typing.Protocol):\n    v: int\n\n\n"
     "class C:\n    pass\n\n\nif PICK == 'b':\n    C.v = 1\nO = C()\n", ("isinstance(O, X)",)),
    ("a union", "class A:\n    pass\n\n\nG = pick(int, A) | str\n", ("isinstance(3, X)",)),
    ("a type variable", "G = typing.TypeVar('T', bound=pick(int, str))\n",
     ("1 if X.__bound__ is int else 2",)),
)  # fmt: skip
CLASSES = [Row("class", name, setup, uses) for name, setup, uses in _CLASSES]

# ---- enumerations

_MEMBER = (
    "X.value", "len(X.name)", "X is E.A", "X == E.A", "X in (E.A, E.B)", "{E.A: 3}.get(X, 4)",
    "X == 1", "len(f'{X}')", "len(str(X))", "X is E.B", "isinstance(X, int)", "[X][0].value",
)  # fmt: skip
_ENUM = (
    "len(X)", "len([m for m in X])", "X['A'].value", "X(1).value", "sum([m.value for m in X])",
    "X.A.value", "[len(m.name) for m in X][0]",
)  # fmt: skip
_ENUMS = (
    ("a member's value", "class E(enum.Enum):\n    A = pick(1, 3)\n    B = 2\n\n\nG = E.A\n",
     _MEMBER),
    ("another member", "class E(enum.IntEnum):\n    A = 1\n    B = 2\n\n\nG = pick(E.A, E.B)\n",
     _MEMBER),
    ("an alias", "class E(enum.Enum):\n    A = 1\n    B = pick(1, 2)\n\n\nG = E.B\n", _MEMBER),
    ("the kind of an Enum", "class E(pick(enum.Enum, enum.IntEnum)):\n    A = 1\n    B = 2\n\n\n"
     "G = E.A\n", _MEMBER),
    ("a member's type", "class E(enum.Enum):\n    A = pick(1, 1.0)\n    B = 2\n\n\nG = E.A\n",
     (*_MEMBER, "isinstance(X.value, int)")),
    ("the members", "class G(enum.Enum):\n    A = 1\n    B = 2\n    if PICK == 'b':\n"
     "        C = 3\n",
     _ENUM),
    ("the values", "class G(enum.IntEnum):\n    A = 1\n    B = pick(§3, §4) + 9\n", _ENUM),
    ("the order", "class G(enum.Enum):\n    if PICK == 'a':\n        A = 1\n        BB = 2\n"
     "    else:\n        BB = 2\n        A = 1\n", _ENUM),
    ("the aliases of an Enum", "class G(enum.Enum):\n    A = 1\n    B = pick(2, 1)\n", _ENUM),
)  # fmt: skip
_ODD_ENUMS = (
    ("a member's attribute", "class E(enum.Enum):\n    A = 1\n    B = 2\n\n"
     "    def __init__(self, n):\n"
     "        self.v = n + pick(§1, §2)\n\n\nG = E.A\n", ("X.v", "[X][0].v", "(X, E.B)[0].v")),
    ("a property of a member", "class E(enum.Enum):\n    A = 1\n\n    @property\n    def v(self):\n"
     "        return pick(§1, §2)\n\n\nG = E.A\n", ("X.v", "[X][0].v", "getattr(X, 'v')")),
    ("a class attribute of a member", "class E(enum.Enum):\n    A = 1\n    __v__ = pick(§1, §2)\n"
     "\n\n"
     "G = E.A\n", ("X.__v__", "[X][0].__v__", "[m for m in E][0].__v__")),
    ("a method of an Enum", "class E(enum.Enum):\n    A = 1\n\n    def m(self):\n"
     "        return pick(§1, §2)\n\n\nG = E.A\n", ("X.m()", "operator.methodcaller('m')(X)")),
    ("a missing member", "class G(enum.Enum):\n    A = 1\n    B = 2\n\n    @classmethod\n"
     "    def _missing_(cls, value):\n        return pick(cls.A, cls.B)\n", ("X(7).value",)),
    ("the boundary of flags", "class G(enum.Flag, boundary=pick(enum.KEEP, enum.CONFORM)):\n"
     "    A = 1\n", ("X(7).value", "X['A'].value")),
    ("a metaclass of an Enum", "class M(enum.EnumMeta):\n    def __len__(cls):\n"
     "        return pick(§1, §2)\n\n\nclass G(enum.Enum, metaclass=M):\n    A = 1\n", ("len(X)",)),
    ("a mixin of an Enum", "class B:\n    def __eq__(self, other):\n"
     "        return pick(True, False)\n"
     "\n    def __hash__(self):\n        return 1\n\n\nclass E(B, enum.Enum):\n    A = 1\n\n\n"
     "G = E.A\n",
     ("X == 5", "X in (1, 2)")),
)  # fmt: skip
ENUMS = [Row("enum", name, setup, uses, True) for name, setup, uses in _ENUMS]
ENUMS += [Row("enum", name, setup, uses) for name, setup, uses in _ODD_ENUMS]

ROWS: list[Row] = [
    *VALUES,
    *_specials(),
    *ATTRIBUTES,
    *CLASSES,
    *ENUMS,
    *[Row(*row) for row in (*STATE_ROWS, *NAME_ROWS)],
]
