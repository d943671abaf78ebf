"""The options of a program: where their values come from, and which of them enter cache keys.

`CompileConfig` is the table of `option_table.py` and the object at the same time, and `OPTIONS` is
that table read back. A program holds one config. `resolve` makes it at `init`; from then on it is
frozen:

    config, origins, warnings = resolve({"debug": True}, os.environ)

A value comes from the keyword argument, else from `QD_<NAME>`, else from the default.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, Self, cast

from . import logs as log
from .errors import QuadrantsRuntimeError
from .named_tuple import NamedTuple
from .option_table import OptionTable, available_cpus
from .options import Option, did_you_mean, parse_switch

__all__ = [
    "ARCHES", "CPU_ARCHES", "LANGUAGE_VERSION", "OPTIONS", "TAICHI_ARCHES", "TAICHI_OPTIONS",
    "CompileConfig", "DebugSwitches", "Notice", "Origin", "Resolved", "available_cpus",
    "check_version", "of_environment", "resolve", "wanted_arches",
]  # fmt: skip

Origin = Literal["argument", "environment", "default", "implied"]

LANGUAGE_VERSION = (1, 3, 3)
"""The version of Quadrants whose language and options this engine follows.

`require_version` asks for it.
"""

ARCHES = (
    "cpu",
    "x64",
    "arm64",
    "interp",
    "cuda",
    "opencl",
    "amdgpu",
    "gpu",
    "metal",
    "vulkan",
    "python",
)
"""Names `arch` may have. Which of them this machine can run is for the runtime to say."""

TAICHI_ARCHES = frozenset({"dx11", "dx12", "gles", "opengl"})
"""Names that `arch` may have in programs for Taichi; no backend is made for them."""
TAICHI_OPTIONS = frozenset({
    "allow_nv_shader_extension", "cpu_block_dim_adaptive", "lower_access",
    "simplify_after_lower_access", "simplify_before_lower_access", "use_llvm", "verbose",
    "verbose_kernel_launches",
})  # fmt: skip
"""Arguments of `init` in programs for Taichi that have no meaning here: they are ignored."""

CPU_ARCHES = frozenset({"cpu", "x64", "arm64", "interp", "python", "cross"})
"""Names of processors, as far as code is made for them: also of backends that launch nothing."""


class CompileConfig(OptionTable):
    """The options of a program.

    Attributes can be set until `freeze`; a name that is not an option is an error. The class's own
    attributes are the options' descriptions, which the values of an object hide.
    """

    _frozen = False

    def __init__(self, **values: Any) -> None:
        """The given options, by name and unchecked, and the defaults of the others."""
        if unknown := [name for name in values if name not in OPTIONS]:
            raise TypeError(f"CompileConfig has no option {', '.join(unknown)}")
        own = self.__dict__
        for name, opt in OPTIONS.items():
            own[name] = values[name] if name in values else opt.initial()

    def __setattr__(self, name: str, value: Any) -> None:
        if self._frozen:
            raise AttributeError(
                f"the config is frozen, {name} cannot be set; use replace() for a copy"
            )
        if name not in OPTIONS:
            raise AttributeError(f"CompileConfig has no option {name}")
        self.__dict__[name] = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CompileConfig):
            return NotImplemented
        return self.as_dict() == other.as_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join([f"{name}={value!r}" for name, value in self.as_dict().items()])
        return f"CompileConfig({shown})"

    @property
    def default_up(self) -> str:
        """The unsigned type that goes with `default_ip`; it cannot be set on its own."""
        return "u64" if self.default_ip == "i64" else "u32"

    @property
    def is_cpu(self) -> bool:
        return self.arch in CPU_ARCHES

    def freeze(self) -> Self:
        """Allow no further change. Returns itself."""
        self.__dict__["_frozen"] = True
        return self

    def as_dict(self) -> dict[str, Any]:
        """All options by name, in the order of the table."""
        return {name: getattr(self, name) for name in OPTIONS}

    def copy(self) -> Self:
        """An equal config that can be changed."""
        return type(self)(**self.as_dict())

    def replace(self, **changes: Any) -> Self:
        """A changed copy; the values are checked like those of `init`."""
        result = self.copy()
        for name, value in changes.items():
            setattr(result, name, _known(name).coerce(value))
        if result.debug:
            result.check_out_of_bound = True
        return result


OPTIONS: dict[str, Option] = {
    name: declared for name, declared in vars(OptionTable).items() if isinstance(declared, Option)
}
"""The table: every option by name, in the order of its declaration."""


def _known(name: str) -> Option:
    """The option called `name`; KeyError, with the closest name, if there is none."""
    if name not in OPTIONS:
        raise _unrecognized([name])
    return OPTIONS[name]


def _unrecognized(names: list[str]) -> KeyError:
    near = "".join(did_you_mean(name, OPTIONS) for name in names)
    text = ", ".join(names)
    return KeyError(f"Unrecognized keyword argument(s) for qd.init: {text}{near}")


class Notice(NamedTuple):
    """A message of `resolve` to the user. `once`: print it at most once a process."""

    text: str
    once: bool = False


class Resolved(NamedTuple):
    """The result of `resolve`: the config (not frozen yet), each value's origin, the warnings."""

    config: CompileConfig
    origins: dict[str, Origin]
    warnings: list[Notice]

    def issue_warnings(self) -> None:
        """Apply the log level and write the warnings."""
        log.set_level(self.config.log_level)
        for notice in self.warnings:
            log.warn(notice.text, once=notice.once)


_OLD_VARIABLES = {"graph": "QD_GPU_GRAPH"}
"""Options with an older variable, which counts where the present one is not set."""
_BITS_FROM_ENV = {"default_fp": "f", "default_ip": "i"}
"""Options whose variable holds a number of bits, with the letter that makes it a type."""


def _from_env(opt: Option, environ: Mapping[str, str]) -> Any:
    """Return the value of `opt` in the environment, or None. An empty variable counts as unset."""
    text = environ.get(opt.env, "") if opt.env else ""
    text = text or environ.get(_OLD_VARIABLES.get(opt.name, ""), "")
    if not text:
        return None
    if opt.name in _BITS_FROM_ENV:
        if text not in ("32", "64"):
            raise ValueError(f"Invalid {opt.env}={text}, should be 32 or 64")
        return _BITS_FROM_ENV[opt.name] + text
    return opt.parse(text)


def wanted_arches(arch: Any, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The arch names to try, in order.

    `arch` is None, a name, an object with a `name`, or a list of these; `QD_ARCH` overrides it.
    ValueError for a name that is no arch.
    """
    if environ.get("QD_ARCH"):
        arch = environ["QD_ARCH"]
    if arch is None:
        arch = OPTIONS["arch"].default
    wanted = list(cast("list[Any]", arch)) if isinstance(arch, list | tuple) else [arch]
    if not wanted:
        raise ValueError("arch is an empty list: name at least one")
    names = tuple(str(OPTIONS["arch"].coerce(item)).lower() for item in wanted)
    for name in names:
        if name not in ARCHES and name not in TAICHI_ARCHES:
            raise ValueError(f'Unknown arch "{name}"{did_you_mean(name, ARCHES)}')
    return names


def of_environment(name: str) -> Any:
    """The value of an option in a program that is not given it. ValueError for a wrong variable."""
    found = OPTIONS[name]
    text = os.environ.get(found.env) if found.env else None
    return found.initial() if text is None else found.parse(text)


def resolve(kwargs: Mapping[str, Any], environ: Mapping[str, str]) -> Resolved:
    """Make the config of a program from the arguments of `init` and the environment.

    An argument that is None counts as not given. `arch` becomes the first of `wanted_arches`; the
    runtime, which knows the machine, may put another in its place before it freezes the config.

    KeyError for an unknown argument; TypeError or ValueError for a value that does not fit;
    QuadrantsRuntimeError for a `require_version` that this engine does not meet.
    """
    if unknown := [name for name in kwargs if name not in OPTIONS and name not in TAICHI_OPTIONS]:
        raise _unrecognized(unknown)
    config = CompileConfig()
    origins: dict[str, Origin] = {}
    warnings: list[Notice] = []
    for name, opt in OPTIONS.items():
        argument = kwargs.get(name)
        if name == "arch":
            from_env = bool(environ.get("QD_ARCH"))
            config.arch = wanted_arches(argument, environ)[0]
            given = argument is not None
            origins[name] = "environment" if from_env else "argument" if given else "default"
            continue
        value = _from_env(opt, environ)
        origins[name] = "default" if value is None else "environment"
        if argument is not None:
            argument = opt.coerce(argument)
            if value is not None and value != argument:
                text = environ.get(opt.env or "", str(value))
                over = f'overridden by qd.init argument "{name}"'
                warnings.append(Notice(f"Environment variable {opt.env}={text} {over}"))
            value, origins[name] = argument, "argument"
        if value is not None:
            setattr(config, name, value)
            if idle := opt.without_effect(value):
                warnings.append(Notice(idle, once=True))
    if config.debug and not config.check_out_of_bound:
        if origins["check_out_of_bound"] != "default":
            warnings.append(Notice("debug=True turns check_out_of_bound on"))
        config.check_out_of_bound, origins["check_out_of_bound"] = True, "implied"
    torch_s = config.external_metal_command_queue_is_torch_queue
    if torch_s and not config.external_metal_command_queue:
        warnings.append(
            Notice(
                "external_metal_command_queue_is_torch_queue=True says whose queue"
                " external_metal_command_queue is, and that is not given",
                once=True,
            )
        )
    check_version(config.require_version)
    return Resolved(config, origins, warnings)


def check_version(required: str) -> None:
    """Fail if a program requires a Quadrants version that this engine does not follow.

    Any text after x.y.z is ignored.
    """
    if not required:
        return
    digits = required.strip().split("+")[0].split("-")[0].split(".")
    if len(digits) != 3 or not all(part.isdigit() for part in digits):
        raise ValueError(f'require_version must look like "1.3.0", not {required!r}')
    wanted = tuple(int(part) for part in digits)
    if wanted[0] != LANGUAGE_VERSION[0] or wanted > LANGUAGE_VERSION:
        have = ".".join(map(str, LANGUAGE_VERSION))
        raise QuadrantsRuntimeError(f"Quadrants {required} is required, this engine follows {have}")


class DebugSwitches(NamedTuple):
    """Switches that only the environment has, read once at `init`.

    Passes never look at the environment.
    """

    dump_ir: bool = False
    """QD_DUMP_IR: every stage's IR to files under `debug_dump_path`."""
    dump_simplify: bool = False
    """QD_DUMP_SIMPLIFY: the IR after every step of the simplification rounds."""
    dump_cfg: bool = False
    """QD_DUMP_CFG: the control-flow graph before and after its optimisation."""
    show_compiling: bool = False
    """QD_SHOW_COMPILING: say which kernel is compiled, whenever one is."""
    debug_adstack: bool = False
    """QD_DEBUG_ADSTACK: report the memory of adstacks, whenever it is planned."""

    @property
    def dumps(self) -> bool:
        """True if anything is written to `debug_dump_path`."""
        return self.dump_ir or self.dump_simplify or self.dump_cfg

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """Read the switches; an unset variable is off. ValueError for one that is not 0 or 1."""
        texts = {name: environ.get(f"QD_{name.upper()}", "") for name in cls._fields}
        return cls(
            **{name: parse_switch(f"QD_{name.upper()}", text) for name, text in texts.items()}
        )
