"""The contents of a fastcache entry: how to launch a kernel, and the conditions for its use.

A version of an entry is plain data for JSON::

    offline     the key of the code in the offline cache
    functions   [how, text, name] of each function that the kernel inlines or calls, in order;
                ``how``: [module, qualified name], or [] where a capture leads to it
    language    [module, name, text] of each name of the language that was looked up
    captures    [function, origin, path, text] of each captured value, in the order of first use;
                ``function``: the number of the function in which the path begins
    leaves      [argument, path, part] of each parameter binding of the compiled function
    used        [argument, path, text] of each value inside of arguments that the code depends on

The key contains the kernel's own source and declaration, and the arguments as far as they have a
text (`arguments`). The texts here are compared with the live process: `plan_of` checks them in the
order of the compile, so that a function's captures are checked after the function itself has been
found and is unchanged. `Stale` reports the first difference.

An entry is made (`record`) only if every part of it has a text; then it is checked at once, like
one that was loaded, so that no useless entry is kept.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from ...cache.parts import digest
from ...errors import QuadrantsSyntaxError
from ...frontend.declared import members_of, scalar_type
from ...frontend.specialization import (
    InstanceKey,
    NdarrayKey,
    ParamBinding,
    Plan,
    RecordKey,
    Unusable,
    Used,
    ValueKey,
    number_class,
)
from ...named_tuple import NamedTuple
from ...signals import of_signal_handler
from ...types import CompoundType, DataType, FieldHandle, StructFieldHandle, is_data_oriented
from .arguments import class_name
from .captures import (
    ABSENT,
    LIVE,
    Modules,
    Unknown,
    function_of,
    param_text,
    text_of,
    type_text,
)  # fmt: skip
from .sources import Reached, by_name, decl_of, digest_of, follow, name_of

if TYPE_CHECKING:
    from ...config import CompileConfig
    from ...frontend.build import BuildResult
    from ...frontend.captures import Capture
    from ...frontend.signature import KernelDecl
    from .sources import Decl

__all__ = ["Live", "Stale", "Uncacheable", "plan_of", "record"]


class Uncacheable(Exception):
    """Raised when a kernel cannot be kept; the message is the reason."""


class Stale(Exception):
    """Raised when an entry does not fit the live process; the message is the reason.

    passed: the number of unchanged functions and captures before the first that has changed.
    """

    passed: int = 0


class Live(NamedTuple):
    """An entry that fits this process. functions: the kernel, then those that it reaches."""

    plan: Plan
    offline: str
    functions: tuple[Decl, ...]


# ---- making


def record(
    build: BuildResult, spec_keys: Sequence[Any], config: CompileConfig, offline: str,
    modules: Modules = LIVE,
) -> dict[str, Any]:  # fmt: skip
    """The entry of a kernel that has been compiled. Uncacheable if something has no text.

    offline: the key of its code. modules: of the program that would use it.
    """
    kernel: Any = build.decls[0]
    found = build.captures
    for capture in found:
        if capture.opaque:  # the most precise of the possible reasons
            raise Uncacheable(f"`{capture.name}` in {capture.decl.qualname}: {capture.opaque}")
    reached = Reached(build.decls, modules)
    arguments = _by_name(kernel, spec_keys)
    captures = [_capture(capture, reached, arguments) for capture in found]
    numbers = Reached((), modules)
    load = {
        "offline": offline,
        "functions": _functions(build.decls, captures, modules),
        "language": _language(build, modules),
        "captures": captures,
        "leaves": [_binding_row(binding) for binding in build.bindings],
        "used": [_used(kernel, used, spec_keys, config, numbers) for used in build.used],
    }
    fresh = {row for row, (*_, text) in enumerate(captures) if not _has_numbers(text)}
    try:
        live = plan_of(load, kernel, spec_keys, config, modules, fresh)
    except Stale as stale:
        raise Uncacheable(f"what it depends on cannot be found again: {stale}") from None
    if [d.fn for d in live.functions] != [d.fn for d in build.decls] or not _agree(
        live.plan, build.plan
    ):
        raise Uncacheable("what it depends on is found in another way than it was compiled in")
    return load


def _language(build: BuildResult, modules: Modules) -> list[list[str]]:
    names = build.recorded.language if build.recorded is not None else {}
    return [[module, name, _own_text(value, modules)] for (module, name), value in names.items()]


def _own_text(value: Any, modules: Modules) -> str:
    """A text for the object under a name of the language; a replacement has a different one."""
    if isinstance(value, DataType | CompoundType):
        return type_text(value, modules)
    if isinstance(value, FunctionType):
        return f"{modules.name(value.__globals__.get('__name__', ''))}.{value.__qualname__}"
    if isinstance(value, BuiltinFunctionType | ModuleType):
        return value.__name__
    kind: Any = value if isinstance(value, type) else type(value)
    return f"{modules.name(kind.__module__)}.{kind.__qualname__}"


def _agree(a: Plan, b: Plan) -> bool:
    from ...frontend.contents import same

    return (
        a.bindings == b.bindings
        and [u[:2] for u in a.used] == [u[:2] for u in b.used]
        and all(same(x.spec_key, y.spec_key) for x, y in zip(a.used, b.used, strict=True))
    )


def _by_name(kernel: KernelDecl, spec_keys: Sequence[Any]) -> dict[str, Any]:
    return {param.name: one for param, one in zip(kernel.params, spec_keys, strict=True)}


def _capture(capture: Capture, reached: Reached, arguments: Mapping[str, Any]) -> list[Any]:
    decl, origin, path = capture.decl, capture.origin, capture.path
    where = f"`{capture.name}` in {decl.qualname}"
    try:
        value, parent = follow(decl, origin, path, arguments)
        text = text_of(value, reached, parent)
        # Each read of a method binds it again.
        is_same = value is capture.value or function_of(value) is not None
        if not is_same and text != text_of(_plain(capture.value), reached, parent):
            raise Uncacheable(f"{where} has changed while the kernel was compiled")
        return [reached.number(decl), origin, list(path), text]
    except Unknown as unknown:
        raise Uncacheable(f"{where} {unknown}") from None
    except Exception as error:
        if isinstance(error, Uncacheable) or of_signal_handler(error):
            raise
        raise Uncacheable(f"{where} cannot be read again: {_error_text(error)}") from None


def _plain(value: Any) -> Any:
    """A captured value in the form that `follow` returns."""
    from ...frontend.captures import ABSENT
    from . import captures

    return captures.ABSENT if value is ABSENT else value


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _number_in(text: str) -> int:
    """The number of the function that a capture's text stands for; -1 if it is no function."""
    if not text.startswith(("function ", "bound ")):  # most are values
        return -1
    words = text.split(" ", 3)
    if words[0] == "bound":
        words = words[1:]
    return int(words[1]) if len(words) > 1 and words[0] == "function" and words[1].isdigit() else -1


def _has_numbers(text: str) -> bool:
    """True if the text of a capture may have numbers of functions or types, which depend on what
    was read before. Any other would be found again as it was just now."""
    return text.startswith(("function ", "bound ")) or " #" in text or "... " in text


def _functions(
    decls: Sequence[Decl], captures: Sequence[Sequence[Any]], modules: Modules
) -> list[list[Any]]:
    """The rows ``functions`` of an entry, for each function except the kernel."""
    captured = {_number_in(row[3]) for row in captures}
    out: list[list[Any]] = []
    for number, decl in enumerate(decls[1:], 1):
        how: Sequence[str] = ()
        if number not in captured:
            found = name_of(decl, modules)
            if found is None:
                raise Uncacheable(f"the function {decl.qualname} cannot be found by its name")
            how = found
        try:
            out.append([list(how), digest_of(decl, modules), decl.qualname])
        except Unknown as unknown:
            raise Uncacheable(f"the declaration of {decl.qualname} {unknown}") from None
    return out


def _binding_row(binding: ParamBinding) -> list[Any]:
    if binding.field is not None:
        raise Uncacheable(f"it uses the field {binding.field.name or ''}".rstrip())
    return [binding.arg, list(binding.path), binding.part]


def _used(
    kernel: KernelDecl, used: Used, spec_keys: Sequence[Any], config: CompileConfig,
    numbers: Reached,
) -> list[Any]:  # fmt: skip
    try:
        _, text = _inside(spec_keys[used.arg], used.path, config, numbers)
    except Unknown as unknown:
        name = ".".join((kernel.params[used.arg].name, *used.path))
        raise Uncacheable(f"the parameter {name} {unknown}") from None
    return [used.arg, list(used.path), text]


def _inside(
    spec_key: Any, path: Sequence[str], config: CompileConfig, numbers: Reached
) -> tuple[Any, str]:
    """The specialization key at ``path`` in an argument, and its text."""
    if isinstance(spec_key, NdarrayKey):
        inner: Any = spec_key.of_grad()
    else:
        inner = spec_key.find(tuple(path))
        kind = number_class(inner) if isinstance(spec_key, InstanceKey) else None
        if kind is not None:  # a number of the object that is read at each launch
            return scalar_type(kind, config), f"number {kind.__name__}"
        if path and path[-1] == "__class__":
            return inner, f"class {class_name(inner, numbers.modules)}"
    return inner, _spec_key_text(inner, numbers)


def _spec_key_text(spec_key: Any, numbers: Reached) -> str:
    modules = numbers.modules
    if isinstance(spec_key, NdarrayKey):
        return f"array {tuple(spec_key)}"
    if isinstance(spec_key, DataType | CompoundType):
        return type_text(spec_key, modules)
    if isinstance(spec_key, RecordKey):
        members = [param_text(param, modules) for param in members_of(spec_key.cls).values()]
        return f"dataclass {class_name(spec_key.cls, modules)} {digest(str(members))}"
    if isinstance(spec_key, Unusable):
        return f"unusable {spec_key.annotation}"
    if isinstance(spec_key, FieldHandle | StructFieldHandle):
        raise Unknown("is a field")
    if isinstance(spec_key, ValueKey):
        spec_key = spec_key.value
    if is_data_oriented(spec_key):
        return f"object {class_name(spec_key.__class__, modules)}"
    return text_of(spec_key, numbers)


# ---- checking


def plan_of(
    load: Mapping[str, Any], kernel: KernelDecl, spec_keys: Sequence[Any], config: CompileConfig,
    modules: Modules = LIVE, fresh: Container[int] = (),
) -> Live:  # fmt: skip
    """Return how to launch, if nothing has changed. Stale if something has.

    fresh: rows of captures that need not be read again. LookupError, TypeError or ValueError for
    data that is no entry.
    """
    reached, numbers = Reached((kernel,), modules), Reached((), modules)
    passed = 0
    try:
        for _ in _compared(reached, load, kernel, spec_keys, fresh):
            passed += 1
        plan = Plan(
            tuple([_live_binding(row, spec_keys) for row in load["leaves"]]),
            tuple([_live_used(row, kernel, spec_keys, config, numbers) for row in load["used"]]),
        )
    except Stale as stale:
        stale.passed = passed
        raise
    decls = reached.decls
    ordered = tuple([decls[number] for number in range(len(load["functions"]) + 1)])
    return Live(plan, str(load["offline"]), ordered)


def _compared(
    reached: Reached, load: Mapping[str, Any], kernel: KernelDecl, spec_keys: Sequence[Any],
    fresh: Container[int],
) -> Iterator[None]:  # fmt: skip
    """Find the functions and compare captures, one at a time. Stale at the first that differs."""
    modules = reached.modules
    for module, name, text in load["language"]:
        # A name that is loaded at its first use cannot have been replaced before that.
        found = getattr(modules.find(module), "__dict__", {}).get(name, ABSENT)
        if found is not ABSENT and _own_text(found, modules) != text:
            raise Stale(f"`{module}.{name}` has been replaced")
    functions: Sequence[Any] = load["functions"]
    for number, (how, text, name) in enumerate(functions, 1):
        if how:
            found = by_name(*how, modules=modules)
            if found is None:
                raise Stale(f"the function {name} is gone")
            _add(reached, number, found, text, name)
            yield
    arguments = _by_name(kernel, spec_keys)
    for row, (owner, origin, path, text) in enumerate(load["captures"]):
        if owner not in reached.decls:
            raise Stale(f"the function {functions[owner - 1][2]} is not reached")
        if row not in fresh:
            _check(reached, functions, reached.decls[owner], origin, path, text, arguments)
        yield
    missing = [row[2] for number, row in enumerate(functions, 1) if number not in reached.decls]
    if missing:
        raise Stale(f"the function {missing[0]} is not reached")


def _add(reached: Reached, number: int, decl: Decl, text: str, name: str) -> None:
    """Add ``decl`` as function ``number``. Stale if its source or declaration has changed."""
    try:
        now = digest_of(decl, reached.modules)
    except Unknown as unknown:
        raise Stale(f"the declaration of {name} {unknown}") from None
    except QuadrantsSyntaxError as error:  # its source cannot be read
        raise Stale(f"the function {name}: {error.message}") from None
    if now != text:
        raise Stale(f"the function {name} has changed")
    reached.add(number, decl)


def _check(
    reached: Reached, functions: Sequence[Any], decl: Decl, origin: str, path: Sequence[str],
    text: str, arguments: Mapping[str, Any],
) -> None:  # fmt: skip
    """Compare one capture with the present value at its path; find a function through it."""
    try:
        value, parent = follow(decl, origin, path, arguments)
        number = _number_in(text)
        if number > 0 and number not in reached.decls and reached.of_function(value) is None:
            if function_of(value) is None:
                raise Stale(f"{_where(decl, path)} is no function any more")
            row = functions[number - 1]
            _add(reached, number, decl_of(value), row[1], row[2])
        now = text_of(value, reached, parent)
    except Stale:
        raise
    except Unknown as unknown:
        now = str(unknown)
    except Exception as error:  # of the user's own code
        if of_signal_handler(error):
            raise
        raise Stale(f"{_where(decl, path)} cannot be read: {_error_text(error)}") from None
    if now != text:
        raise Stale(f"{_where(decl, path)} has changed: {text} -> {now}")


def _where(decl: Decl, path: Sequence[str]) -> str:
    return f"`{'.'.join(path)}` in {decl.qualname}"


def _live_binding(row: Sequence[Any], spec_keys: Sequence[Any]) -> ParamBinding:
    arg, path, part = row
    path = tuple(path)
    if part < 0:
        return ParamBinding(arg, path)
    spec_key = spec_keys[arg].find(path) if path else spec_keys[arg]
    if not isinstance(spec_key, CompoundType):
        raise ValueError(f"argument {arg} has no parts")
    return ParamBinding(arg, path, part, spec_key)


def _live_used(
    row: Sequence[Any], kernel: KernelDecl, spec_keys: Sequence[Any], config: CompileConfig,
    numbers: Reached,
) -> Used:  # fmt: skip
    arg: int = row[0]
    path: tuple[str, ...] = tuple(row[1])
    text = row[2]
    name = ".".join((kernel.params[arg].name, *path))
    try:
        spec_key, now = _inside(spec_keys[arg], path, config, numbers)
    except Unknown as unknown:
        raise Stale(f"the parameter {name} {unknown}") from None
    except AttributeError:
        raise Stale(f"the parameter {name} is not there any more") from None
    if now != text:
        raise Stale(f"the parameter {name} has changed: {text} -> {now}")
    return Used(arg, path, spec_key)
