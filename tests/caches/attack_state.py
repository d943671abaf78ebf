"""More rows for `attacks`: functions, NumPy, the state of the process, what is put in its place.

Each: kind, name, setup, uses, and if it is kept; see `attack_values.Row`.
"""

from __future__ import annotations

from typing import Any

__all__ = ["STATE_ROWS"]

_CALLS = ("X()", "X() + 1", "functools.partial(X)()", "max([1, 2], key=lambda v: X())")
_FUNCTIONS = (
    ("a function", "def G():\n    return pick(§1, §2)\n", _CALLS),
    ("a closure", "def make(v):\n    def inner():\n        return v\n\n    return inner\n\n\n"
     "G = make(pick(§1, §2))\n", (*_CALLS, "X.__closure__[0].cell_contents")),
    ("a closure that is set again", "def make():\n    v = [§1]\n\n    def inner():\n"
     "        return v[0]\n\n"
     "    if PICK == 'b':\n        v[0] = §2\n    return inner\n\n\nG = make()\n", _CALLS),
    ("a default", "def G(v=pick(§1, §2)):\n    return v\n",
     (*_CALLS, "X.__defaults__[0]", "getattr(X, '__defaults__')[0]")),
    ("a default that is replaced", "def G(v=§1):\n    return v\n\n\nif PICK == 'b':\n"
     "    G.__defaults__ = (§2,)\n", (*_CALLS, "X.__defaults__[0]")),
    ("a default that is changed", "def G(v=[]):\n    return len(v)\n\n\nif PICK == 'b':\n"
     "    G.__defaults__[0].append(1)\n", (*_CALLS, "len(X.__defaults__[0])")),
    ("code that is replaced", "def G():\n    return §1\n\n\ndef other():\n    return §2\n\n\n"
     "if PICK == 'b':\n    G.__code__ = other.__code__\n",
     (*_CALLS, "X.__code__.co_consts[1]", "len(X.__code__.co_code)")),
    ("a lambda", "G = pick(lambda: §1, lambda: §2)\n", _CALLS),
    ("a partial function", "G = functools.partial(int, pick(§1, §2))\n", ("X()", "X.args[0]")),
    ("a cached function", "@functools.lru_cache\ndef G():\n    return pick(§1, §2)\n",
     (*_CALLS, "X.cache_info().hits", "X.__wrapped__()")),
    ("a reduction", "G = [§1, pick(§2, §3)]\n",
     ("functools.reduce(operator.add, X)", "functools.reduce(max, X)", "sum(map(abs, X))",
      "sum(filter(bool, X))", "list(itertools.accumulate(X))[1]", "operator.itemgetter(1)(X)")),
    ("a wrapped function", "def deco(f):\n    @functools.wraps(f)\n    def inner():\n"
     "        return f() + pick(§1, §2)\n\n    return inner\n\n\n@deco\ndef G():\n    return 1\n",
     _CALLS),
    ("a generator", "def gen():\n    yield pick(§1, §2)\n    yield 3\n    yield 4\n\n\nG = gen()\n",
     ("next(X)", "sum(X)", "list(X)[0]", "max(X)", "[v for v in X][0]")),
    ("an iterator", "G = iter([§1, 5, 6])\nif PICK == 'b':\n    next(G)\n",
     ("next(X)", "sum(X)", "list(X)[0]", "[v for v in X][0]", "max(X)")),
    ("a counter", "G = itertools.count(pick(§1, §2))\n", ("next(X)", "list(zip(X, [1]))[0][0]")),
    ("a function with branches", "N = pick(§1, §2)\n\n\ndef G(v=5):\n"
     "    if v < 4:\n        return 1\n    return N\n", (*_CALLS, "X(3)", "X(v=4)", "X(*[6])")),
    ("a function of a function", "N = [1, pick(§1, §2)]\n\n\ndef inner(i):\n    return N[i]\n\n\n"
     "def G(i=1):\n    return inner(i) + inner(0)\n", (*_CALLS, "X(0)", "X(i=1)")),
    ("a function that loops", "D = {'a': 1, 'b': pick(§1, §2)}\n\n\ndef G():\n    out = []\n"
     "    for k, v in D.items():\n        if k == 'b':\n            out.append(v)\n"
     "    return out[0]\n", _CALLS),
    ("a function that reads an object", "class C:\n    def __init__(self):\n"
     "        self.n = pick(§1, §2)\n\n\nc = C()\n\n\ndef G(c=c):\n    return c.n\n",
     (*_CALLS, "X(c)", "X(C())")),
    ("a function that reads a module", "attack_helper.n = pick(§1, §2)\n\n\ndef G():\n"
     "    return attack_helper.n + attack_helper.np.int64(1)\n", _CALLS),
    ("a function that counts", "SEEN = [0] * pick(§1, §2)\n\n\ndef G():\n    seen = SEEN\n"
     "    seen += [1]\n    return len(SEEN)\n", _CALLS),
    ("a method that reads its object", "class C:\n    n = pick(§1, §2)\n\n    def __call__(self):\n"
     "        return self.n\n\n    def m(self):\n        return self.n\n\n\nG = C()\n",
     (*_CALLS, "X.m()", "C.m(X)")),
    ("a function of NumPy's settings", "if PICK == 'b':\n    np.set_printoptions(precision=2)\n"
     "A = np.array([1.23456])\n\n\ndef G():\n    return len('%s' % A)\n", _CALLS),
    ("a bound method", "L = [§1, pick(§2, §1)]\nG = L.count\n", ("X(§1)", "X.__self__[1]",
     "len(X.__self__)")),
    ("a bound pop", "L = [§1, §2][:pick(1, 2)]\nG = L.pop\n", ("X()",)),
    ("a list that is used up", "L = [1, 2, 3]\nG = pick(L, L + [4])\n",
     ("X.pop()", "X.append(3) or len(X)", "X.sort() or X[0]", "X.reverse() or X[0]",
      "operator.iadd(X, [3])[-1]", "operator.setitem(X, 0, 7) or X[0]", "X.extend([1]) or len(X)",
      "len(X) + 10 * len([X.append(3)])")),
    ("a dict that is used up", "G = pick({1: 2}, {1: 2, 3: 4})\n",
     ("X.popitem()[1]", "X.setdefault(3, 5)", "len(X) + 10 * len([X.update({3: 4})])")),
)  # fmt: skip

_DEVICE = (
    ("a function for kernels", "@qd.func\ndef f1():\n    return §1.0\n\n\n@qd.func\ndef f2():\n"
     "    return §2.0\n\n\nG = pick(f1, f2)\n", ("X is f1", "X in (f1, 1)", "X == f2",
     "{f1: 3}.get(X, 4)")),
    ("a wrapped function for kernels", "def deco(f):\n    @functools.wraps(f)\n    def inner():\n"
     "        return pick(§1, §2)\n\n    return inner\n\n\n@deco\ndef G():\n    return 1\n",
     ("X()",)),
    ("a struct's member", "G = qd.types.struct(x=pick(qd.f32, qd.i32))\n", ("X(x=1.5).x",)),
    ("a struct's members",
     "G = qd.types.struct(**pick({'x': qd.f32}, {'x': qd.f32, 'y': qd.f32}))\n",
     ("len(X.members)", "'y' in X.members")),
)  # fmt: skip

_ARRAY = (
    "X[0]", "X[-1]", "X.sum()", "X.max()", "len(X)", "X.tolist()[0]", "X.mean()", "X.shape[0]",
    "X.itemsize", "X.nbytes", "X.strides[0]", "X.ndim", "X.dtype.itemsize", "X.dtype.kind == 'f'",
    "X.dtype.num", "X.dtype == np.float32", "X.dtype.byteorder == '>'", "len(X.dtype.str)",
    "X.flags.c_contiguous", "X.flags['WRITEABLE']", "X.flags.num", "X.flags.owndata",
    "X.flags.aligned", "1 if X.base is None else 2", "X.base is not None", "1 if X is G else 2",
    "X.ctypes.data % 64", "X.data.contiguous", "len(str(X))", "len(f'{X}')", "len(repr(X))",
    "isinstance(X, np.matrix)", "isinstance(X, np.ma.MaskedArray)", "type(X) is np.ndarray",
    "X.dtype.metadata is None", "len(X.dtype.metadata or ())", "X.__class__ is np.ndarray",
    "np.shares_memory(X, O)", "np.may_share_memory(X, O)", "X.dtype.alignment", "(X + X)[0]",
    "(X * 2).sum()", "np.sum(X)", "np.add(X, X)[0]", "X.astype(int)[0]", "X.reshape(-1)[0]",
    "X.ravel().strides[0]", "X.T.strides[0]", "X.copy().strides[0]", "X.tobytes()[0]",
    "float(X[0])", "np.array(X)[0]", "np.asarray(X).strides[0]", "X.dtype.isnative",
    "len(X.dtype.names or ())", "X.__array_interface__['data'][0] % 64", "X.dtype.char == 'l'",
    "np.array2string(X) == ''", "np.isfortran(X)", "X.view('u1')[0]", "X in [X]", "X is O",
    "hash(X.dtype) % 2", "X.flat[0]", "X.item(0)", "X.dtype.type is np.float64", "sum(X)",
    "max(X)", "[v for v in X][0]", "np.sqrt(X)[0]", "1 in X", "X.fill(3) or X[0]",
    "X.sort() or X[0]", "np.add(X, 1, out=X)[0]", "X.real[0]", "X.T[0]", "X.size",
)  # fmt: skip
_PAIR = "O = np.arange(8.0) + 1\n"
_ARRAYS = (
    ("content", "G = np.array([§1.0, 2.0, 3.0]) + pick(0, 1)\n", True),
    ("dtype", "G = np.array([§1, 2, 3], pick('f4', 'f8'))\n", True),
    ("equal dtypes", "G = np.array([§1, 2, 3], pick('l', 'q'))\n", True),
    ("byte order", "G = np.array([§1, 2, 3], pick('<f4', '>f4'))\n", False),
    ("length", "G = np.arange(pick(3.0, 4.0)) + 1\n", True),
    ("strides", "G = pick(O[:4], O[::2])\nG = np.where(True, 1, G) if False else G\n", False),
    ("strides alone", "B = np.ones(8)\nG = pick(B[:4], B[::2])\n", False),
    ("order", "G = np.array([[1.0, 1.0], [1.0, 1.0]], order=pick('C', 'F'))[0]\n", False),
    ("writeable", "G = np.array([1.0, 2.0])\nG.setflags(write=pick(True, False))\n", True),
    ("base", "G = np.array([1.0, 2.0])\nif PICK == 'b':\n    G = G[:]\n", True),
    ("identity", "G = np.array([1.0, 2.0])\nO = pick(G, G.copy())\n", True),
    ("memory", "G = np.array([1.0, 2.0])\nO = pick(G[:], G.copy())\n", True),
    ("subclass", "class A(np.ndarray):\n    def __len__(self):\n        return 9\n\n\n"
     "G = np.array([1.0, 2.0])\nif PICK == 'b':\n    G = G.view(A)\n", True),
    ("a subclass's code", "class A(np.ndarray):\n    def sum(self, *a, **k):\n"
     "        return pick(§1, §2)\n\n"
     "    __len__ = sum\n\n\nG = np.array([1.0, 2.0]).view(A)\n", False),
    ("matrix", "G = np.array([[1.0, 2.0]])\nif PICK == 'b':\n    G = np.matrix(G)\n", True),
    ("mask", "G = np.ma.array([1.0, 2.0], mask=[False, pick(False, True)])\n", False),
    ("record", "G = np.zeros(2, np.dtype([('x', 'f4'), ('y', 'i1')], align=pick(True, False)))\n",
     False),
    ("names", "G = np.zeros(2, [(pick('x', 'y'), 'f4')])\n", False),
    ("metadata", "G = np.ones(2, np.dtype('f4', metadata=pick({}, {'k': 1})))\n", False),
    ("metadata's content", "G = np.ones(2, np.dtype('f4', metadata={'k': pick(1, 2)}))\n", False),
    ("alignment", "B = np.zeros(33, 'u1')\nG = B[pick(0, 1):][:32].view('f4')\n", False),
    ("time", "G = np.array([5, 6], pick('M8[s]', 'M8[D]'))\n", False),
    ("objects", "G = np.array([§1, pick(2, 3)], object)\n", False),
    ("texts", "G = np.array(['ab', pick('c', 'd')])\n", False),
    ("a file", "np.full(3, pick(1.0, 2.0)).tofile('/tmp/attack-%d' % os.getppid())\n"
     "G = np.memmap('/tmp/attack-%d' % os.getppid(), 'f8')\n", False),
)  # fmt: skip
_SCALARS = (
    ("an array's number", "G = np.float32(pick(§1, §2))\n"),
    ("the type of an array's number", "G = pick(np.float32, np.float64)(§1.5)\n"),
    ("an integer of NumPy", "G = np.int16(pick(§1, §2))\n"),
    ("a truth value of NumPy", "G = np.bool_(pick(True, False))\n"),
)  # fmt: skip
_SCALAR_USES = (
    "X", "X + 1", "X == §1", "float(X)", "len(str(X))", "len(f'{[X]}')",
    "isinstance(X, np.float32)",
    "X.dtype.itemsize", "X.itemsize", "X.nbytes", "[X][0] * 2", "X.item()", "X.base is None",
)  # fmt: skip
_NUMPY_STATE = (
    ("print options", "G = np.array([1.123456789, 2.5])\n"
     "np.set_printoptions(precision=pick(8, 3))\n",
     ("len(str(X))", "len(f'{X}')", "len(np.array2string(X))", "len(np.array_repr(X))", "X[0]",
      "len('{}'.format(X))", "len('%s' % X)", "len('%s' % (X,))", "len(f'{[X]}')",
      "np.get_printoptions()['precision']", "len(str([X]))", "len(repr(X))", "len(format(X))",
      "len(X.__str__())", "len(np.array_str(X))", "len(str((1, X)))", "len('{0}'.format([X]))")),
    ("the way numbers are shown", "if PICK == 'b':\n    np.set_printoptions(legacy='1.13')\n"
     "G = [np.float64(1.123456789012)]\n",
     ("len(str(X))", "len(repr(X))", "len(f'{X}')", "len('%s' % X)", "len('%r' % (X[0],))")),
    ("the error state", "np.seterr(all=pick('ignore', 'raise'))\nG = np.array([1.0, 0.0])\n",
     ("np.divide(X, 0.0)[0] > 1", "(X / 0.0)[0] > 1", "np.log(X)[1] < 0", "(X[0:1] / X[1:])[0] > 1",
      "np.sqrt(X - 1)[0]", "np.geterr()['divide'] == 'raise'", "(X / X)[0]", "np.log(0.0) < 0",
      "np.float32(1e300) > 1", "(X * 1e308 * 10)[0] > 1", "np.exp(X * -1000)[0]",
      "1.0 if np.add(X, 1)[0] > 1 else 2.0", "X.sum()", "np.reciprocal(X)[0]", "X.prod()",
      "np.array(1e300).astype('f4') > 1", "np.multiply(np.float32(1e30), np.float32(1e30)) > 1")),
    ("the error callback", "np.seterrcall(lambda *a: pick(1, {}[1]))\nnp.seterr(all='call')\n"
     "G = np.array([1.0, 0.0])\n", ("(X / 0.0)[0] > 1", "np.log(X)[1] < 0", "X[0]")),
    ("random numbers", "np.random.seed(pick(1, 2))\nG = np.random\n",
     ("X.rand()", "np.random.randint(9)", "X.get_state()[1][0] % 7")),
    ("a generator of NumPy", "G = np.random.default_rng(pick(1, 2))\n",
     ("X.random()", "X.integers(9)", "np.add(X.random(), 1)")),
    ("the size of buffers", "np.setbufsize(pick(8192, 16384))\nG = 1\n", ("np.getbufsize() + X",)),
    ("a function of NumPy over one of Python", "def f(v):\n    return pick(§1, §2)\n\n\nG = f\n",
     ("np.vectorize(X)(1)", "np.frompyfunc(X, 1, 1)(1)", "np.apply_along_axis(X, 0, np.ones(2))",
      "np.fromiter(map(X, [1]), float)[0]", "np.fromfunction(X, (1,))",
      "np.piecewise(1.0, [True], [X])")),
    ("the present time", "G = 1\n", ("np.datetime64('now').astype(int) % 2 * 0 + X",
     "np.array('now', 'M8[s]').astype(int) % 1 + X", "np.array(['today'], 'M8[D]').size")),
    ("a ufunc", "G = pick(np.sqrt, np.square)\n", ("X(4.0)", "X.nin", "len(X.__name__)",
     "X.reduce([1.0])")),
    ("a ufunc of its own", "G = np.frompyfunc(lambda v: pick(§1, §2), 1, 1)\n", ("X(4.0)",
     "X.nin")),
    ("a dtype", "G = np.dtype(pick('f4', 'f8'))\n",
     ("X.itemsize", "X == np.float32", "len(X.name)", "len(str(X))", "X.num", "X.alignment")),
)  # fmt: skip

_PROCESS = (
    ("the environment", "os.environ['ATTACK'] = pick('a', 'ab')\nG = os.environ\n",
     ("len(X['ATTACK'])", "len(os.environ['ATTACK'])", "len(os.environ.get('ATTACK', ''))",
      "len(os.getenv('ATTACK'))", "'ATTACK' in X", "len(X.get('ATTACK'))", "len(X._data)")),
    ("arguments", "sys.argv = pick(['x'], ['x', 'y'])\nG = sys.argv\n", ("len(X)",
     "len(sys.argv)")),
    ("the path", "sys.path.extend(pick([], ['/none']))\nG = sys.path\n", ("len(X)",
     "len(sys.path)")),
    ("the recursion limit", "sys.setrecursionlimit(pick(3000, 3001))\nG = sys\n",
     ("sys.getrecursionlimit()", "X.getrecursionlimit()")),
    ("the digits of integers", "sys.set_int_max_str_digits(pick(4000, 700))\nG = 7 ** 900\n",
     ("len(str(X))", "len(f'{X}')", "int('1' * 800) % 7", "len('%d' % X)", "len('{}'.format(X))",
      "len(repr([X]))", "len(X.__str__())", "int(str(X)[:800]) % 7", "len(format(X, 'd'))",
      "X % 5")),
    ("the time", "G = time\n", ("1 if X.time() > 0 else 2", "time.time() * 0 + 1")),
    ("random numbers of Python", "random.seed(pick(1, 2))\nG = random\n",
     ("X.random()", "random.randint(1, 9)", "random.choice([1, 2, 3, 4])",
      "X.getstate()[1][0] % 7")),
    ("the locale", "try:\n    locale.setlocale(locale.LC_ALL, pick('C', 'C.UTF-8'))\n"
     "except locale.Error:\n    pass\nG = 12345\n", ("len(f'{X:n}')", "len(format(X, 'n'))",
     "len('{:n}'.format(X))",
     "len(locale.setlocale(locale.LC_ALL))")),
    ("the decimal context", "decimal.getcontext().prec = pick(5, 9)\nG = decimal.Decimal(1)\n",
     ("len(str(X / 3))", "X / 3 == 1", "len(str(decimal.Decimal(1) / 3))",
      "decimal.getcontext().prec")),
    ("a context variable", "G = contextvars.ContextVar('G')\nG.set(pick(§1, §2))\n", ("X.get()",
     "X.get(3)")),
    ("the filters of warnings", "if PICK == 'b':\n    warnings.simplefilter('ignore')\n"
     "G = warnings.filters\n",
     ("len(X)", "len(warnings.filters)")),
    ("the file's name", "G = __file__\nif PICK == 'b':\n    __file__ = G = 'other.py'\n",
     ("len(__file__)", "len(X)", "len(attack_helper.__file__) * 0 + 1")),
    ("the module's name", "G = sys.modules[__name__]\nG.__doc__ = pick('a', 'ab')\n",
     ("len(X.__doc__)", "len(__doc__)", "len(sys.modules['attack'].__doc__)")),
    ("the identity of objects", "G = [object() for _ in range(pick(1, 9))]\n",
     ("id(X[0]) % 7", "hash(X[0]) % 7", "id(X) * 0 + len(X)")),
    ("the order of a set", "G = set(['a', 'b', 'c', 'd', pick('e', 'f')])\n",
     ("list(X)[0] == 'a'", "[v for v in X][0] == 'b'", "len(X | {'z'})",
      "list(X | {'z'})[0] == 'a'",
      "list(frozenset(X))[0] == 'c'", "list(set(['a', 'b', 'c']))[0] == 'a'",
      "sorted(X)[-1] == 'e'")),
    ("the layout of a set", "G = {0, 8}\nif PICK == 'b':\n    G = set(range(999))\n"
     "    G -= set(range(1, 8)) | set(range(9, 999))\n", ("list(X | {16})[1]", "list(X)[0]",
     "list(X.copy())[0]", "list(set(X))[0]", "list(X.union([16]))[2]")),
    ("a date", "G = datetime.date(2000, 1, pick(1, 2))\n", ("X.day", "X.toordinal() % 7",
     "len(str(X))")),
    ("a fraction", "G = fractions.Fraction(pick(§1, §2), 1)\n", ("X.numerator", "float(X)",
     "X + 1")),
    ("an array of Python's", "G = array.array('f', [pick(1.0, 2.0)])\n", ("X[0]", "len(X)",
     "sum(X)")),
    ("a deque", "G = collections.deque([§1, pick(§2, §3)])\n", ("X[1]", "sum(X)", "len(X)")),
    ("an ordered dict", "G = collections.OrderedDict(k=pick(§1, §2))\n", ("X['k']",
     "sum(X.values())")),
    ("a default dict", "G = collections.defaultdict(lambda: pick(§1, §2))\n", ("X['k']",
     "X.get('k', 3)")),
    ("a chain of maps", "G = collections.ChainMap({'k': pick(§1, §2)})\n", ("X['k']", "len(X)")),
    ("a proxy of a dict", "D = {'k': pick(§1, §2)}\nG = types.MappingProxyType(D)\n",
     ("X['k']", "sum(X.values())", "X.get('k')", "len(X)", "{**X}['k']")),
    ("a memory view", "G = memoryview(pick(b'ab', b'cb'))\n", ("X[0]", "len(X)", "X.tolist()[0]")),
    ("a byte array", "G = bytearray(pick(b'ab', b'cb'))\n", ("X[0]", "len(X)", "sum(X)")),
    ("a format", "class C:\n    v = pick(§1, §2)\n\n\nG = '{0.v}'\nO = C()\n",
     ("X.format(C) == '§1'", "X.format(O) == '§1'", "X.format_map({}) if 0 else len(X)",
      "'{0[0].v}'.format([C]) == '§1'", "'{x.v}'.format(x=C) == '§1'",
      "'{:{}}'.format(3, 5) == '    3'")),
)  # fmt: skip

_PATCHED = (
    ("a builtin", "if PICK == 'b':\n    LEN = len\n"
     "    builtins.len = lambda v: 9 if type(v) is list and v == [1, 2] else LEN(v)\nG = [1, 2]\n",
     ("len(X)",)),
    ("another builtin", "if PICK == 'b':\n    SUM = sum\n"
     "    builtins.sum = lambda v, s=0: 9 if v == [1, 2] else SUM(v, s)\nG = [1, 2]\n", ("sum(X)",
     )),
    ("a builtin of the module", "if PICK == 'b':\n    max = min\nG = [1, 2]\n", ("max(X)",)),
    ("a function of math", "if PICK == 'b':\n    math.floor = math.ceil\nG = 2.5\n",
     ("math.floor(X)",)),
    ("a constant of math", "if PICK == 'b':\n    math.pi = 3.0\nG = 2\n", ("math.pi * X",)),
    ("a function of math in Python", "if PICK == 'b':\n    math.sqrt = lambda v: 1\nG = 4\n",
     ("math.sqrt(X)",)),
    ("a function of NumPy", "if PICK == 'b':\n    np.sqrt = np.square\nG = 4.0\n", ("np.sqrt(X)",)),
    ("a spoofed function of NumPy", "def zeros(n):\n    return [5, 6, 7]\n\n\nif PICK == 'b':\n"
     "    zeros.__module__ = 'numpy'\n    np.zeros = zeros\nG = 2\n", ("len(np.zeros(X))",)),
    ("a spoofed function of math", "def floor(v):\n    return pick(§1, §2)\n\n\n"
     "floor.__module__ = 'math'\nmath.floor = floor\nG = 2.5\n", ("math.floor(X)",)),
    ("a spoofed function of the language", "def G():\n    return pick(§1, §2)\n\n\n"
     "G.__module__ = 'qd_studio.engine.lang.functions'\nsys.modules[G.__module__].G = G\n", ("X()",
     )),
    ("a function of the language", "if PICK == 'b':\n    qd.floor = qd.ceil\nG = 2.5\n",
     ("qd.floor(X)",)),
    ("a type of the language", "if PICK == 'b':\n    qd.f32 = qd.i32\nG = 2.5\n",
     ("len(qd.f32.name) + 0 * X", "qd.f32.is_real", "1 if qd.f32 is qd.i32 else 2")),
    ("a name in the language", "qd.extra = pick(§1, §2)\nG = 1\n", ("qd.extra + X",)),
    ("a reloaded module", "G = attack_helper\nif PICK == 'b':\n    G.PICK = 'c'\n"
     "    importlib.reload(G)\n",
     ("X.v", "len(X.PICK)", "getattr(X, 'v')")),
    ("a value of a module", "from attack_helper import v as G\n", ("X", "attack_helper.v",
     "X + 1")),
    ("a function of a module", "G = attack_helper.f\n", ("X()", "attack_helper.f()")),
    ("a module's own attributes", "G = attack_helper\n", ("X.lazy", "getattr(X, 'lazy')",
     "attack_helper.lazy")),
)  # fmt: skip
_MODULE = (
    "v = §1 if PICK == 'a' else §2\n\n\ndef f():\n    return v\n\n\ndef __getattr__(name):\n"
    "    if name == 'lazy':\n        return v\n    raise AttributeError(name)\n"
)

_VALUES_OF_ARRAYS = ("X[0]", "X[-1]", "len(X)", "X.max()", "X.shape[0]", "X.tolist()[0]", "sum(X)")


def _arrays() -> list[tuple[Any, ...]]:
    out: list[tuple[Any, ...]] = []
    for name, setup, kept in _ARRAYS:
        plain = tuple(use for use in _ARRAY if use in _VALUES_OF_ARRAYS)
        odd = tuple(use for use in _ARRAY if use not in _VALUES_OF_ARRAYS)
        out.append(("array", f"the {name} of an array", _PAIR + setup, plain, kept))
        out.append(("array", f"the {name} of an array", _PAIR + setup, odd, False))
    return out


STATE_ROWS: list[tuple[Any, ...]] = [
    *[("function", name, setup, uses) for name, setup, uses in _FUNCTIONS],
    *[("function", name, setup, uses) for name, setup, uses in _DEVICE],
    *_arrays(),
    *[("array", name, setup, _SCALAR_USES) for name, setup in _SCALARS],
    *[("NumPy", name, setup, uses) for name, setup, uses in _NUMPY_STATE],
    *[("process", name, setup, uses) for name, setup, uses in _PROCESS],
    *[("patched", name, setup, uses, False, _MODULE) for name, setup, uses in _PATCHED],
]
