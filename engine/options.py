"""The definition of an option: its type, the source of its value, its effect and its checks.

The options themselves are listed in `option_table.py`, as the fields of `OptionTable`.
`option(...)` below makes each field; the rest of the engine, the documentation and the studio read
it back as an `Option`.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Literal, TypeVar, cast

T = TypeVar("T")

Scope = Literal["any", "cpu", "gpu"]
Effect = Literal["now", "never"]

UNSUITED = (
    "it is accepted so that programs written for Quadrants start; nothing here corresponds to it"
)


def _as_bool(value: Any) -> bool:
    """True and False, also as 1 and 0 and as NumPy scalars."""
    if type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    number = operator.index(value)
    if number not in (0, 1):
        raise TypeError
    return bool(number)


def _as_int(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)


def _as_float(value: Any) -> float:
    if isinstance(value, str | bool):
        raise TypeError
    return float(value)


def _as_str(value: Any) -> str:
    """Text, a path, or an object known by its name, such as a data type."""
    if not isinstance(value, str | os.PathLike):
        value = getattr(value, "name", value)
    text = os.fspath(cast("str | bytes | os.PathLike[str]", value))
    if isinstance(text, bytes):
        raise TypeError
    return text


_WORDS = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}


def _parse_bool(text: str) -> bool:
    word = _WORDS.get(text.lower())
    return _as_bool(int(text)) if word is None else word


def parse_switch(variable: str, text: str) -> bool:
    """An on-off environment variable that belongs to no option; empty text is off."""
    try:
        return bool(text) and _parse_bool(text.strip())
    except (ValueError, TypeError):
        raise ValueError(f"Invalid {variable}={text}, should be 0 or 1") from None


def why_hidden(variable: str) -> str:
    """Return why a variable such as ``QD_ENABLE_CUDA`` hides a backend; empty if it does not."""
    text = os.environ.get(variable, "").strip()
    try:
        return "" if not text or parse_switch(variable, text) else f"{variable}=0 hides it"
    except ValueError as error:
        return str(error)


_COERCE: dict[type, Callable[[Any], Any]] = {
    bool: _as_bool,
    int: _as_int,
    float: _as_float,
    str: _as_str,
}
_PARSE: dict[type, Callable[[str], Any]] = {
    bool: _parse_bool,
    int: lambda text: int(text, 0),
    float: float,
    str: str,
}
_EXPECTED = {bool: "0 or 1", int: "an integer", float: "a number", str: "a string"}


_STATES = {True: "on", False: "off"}
"""Values of a switch that has more states than two, by what a user may pass for them."""


class Option:
    """One option, as `option_table.py` states it; the name is that of the class attribute.

    Not a dataclass: creating a dataclass is a hundred times slower than this, in every process.
    """

    __slots__ = (
        "_made", "choices", "default", "default_text", "doc", "effect", "env",
        "form", "in_cache_key", "maximum", "minimum", "name", "pattern", "quiet", "scope", "type",
        "why_not",
    )  # fmt: skip

    def __init__(
        self, default: Any, doc: str, key: bool, scope: Scope, effect: Effect, why_not: str,
        choices: tuple[Any, ...], minimum: float | None, quiet: tuple[Any, ...], env: bool,
        default_text: str | None, maximum: int | None, pattern: str, form: str,
    ) -> None:  # fmt: skip
        self._made: Callable[[], Any] | None = default if callable(default) else None
        self.default: Any = default if self._made is None else self._made()
        """Already computed for this machine; `default_text` says it for any machine."""
        self.default_text = repr(self.default) if default_text is None else default_text
        self.type: type = type(self.default)
        """bool, int, float or str."""
        self.doc = doc
        self.name = ""
        self.env: str | None = "" if env else None
        """The environment variable that sets it, or None."""
        self.in_cache_key = key
        """True if it changes generated code: code made with another value cannot be used."""
        self.scope: Scope = scope
        """The cache keys that it enters: an option for GPUs does not split the keys of a CPU."""
        self.effect: Effect = effect
        self.why_not = why_not
        """For `never`: why it has no effect."""
        self.choices = choices
        self.minimum = minimum
        self.maximum = maximum
        self.pattern = pattern
        """For text: the regular expression that the whole value must match."""
        self.form = form
        """The form of a valid value, where its type and limits do not describe it."""
        self.quiet = quiet
        """For `never`: values that ask only for what happens anyway; they cause no warning."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        if self.env is not None:
            self.env = f"QD_{name.upper().lstrip('_')}"

    def initial(self) -> Any:
        """The value in a new config."""
        return self.default if self._made is None else self._made()

    @property
    def expected(self) -> str:
        """The description of a valid value, for messages."""
        if self.choices:
            return "one of " + ", ".join(str(c) or "''" for c in self.choices)
        if self.form:
            return self.form
        kind = _EXPECTED[self.type]
        return kind if self.minimum is None else f"{kind}, at least {self.minimum:g}"

    def parse(self, text: str) -> Any:
        """The value of environment text. ValueError, naming the variable, if it has none."""
        try:
            text = text.strip()
            value = self._state(text, _parse_bool) or _PARSE[self.type](text)
        except (ValueError, TypeError):
            value = None
        if value is None or not self._fits(value):
            raise ValueError(f"Invalid {self.env}={text}, should be {self.expected}")
        return value

    def coerce(self, value: Any) -> Any:
        """The value of an argument in the option's own type.

        TypeError or ValueError if it does not fit.
        """
        try:
            converted = self._state(value, _as_bool) or _COERCE[self.type](value)
        except (TypeError, ValueError):
            raise TypeError(f"{self.name} must be {self.expected}, not {value!r}") from None
        if not self._fits(converted):
            near = did_you_mean(converted, self.choices) if isinstance(converted, str) else ""
            raise ValueError(f"{self.name} must be {self.expected}, not {converted!r}{near}")
        return converted

    def _state(self, value: Any, as_bool: Callable[[Any], bool]) -> str:
        """For a switch of more than two states: the state that a truth value means."""
        if "off" in self.choices:
            with suppress(TypeError, ValueError):
                return _STATES[as_bool(value)]
        return ""

    def _fits(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        if self.pattern and not re.fullmatch(self.pattern, value):
            return False
        above = self.minimum is None or value >= self.minimum
        return above and (self.maximum is None or value <= self.maximum)

    def without_effect(self, value: Any) -> str | None:
        """The warning for a user who sets `value`, if it has no effect; else None."""
        if self.effect == "now" or value == self.default or value in self.quiet:
            return None
        return f"{self.name}={value!r} has no effect: {self.why_not}"


def option(
    default: T | Callable[[], T],
    doc: str,
    *,
    key: bool = False,
    scope: Scope = "any",
    never: bool | str = False,
    choices: tuple[T, ...] = (),
    minimum: float | None = None,
    quiet: tuple[T, ...] = (),
    env: bool = True,
    default_text: str | None = None,
    maximum: int | None = None,
    pattern: str = "",
    form: str = "",
) -> T:
    """Declare one field of `OptionTable`.

    `default` is a value, or a function called once a config (then `default_text` says what it
    returns). `key`: it enters cache keys. `never`: accepted, but without effect: why, or True where
    nothing here corresponds to it. `pattern`, `form`: see `Option`.
    """
    effect: Effect = "never" if never else "now"
    why_not = never if isinstance(never, str) else UNSUITED if never else ""
    made = Option(
        default, doc, key, scope, effect, why_not, choices, minimum, quiet, env, default_text,
        maximum, pattern, form,
    )  # fmt: skip
    return cast(Any, made)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The tail of a message about an unknown `word`: the closest known one, or nothing."""
    import difflib  # for messages alone; 2 ms that importing the engine need not pay

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f'; did you mean "{close[0]}"?' if close else ""
