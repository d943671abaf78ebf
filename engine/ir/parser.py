"""Text to IR: reads the text that `printer.to_text` writes.

The grammar, line by line (blank lines and lines that start with ``;`` are skipped)::

    kernel NAME(PARAM, ...) [-> (TYPE, ...)] stage=STAGE TAIL {
      <TYPE> $ID = OPCODE [$ID, ...] [ATTRIBUTE] [@LOC] [REGION {]
      $ID : OPCODE [$ID, ...] [ATTRIBUTE] [@LOC] [REGION {]
      } REGION {
      }
    }
    function NAME(NAME: TYPE, ...) [-> (TYPE)] stage=STAGE [@LOC] {      after the kernel
    loc @N = 'FILE' LINE:COL END_LINE:END_COL 'FUNCTION' (- | @PARENT)
    $ID : offloaded $ID [{NUMBER: NUMBER, ...}] [@LOC]       a task that repeats another one
    $ID : range_for $ID [{NUMBER: NUMBER, ...}] [@LOC]       a loop at the top that does so

    TAIL       [may_alias] [graph] [autodiff=MODE] [global_tmp=N] [@LOC]
    PARAM      NAME: TYPE
            or NAME: ndarray<TYPE, NDIM[; N, ...][, needs_grad][, BOUNDARY][, axes=(N, ...)]>
            or field NAME: TYPE[EXTENT, ...[; N, ...]] [layout(DIGIT, ...)]
    EXTENT     N or FIRST:END; DIGIT  AXIS[/DIVISOR][%MODULUS]*STRIDE (see `params`)
    ATTRIBUTE  a number after `const`; {FIELD=LITERAL ...} for a record; [LITERAL] for the others

The op table defines the operands, attributes and regions of each opcode. The parser checks only the
form: an operand may name any op of the text, so the parser reads broken IR, for the verifier. A
task or loop that repeats another one gets a copy of its attribute and blocks, with ids of its own;
where a constant there has the text before a colon, it gets the number after that.
"""

from __future__ import annotations

import ast
import math
import re
from functools import lru_cache
from typing import Any, Final, NoReturn

from ..errors import IRParseError, SourceSpan
from ..types import DataType, Type, parse_type, u1, void
from . import codes as C
from .attrs import RECORDS, Param
from .builder import normalize
from .codes import BY_NAME, CODES
from .edit import clone, clone_into, replace_uses
from .loc import UNKNOWN, Loc, get_loc
from .op import Arg, Block, Callee, Func, Op
from .param_reader import ARG, PARAM, read_arg, read_param
from .printer import format_const

__all__ = ["parse"]

_HEAD: Final = re.compile(r"kernel ([^\s(]+)\(")
_FUNCTION: Final = re.compile(r"function ([^\s(]+)\(")
_RESULTS: Final = re.compile(r" -> \(([^)]*)\)")
_TAIL: Final = re.compile(
    r" stage=(\w+)( may_alias)?( graph)?(?: autodiff=(\w+))?(?: global_tmp=(\d+))?"
    r"(?: @(\d+))? \{$"
)
_OP: Final = re.compile(r"(?:<(\*?\w+)> )?\$(\d+) ([=:]) (\w+)((?:(?: |, )\$\d+)*)(?: @(\d+)$)?")
"""With the location of an op that has neither an attribute nor regions: most lines."""
_NUMBER: Final = re.compile(r"\d+")
_CONST: Final = re.compile(r" ([^\s@{]+)")
_FIELD: Final = re.compile(r" ?(\w+)=")
_MARK: Final = re.compile(r" @(\d+)")
_NUMBERS: Final = re.compile(r" \{([^{}]*)\}")
_PAIR: Final = re.compile(r"(\S+): (\S+)")
_REGION: Final = re.compile(r" (\w+) \{$")
_NEXT: Final = re.compile(r"\} (\w+) \{$")
_STRING: Final = re.compile(r"'[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\"")
_LOC: Final = re.compile(
    rf"loc @(\d+) = (?:({_STRING.pattern}) (\d+):(\d+) (\d+):(\d+) ({_STRING.pattern})"
    r" (?:-|@(\d+))$)?"
)
_RECORD: Final = [RECORDS.get(info.attr) for info in CODES]


def parse(text: str, file: str = "<ir>") -> Func:
    """The function that ``text`` shows; ``file`` is its name in errors.

    Raises IRParseError with line and column.
    """
    return _Parser(text, file).run()


# The same few attributes are on thousands of lines; they are immutable.
_value: Final = lru_cache(4096)(ast.literal_eval)


def _text_of(op: Op) -> str:
    """The text of a constant that is a float; empty for any other op."""
    t = op.type
    real = op.code == C.CONST and isinstance(t, DataType) and t.is_real
    return format_const(op.attr, t) if real else ""  # type: ignore[arg-type]


def _literal_end(line: str, at: int) -> int:
    """The end of the Python literal that starts at ``at``; -1 if it is not closed.

    A literal ends before the blank or closing bracket that is outside its own brackets.
    """
    depth = 0
    while at < len(line):
        char = line[at]
        if char in "'\"":
            match = _STRING.match(line, at)
            if match is None:
                return -1
            at = match.end()
            continue
        if char in "([{":
            depth += 1
        elif char in ")]}":
            if depth == 0:
                return at
            depth -= 1
        elif char == " " and depth == 0:
            return at
        at += 1
    return at if depth == 0 else -1


class _Parser:
    """One pass over the lines; operands and locations are resolved at the end."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.lines = text.split("\n")
        self.at = -1
        """Index of the current line."""
        self.line = ""
        """The current line without its indentation."""
        self.ops: dict[int, Op] = {}
        self.types: dict[str | None, Type] = {None: void}
        """Those of ops, by name."""
        self.operands: list[tuple[Op, list[int], int]] = []
        """Op, ids of its operands, index of its line, for ops with operands further down."""
        self.repeats: list[tuple[Op, int]] = []
        """Tasks that repeat another one, index of the line."""
        self.marks: list[tuple[Op | Func, int, int]] = []
        """Op or function, number of its location, index of the line."""
        self.locs: dict[int, Loc] = {}
        self.strings: dict[str, str] = {}

    # --- errors and lines --------------------------------------------------------------------

    def fail(self, message: str, column: int = 0, line: int | None = None) -> NoReturn:
        """Raise an error at ``column`` of the current line's text, or at the line ``line``."""
        at = self.at if line is None else line
        source = self.lines[min(at, len(self.lines) - 1)]
        # After the end of the text there is no line.
        col = column + (len(source) - len(source.lstrip(" ")) if at < len(self.lines) else 0)
        at = min(at, len(self.lines) - 1)
        col = len(source[:col].encode())
        raise IRParseError(
            f"line {at + 1}, column {col}: {message}",
            span=SourceSpan(self.file, at + 1, col, at + 1, col, "", source),
        )

    def advance(self) -> bool:
        """Step to the next line that holds something; False at the end of the text."""
        lines = self.lines
        at = self.at + 1
        while at < len(lines):
            line = lines[at].rstrip(" \r").lstrip(" ")
            if line and line[0] != ";":
                self.at, self.line = at, line
                return True
            at += 1
        self.at, self.line = at, ""
        return False

    def literal(self, start: int, end: int) -> Any:
        """The value of the Python literal between two columns."""
        try:
            return _value(self.line[start:end])
        except (ValueError, SyntaxError):
            self.fail("not a Python literal", start)

    def string(self, text: str, column: int) -> str:
        """The value of a string that a location has: the same few are in thousands of them."""
        found = self.strings.get(text)
        if found is None:
            found = self.strings[text] = self.literal(column, column + len(text))
        return found

    def type(self, name: str, column: int) -> Type:
        try:
            return parse_type(name)
        except ValueError:
            self.fail(f"unknown type {name!r}", column)

    def data_type(self, name: str, column: int) -> DataType:
        t = self.type(name, column)
        return t if isinstance(t, DataType) else self.fail(f"{name} is not a data type", column)

    # --- the parts of a text -----------------------------------------------------------------

    def run(self) -> Func:
        if not self.advance():
            self.fail("expected a kernel, found nothing")
        func = self.head()
        self.body(func)
        while self.advance():
            if self.line.startswith("function "):
                self.function(func)
            else:
                self.location()
        for target, number, line in self.marks:
            loc = self.locs.get(number)
            target.loc = loc if loc else self.fail(f"@{number} is not in the table", 0, line)
        ops = self.ops
        for op, ids, line in self.operands:
            for id in ids:
                if id not in ops:
                    self.fail(f"no op has the id ${id}", 0, line)
            op.args = tuple([ops[id] for id in ids])
        func.next_id = max(ops, default=-1) + 1
        for op, line in self.repeats:
            self.repeat(func, op, line)
        return func

    def repeat(self, func: Func, task: Op, line: int) -> None:
        """Copy what a task, or a loop, repeats."""
        what = "loop" if task.code == C.RANGE_FOR else "task"
        (same,) = task.args if len(task.args) == 1 else (task,)
        if same.code != task.code or not same.regions or same.block is not task.block:
            self.fail(f"a {what} repeats one that has its ops", 0, line)
        numbers: dict[str, str] = dict(task.attr or ())
        task.args, task.attr = (() if what == "task" else same.args), same.attr
        task.regions = tuple([Block(task) for _ in same.regions])
        mapping = {same: task}
        for source, target in zip(same.regions, task.regions, strict=True):
            clone_into(func, source.ops, mapping, target)
        if not numbers:
            return
        ops = [op for op in mapping.values() if op is not task]
        known = {a for op in ops for a in op.args}.difference(ops)
        # Constants around loops: those that are others are so for this loop alone.
        around = [a for a in known if a.code == C.CONST and _text_of(a) in numbers]
        own = {a: clone(func, a, {}, func.body) for a in around}
        func.body.ops[:0] = own.values()
        for region in task.regions:
            replace_uses(region, dict(own))
        found: set[str] = set()
        for op in (*ops, *own.values()):
            old = _text_of(op)
            if old in numbers:
                op.attr = normalize(float(numbers[old]), op.type)  # type: ignore[arg-type]
                found.add(old)
        for old in numbers:
            if old not in found:
                self.fail(f"the {what} that is repeated has no constant {old}", 0, line)

    def body(self, func: Func) -> None:
        """The ops of a kernel or a function, to its last line."""
        self.block(func, func.body)
        if self.line != "}":
            self.fail("expected } at the end of the kernel")

    def function(self, kernel: Func) -> None:
        """A real function of ``kernel``; its first line is the current one."""
        line = self.line
        match = _FUNCTION.match(line)
        if match is None:
            self.fail("expected 'function NAME('")
        name, at = match[1], match.end()
        if name in kernel.callees:
            self.fail(f"two functions are called {name!r}", match.start(1))
        args: list[Arg] = []
        while line[at : at + 1] != ")":
            match = ARG.match(line, at)
            if match is None:
                self.fail("expected an argument 'NAME: TYPE'", at)
            try:
                args.append(read_arg(match))
            except ValueError:
                self.fail(f"unknown type {match[2]!r}", match.start(2))
            at = match.end()
        results, tail = self.results_and_tail(at + 1)
        callee = Callee(kernel, name, tuple(args), results)
        callee.stage = tail[1]
        if tail[6]:
            self.marks.append((callee, int(tail[6]), self.at))
        kernel.callees[name] = callee
        self.body(callee)

    def results_and_tail(self, at: int) -> tuple[tuple[DataType, ...], re.Match[str]]:
        """Parse the results and the rest of a first line, after the parameters."""
        line = self.line
        results: tuple[DataType, ...] = ()
        match = _RESULTS.match(line, at)
        if match:
            results = tuple(self.data_type(t, match.start(1)) for t in match[1].split(", "))
            at = match.end()
        match = _TAIL.match(line, at)
        if match is None:
            self.fail("expected ' stage=STAGE ... {'", at)
        return results, match

    def head(self) -> Func:
        """The first line."""
        line = self.line
        match = _HEAD.match(line)
        if match is None:
            self.fail("expected 'kernel NAME('")
        name, at = match[1], match.end()
        params: list[Param] = []
        while line[at : at + 1] != ")":
            match = PARAM.match(line, at)
            if match is None:
                self.fail("expected a parameter 'NAME: TYPE'", at)
            try:
                params.append(read_param(match))
            except ValueError as error:
                self.fail(str(error), at)
            at = match.end()
        results, match = self.results_and_tail(at + 1)
        func = Func(name, tuple(params), results)
        func.stage = match[1]
        func.noalias = match[2] is None
        func.graph = match[3] is not None
        func.autodiff = match[4] or "none"
        func.global_tmp_size = int(match[5] or 0)
        if match[6]:
            self.marks.append((func, int(match[6]), self.at))
        return func

    def block(self, func: Func, block: Block) -> None:
        """Ops up to the line that starts with ``}``, which becomes the current line."""
        while self.advance():
            if self.line[0] == "}":
                return
            self.op(func, block)
        self.fail("expected } before the end of the text")

    def op(self, func: Func, block: Block) -> None:
        line = self.line
        match = _OP.match(line)
        if match is None:
            self.fail("expected '<TYPE> $ID = OPCODE' or '$ID : OPCODE'")
        type_name, id_text, sign, name, operands, mark = match.groups()
        if (type_name is None) != (sign == ":"):
            self.fail("an op with a type takes '=', one without takes ':'", match.start(3))
        code = BY_NAME.get(name)
        if code is None:
            self.fail(f"unknown opcode {name!r}", match.start(4))
        type = self.types.get(type_name)
        if type is None:
            type = self.types[type_name] = self.type(str(type_name), 1)
        id = int(id_text)
        if id in self.ops:
            self.fail(f"two ops have the id ${id}", match.start(2))
        op = self.ops[id] = Op(code, type, (), None, (), id, block, UNKNOWN)
        block.ops.append(op)
        if operands:
            ids = [int(n) for n in _NUMBER.findall(operands)]
            try:
                op.args = tuple([self.ops[id] for id in ids])
            except KeyError:
                self.operands.append((op, ids, self.at))
        if mark is not None and code != C.CONST and code not in C.REGION_NAMES:
            record = _RECORD[code]
            op.attr = None if record is None else record()
            self.marks.append((op, int(mark), self.at))
            return
        repeats = operands and (
            code == C.OFFLOADED or (code == C.RANGE_FOR and line[-1] != "{" and "," not in operands)
        )
        op.attr, at = self.numbers(match.end(5)) if repeats else self.attr(op, match.end(5))
        if match := _MARK.match(line, at):
            self.marks.append((op, int(match[1]), self.at))
            at = match.end()
        names = C.REGION_NAMES.get(code, ())
        if repeats and at == len(line):
            self.repeats.append((op, self.at))
        elif names:
            op.regions = tuple(Block(op) for _ in names)
            self.regions(func, op, names, at)
        elif at != len(line):
            self.fail(f"unexpected text after {name}", at)

    def regions(self, func: Func, op: Op, names: tuple[str, ...], at: int) -> None:
        match = _REGION.match(self.line, at)
        for i, name in enumerate(names):
            if match is None or match[1] != name:
                self.fail(f"expected '{name} {{'", at)
            self.block(func, op.regions[i])
            match, at = _NEXT.match(self.line), 0
        if self.line != "}":
            self.fail("expected }")

    def attr(self, op: Op, at: int) -> tuple[Any, int]:
        """The attribute at column ``at`` and the column after it."""
        line, code = self.line, op.code
        if code == C.CONST:
            return self.const(op, at)
        record = _RECORD[code]
        if record is not None:
            return self.record(record, at) if line.startswith(" {", at) else (record(), at)
        if not line.startswith(" [", at):
            return None, at
        end = _literal_end(line, at + 1)
        if end < 0:
            self.fail("this [ is not closed", at + 1)
        values = self.literal(at + 1, end)
        if len(values) != 1:
            self.fail("expected one attribute between [ and ]", at + 1)
        return values[0], end

    def record(self, cls: Any, at: int) -> tuple[Any, int]:
        """``{field=literal ...}`` as an instance of ``cls``."""
        line = self.line
        start, values = at + 1, dict[str, Any]()
        at += 2
        while line[at : at + 1] != "}":
            match = _FIELD.match(line, at)
            end = -1 if match is None else _literal_end(line, match.end())
            if match is None or end < 0:
                self.fail("expected FIELD=LITERAL or }", at)
            if match[1] not in cls._fields:
                self.fail(f"{cls.__name__} has no field {match[1]!r}", match.start(1))
            values[match[1]] = self.literal(match.end(), end)
            at = end
        if not values:
            self.fail("an empty attribute is left out", start)
        return cls(**values), at + 1

    def numbers(self, at: int) -> tuple[Any, int]:
        """The numbers of a task that repeats another one, each after that of the other."""
        match = _NUMBERS.match(self.line, at)
        if match is None:
            return None, at
        pairs = [_PAIR.fullmatch(pair) for pair in match[1].split(", ")]
        try:
            found = tuple([(p[1], p[2]) for p in pairs if p and math.isfinite(float(p[2]))])
        except ValueError:
            found = ()
        if len(found) != len(pairs):
            self.fail("expected {NUMBER: NUMBER, ...}", at + 1)
        return found, match.end()

    def const(self, op: Op, at: int) -> tuple[Any, int]:
        match = _CONST.match(self.line, at)
        t = op.type
        if match is None or not isinstance(t, DataType):
            self.fail("a const has a data type and a value", at)
        text = match[1]
        try:
            if t.is_real:
                value: float | int = normalize(float(text), t)
            elif t is u1:
                value = ("false", "true").index(text)
            else:
                value = int(text)
                if not t.min <= value <= t.max:
                    self.fail(f"{text} is out of range for {t}", match.start(1))
        except ValueError:
            self.fail(f"{text!r} is not a value of type {t}", match.start(1))
        return value, match.end()

    def location(self) -> None:
        """A line of the location table; a parent is on an earlier line."""
        line = self.line
        match = _LOC.match(line)
        if match is None:
            self.fail("expected 'loc @N = ...' or the end of the text")
        number, file, line_at, col, end_line, end_col, name, parent = match.groups()
        if file is None:
            self.fail("expected 'FILE' LINE:COL END_LINE:END_COL 'FUNCTION' PARENT", match.end())
        caller = None
        if parent is not None:
            caller = self.locs.get(int(parent))
            if caller is None:
                self.fail(f"@{parent} is not in the table above", match.start(8) - 1)
        self.locs[int(number)] = get_loc(
            self.string(file, match.start(2)), int(line_at), int(col), int(end_line), int(end_col),
            self.string(name, match.start(7)), caller,
        )  # fmt: skip
