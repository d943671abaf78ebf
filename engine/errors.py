"""Every exception the engine raises on purpose.

    Exception
      QuadrantsCompilationError          the kernel cannot be compiled
        QuadrantsSyntaxError             (+ SyntaxError) Python that the kernel language lacks
        QuadrantsNameError               (+ NameError) a name that is not defined where it is used
        QuadrantsIndexError              (+ IndexError) indices of a wrong number or out of range
        QuadrantsTypeError               (+ TypeError) operands, arguments, results of a wrong type
        QuadrantsUnsupportedError        the language has it, this backend or version has not
        QuadrantsInternalError           a fault of the compiler, never of the kernel
          IRVerificationError            a pass left IR that breaks a rule; names the op
          IRParseError                   IR text that cannot be read back
      RuntimeError
        QuadrantsRuntimeError            a compiled kernel, or the program around it, failed
          QuadrantsAssertionError        (+ AssertionError) a kernel assert or bounds check
            AdStackOverflowError         an adstack was full; names it, and what it needs
          NanError                       (+ ArithmeticError) debug_nan: a NaN was stored
          NoGradientsError               a kernel to be differentiated uses nothing with gradients
          QuadrantsRuntimeTypeError      (+ TypeError) an argument of a wrong type at a launch
          CudaError                      a driver call failed, or a kernel crashed on the device
            CudaMemoryError              (+ MemoryError) the device has no memory left
          OpenclError                    an OpenCL call failed, or a kernel crashed on the device
            OpenclMemoryError            (+ MemoryError) the device has no memory left
          BackendUnavailableError        no such backend on this machine, with the reason

All of them carry structured data (`message`, `span`, `chain`, `hint`, ...) next to the text, so
that the studio can put the error in its place in the source, and `str(e)` renders that data for a
terminal:

    File "f.py", line 12, in k:
        y = scale(x)
            ^^^^^^^^
    File "f.py", line 5, in scale:
        return x * factr
                   ^^^^^
    Name "factr" is not defined
    hint: did you mean "factor"?

The outermost call comes first, as in a Python traceback, one banner for each inlined function.

Positions are those of Python's `ast`: lines count from 1, columns are UTF-8 byte offsets from 0,
ends are exclusive. `display_column` turns such an offset into terminal cells.

Every error survives pickling, since it may have to leave the process it was raised in. This is the
lowest layer: it imports nothing of the engine, and works with any location object that has `file`,
`line`, `col`, `end_line`, `end_col`, `func` and `parent`.
"""

from __future__ import annotations

import linecache
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from .named_tuple import NamedTuple

__all__ = [
    "AdStackOverflowError", "BackendUnavailableError", "CudaError", "CudaMemoryError",
    "IRParseError", "IRVerificationError", "LocLike", "NanError", "NoGradientsError", "OpenclError",
    "OpenclMemoryError", "QuadrantsAssertionError", "QuadrantsCompilationError",
    "QuadrantsIndexError", "QuadrantsInternalError", "QuadrantsNameError",
    "QuadrantsRuntimeError", "QuadrantsRuntimeTypeError", "QuadrantsSyntaxError",
    "QuadrantsTypeError", "QuadrantsUnsupportedError", "SourceSpan", "display_column",
]  # fmt: skip


class LocLike(Protocol):
    """The attributes that `from_loc` needs of a location; the IR's own `Loc` has them.

    `parent` is the location of the call this code was inlined at, or None in the kernel itself.
    """

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def col(self) -> int: ...
    @property
    def end_line(self) -> int: ...
    @property
    def end_col(self) -> int: ...
    @property
    def func(self) -> str: ...
    @property
    def parent(self) -> Any: ...


def _cells(char: str) -> int:
    """The width of a character in terminal cells: 2 if wide, 0 for combining marks, else 1."""
    import unicodedata  # only for errors, as is `traceback` below

    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def display_column(text: str, byte_offset: int) -> int:
    """The terminal cell where the character at UTF-8 `byte_offset` of `text` starts.

    A tab counts as one cell.

    >>> display_column("héllo", 3)
    2
    """
    before = text.encode("utf-8", "surrogatepass")[: max(byte_offset, 0)].decode("utf-8", "ignore")
    return sum(map(_cells, before))


class SourceSpan(NamedTuple):
    """A stretch of user source, with the text of its first line as it was when the error was made.

    `line` is 0 when nothing better than a file is known. Equal columns underline nothing.
    """

    file: str
    line: int
    col: int = 0
    end_line: int = 0
    end_col: int = 0
    function: str = ""
    source_line: str = ""

    @classmethod
    def from_loc(cls, loc: LocLike, source_line: str | None = None) -> SourceSpan:
        """Read one level of `loc`; the source line is the argument, else that of `linecache`."""
        if source_line is None:
            linecache.checkcache(loc.file)
            source_line = linecache.getline(loc.file, loc.line)
        end_line, text = loc.end_line or loc.line, source_line.rstrip("\r\n")
        return cls(loc.file, loc.line, loc.col, end_line, loc.end_col, loc.func, text)

    def render(self) -> str:
        """The banner: file, line and function, then the source line with carets under the span."""
        where = f'File "{self.file}"'
        if self.line:
            where += f", line {self.line}"
        if self.function:
            where += f", in {self.function}"
        lines = [where + ":"]
        text = self.source_line.rstrip()
        stripped = text.lstrip()
        if stripped:
            lines.append("    " + stripped)
            if carets := self._carets(text, len(text) - len(stripped)):
                lines.append("    " + carets)
        return "\n".join(lines)

    def _carets(self, text: str, indent: int) -> str:
        """Carets under the span, for a line shown without its `indent` leading characters."""
        size = len(text.encode("utf-8", "surrogatepass"))
        one_line = self.end_line in (0, self.line)
        start, end = min(self.col, size), min(self.end_col, size) if one_line else size
        if end <= start:
            return ""
        left = max(display_column(text, start), indent)
        width = display_column(text, end) - left
        # Tabs inside the line keep their own width only if the padding repeats them.
        head = text.encode("utf-8", "surrogatepass")[:start].decode("utf-8", "ignore")[indent:]
        pad = "".join("\t" if c == "\t" else " " * _cells(c) for c in head)
        return pad + "^" * max(width, 1)


_NOWHERE: Final = SourceSpan("", 0)


def _spans(loc: LocLike | None, source_line: str | None) -> list[SourceSpan]:
    """The inlining chain of `loc` as spans, innermost first.

    `source_line` belongs to the innermost.
    """
    spans: list[SourceSpan] = []
    while loc is not None:
        spans.append(SourceSpan.from_loc(loc, source_line))
        source_line = None
        loc = loc.parent
    return spans


def _restore(cls: type[_Located], args: tuple[object, ...], state: dict[str, object]) -> _Located:
    """Rebuild a pickled error without going through the signature of its `__init__`."""
    error = cls.__new__(cls, *args)
    error.__setstate__(state)
    return error


def _of_span(name: str) -> Any:
    """The attribute of an error that is the same one of its span, or of none."""
    return property(lambda error: getattr(error.span or _NOWHERE, name))


class _Located(Exception):
    """The structured data that compile-time and run-time errors share, and its rendering."""

    def __init__(
        self,
        message: str = "",
        *,
        span: SourceSpan | None = None,
        chain: tuple[SourceSpan, ...] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        """The source location of the error, in the innermost function."""
        self.chain = chain
        """The calls that inlining went through, innermost first; empty in the kernel itself."""
        self.hint = hint
        """Advice: a way for the user to fix the error."""

    @classmethod
    def from_loc(
        cls,
        message: str,
        loc: LocLike | None,
        *,
        hint: str | None = None,
        source_line: str | None = None,
        **details: Any,
    ) -> Self:
        """Make the error for `loc` and all the calls it was inlined through.

        `details` go to the constructor.
        """
        return cls(message, hint=hint, **details).locate(loc, source_line=source_line)

    def locate(self, loc: LocLike | None, *, source_line: str | None = None) -> Self:
        """Add a position to an error raised where none was known.

        An error that has one keeps it; a location without a line says nothing and is ignored.
        """
        if self.span is None and loc is not None and loc.line > 0:
            self.span, *chain = _spans(loc, source_line)
            self.chain = tuple(chain)
        return self

    file: str = _of_span("file")
    line: int = _of_span("line")
    col: int = _of_span("col")
    end_line: int = _of_span("end_line")
    end_col: int = _of_span("end_col")
    function: str = _of_span("function")
    source_line: str = _of_span("source_line")

    def banner(self) -> str:
        """The position alone, outermost call first; empty when there is none."""
        spans = (*reversed(self.chain), self.span) if self.span else ()
        return "\n".join(span.render() for span in spans)

    def _body(self) -> str:
        return self.message

    def render(self) -> str:
        """Banner, message and hint, the parts that exist."""
        hint = f"hint: {self.hint}" if self.hint else ""
        return "\n".join(part for part in (self.banner(), self._body(), hint) if part)

    def __str__(self) -> str:
        return self.render()

    def _set_args(self, value: tuple[Any, ...]) -> None:
        self.message = str(value[0]) if value else ""
        self.span, self.chain, self.hint = None, (), None

    if not TYPE_CHECKING:  # the whole text, with the source location: programs read ``e.args[0]``
        args = property(lambda self: (str(self),), _set_args)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), (self.message,), self.__dict__)


class QuadrantsCompilationError(_Located):
    """A kernel cannot be compiled.

    `stage` and `pass_name` say how far it came, where that is known.
    """

    def __init__(
        self, message: str = "", *, stage: str | None = None, pass_name: str | None = None,
        **details: Any,
    ) -> None:  # fmt: skip
        super().__init__(message, **details)
        self.stage = stage
        self.pass_name = pass_name
        self.foreign_traceback: str | None = None
        """For an error of other code that came up during compilation: its traceback as text."""

    @classmethod
    def from_foreign(
        cls, error: BaseException, loc: LocLike | None = None, *, hint: str | None = None
    ) -> Self:
        """Wrap an exception of another kind; raise the result `from error`.

        The message keeps the type and text of the exception.
        """
        import traceback

        text = "".join(traceback.format_exception_only(error)).strip()
        wrapped = cls.from_loc(text, loc, hint=hint or _nearest_attribute(error, text))
        wrapped.foreign_traceback = "".join(traceback.format_exception(error))
        return wrapped


def _nearest_attribute(error: BaseException, text: str) -> str | None:
    """The attribute that was meant, if one is called much the same."""
    if not isinstance(error, AttributeError) or not error.name or "Did you mean" in text:
        return None
    with suppress(Exception):  # of the object's own __dir__
        names = [name for name in dir(error.obj) if not name.startswith("_")]
        from difflib import get_close_matches  # seldom needed

        near = get_close_matches(error.name, names, 1)
        return f'did you mean "{near[0]}"?' if near else None
    return None


class QuadrantsSyntaxError(QuadrantsCompilationError, SyntaxError):
    """Python syntax, or a use of it, that the kernel language does not support."""

    @property
    def msg(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The text that Python's traceback printer shows for a SyntaxError instead of `str`."""
        return self.render()


class QuadrantsNameError(QuadrantsCompilationError, NameError):
    """A name that is not defined where it is used."""


class QuadrantsIndexError(QuadrantsCompilationError, IndexError):
    """A wrong number of indices, or a constant index out of range."""


class QuadrantsTypeError(QuadrantsCompilationError, TypeError):
    """Operands, arguments or results of the wrong type."""


class QuadrantsUnsupportedError(QuadrantsCompilationError):
    """A language feature that `backend` (or this version, when None) does not support.

    `feature` names it briefly.
    """

    def __init__(
        self, message: str = "", *, feature: str = "", backend: str | None = None, **details: Any
    ) -> None:
        if not message and feature:
            where = f"on the {backend} backend" if backend else "in this version"
            message = f"{feature} is not supported {where}"
        super().__init__(message, **details)
        self.feature = feature
        self.backend = backend


class QuadrantsInternalError(QuadrantsCompilationError):
    """A bug in the compiler, not in the kernel: please report it with the IR that shows it."""


class IRVerificationError(QuadrantsInternalError):
    """IR that breaks a rule of its stage.

    `op_id` is the op at fault (None: a whole block), `op_text` how it prints.
    """

    def __init__(
        self, message: str = "", *, op_id: int | None = None, op_text: str = "", **details: Any
    ) -> None:
        super().__init__(message, **details)
        self.op_id = op_id
        self.op_text = op_text

    def _body(self) -> str:
        what = "IR broken"
        if self.stage:
            what += f" in stage {self.stage}"
        if self.pass_name:
            what += f" after {self.pass_name}"
        if self.op_id is not None:
            what += f" at ${self.op_id}"
        body = f"{what}: {self.message}"
        return f"{body}\n    {self.op_text}" if self.op_text else body


class IRParseError(QuadrantsInternalError):
    """IR text that does not parse. The span points into it; its file is the name it was given."""


class QuadrantsRuntimeError(_Located, RuntimeError):
    """A launched kernel, or the program around it, failed.

    `kernel` is the kernel's name, where one is at fault.
    """

    def __init__(self, message: str = "", *, kernel: str | None = None, **details: Any) -> None:
        super().__init__(message, **details)
        self.kernel = kernel

    def _body(self) -> str:
        # The text of a check may name the kernel in its own way.
        if not self.kernel or f"kernel={self.kernel}" in self.message:
            return self.message
        return f"(kernel={self.kernel}) {self.message}"


class QuadrantsAssertionError(QuadrantsRuntimeError, AssertionError):
    """A kernel assert, or a check that `debug` or `check_out_of_bound` puts in, did not hold."""


class AdStackOverflowError(QuadrantsAssertionError):
    """An adstack of a gradient kernel was too small for what was pushed.

    task: number of the task. stack: number of the stack in it.
    """

    task: int = -1
    stack: int = -1


class NanError(QuadrantsRuntimeError, ArithmeticError):
    """Under ``debug_nan`` a launch stored a NaN or infinity; docs/nan.md has its attributes."""

    kind: str = "unknown"
    task: int = -1
    iteration: tuple[int, ...] = ()


class NoGradientsError(QuadrantsRuntimeError):
    """The gradient of a kernel was called, and nothing that the kernel uses has gradients."""


class QuadrantsRuntimeTypeError(QuadrantsRuntimeError, TypeError):
    """An argument of a launch has a type that the kernel does not accept."""


class CudaError(QuadrantsRuntimeError):
    """A call of the CUDA driver failed, or a kernel crashed on the device.

    code, name: from the driver, such as 700 and CUDA_ERROR_ILLEGAL_ADDRESS; 0 and empty if the
    driver was not called. fatal: the device is unusable until `qd.reset()`.
    """

    code: int = 0
    name: str = ""
    fatal: bool = False


class CudaMemoryError(CudaError, MemoryError):
    """The device does not have enough free memory."""


class OpenclError(QuadrantsRuntimeError):
    """An OpenCL call failed, or a kernel crashed on the device; attributes as of `CudaError`."""

    code: int = 0
    name: str = ""
    fatal: bool = False


class OpenclMemoryError(OpenclError, MemoryError):
    """The device does not have enough free memory."""


class BackendUnavailableError(QuadrantsRuntimeError):
    """This machine cannot run `backend`.

    `reason` is one short sentence, as in `cuda: no driver found`.
    """

    def __init__(self, backend: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{backend}: {reason}", hint=hint)
        self.backend = backend
        self.reason = reason
