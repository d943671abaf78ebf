"""Write the pages that are made from the source: `python docs/generate.py`.

A test compares what this makes with what is committed.
"""

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

import qd_studio.engine.passes  # noqa: F401 - registers every pass
from qd_studio.app.conformance import process
from qd_studio.app.conformance.table import page as conformance_rows
from qd_studio.app.tui.commands import SCOPES, by_scope, key_names
from qd_studio.engine import ir
from qd_studio.engine.config import OPTIONS
from qd_studio.engine.ir import verifier
from qd_studio.engine.ir.codes import CODES
from qd_studio.engine.options import UNSUITED, Option
from qd_studio.engine.passes.registry import all_passes

INTRO = """\
Options are set by `qd.init(name=value)` or by the environment variable in the table. An argument
beats the variable, the variable beats the default, and an argument that contradicts a variable
says so. An empty variable counts as unset. Switches read `0` and `1`, also `true` and `false`.
`QD_DEFAULT_FP` and `QD_DEFAULT_IP` hold a number of bits, `32` or `64`. `QD_ARCH` overrides the
argument `arch`. The unsigned type `default_up` follows `default_ip` and cannot be set. A name that
is no option is a `KeyError`.

Options in cache keys change the code that is generated: nothing made with another value is used.
"""

KEYS_BEGIN = "<!-- keys: made by docs/generate.py from the table of commands -->"
KEYS_END = "<!-- end of keys -->"
NOTE = "<!-- Made by docs/generate.py; edit the source it is made from. -->"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """A Markdown table."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    head = list(head)
    return [line(head), "|" + "---|" * len(head), *map(line, rows)]


def option_row(opt: Option) -> tuple[str, ...]:
    key = {"any": "yes", "cpu": "on CPUs", "gpu": "on GPUs"}[opt.scope] if opt.in_cache_key else ""
    choices = [str(choice) or "''" for choice in opt.choices]
    allowed = " One of " + ", ".join(f"`{c}`" for c in choices) + "." if choices else ""
    default = opt.default_text if " " in opt.default_text else f"`{opt.default_text}`"
    return (f"`{opt.name}`", f"`{opt.env}`" if opt.env else "", default, key, opt.doc + allowed)


def config_page() -> str:
    """Every option, by whether it works now."""
    head = ("option", "variable", "default", "in cache keys", "meaning")
    now = [opt for opt in OPTIONS.values() if opt.effect == "now"]
    lines = [
        NOTE,
        "# Configuration",
        "",
        INTRO,
        *table(head, map(option_row, now)),
        "",
        "## Accepted, without effect",
        "",
        "Setting one to a value that would need what is not there says so, once a process.",
        "",
    ]
    never = [opt for opt in OPTIONS.values() if opt.effect == "never" and opt.why_not != UNSUITED]
    lines += [f"- `{opt.name}`: {opt.why_not}." for opt in never]
    lines += ["", *table(head, map(option_row, never))]
    never = [opt for opt in OPTIONS.values() if opt.effect == "never" and opt.why_not == UNSUITED]
    lines += ["", "## Without meaning here", "", f"Each has no effect: {UNSUITED}.", ""]
    lines += table(head, map(option_row, never))
    lines += [
        "",
        "## Switches of the environment",
        "",
        "Read once at `init`. None of them changes what is compiled.",
        "",
        *table(
            ("variable", "meaning"),
            [
                (
                    "`QD_DUMP_IR`",
                    "write the IR of every stage to `debug_dump_path`, for each specialisation of "
                    "a kernel: `{kernel}_{key}_{point}.ll`, with a digest of IR and options",
                ),
                (
                    "`QD_DUMP_SIMPLIFY`",
                    "write the IR after every step of the simplification rounds",
                ),
                ("`QD_DUMP_CFG`", "write the control-flow graph before and after its optimisation"),
                ("`QD_SHOW_COMPILING`", "say which kernel is compiled, whenever one is"),
            ],
        ),
    ]
    return "\n".join(lines) + "\n"


def ops_page() -> str:
    """Every operation of the IR."""
    rows = [
        (
            f"`{info.name}`",
            ", ".join(f"`{name}`" for name in info.operands),
            "" if info.attr == "none" else info.attr,
            info.result,
            ", ".join(sorted(info.traits)),
            info.doc,
        )
        for info in CODES
    ]
    head = ("op", "operands", "attribute", "result", "traits", "meaning")
    intro = "Builder, verifier, printer and parser are made from `engine/ir/codes.py`."
    return "\n".join([NOTE, "# Operations", "", intro, "", *table(head, rows)]) + "\n"


def ir_page() -> str:
    """The text form of the IR, its stages, the verifier's rules."""
    example = ir.to_text(
        ir.parse(
            """kernel saxpy(x: ndarray<f32, 1>, y: ndarray<f32, 1>, a: f32) stage=typed {
              <i32> $0 = const 0
              <i32> $1 = external_tensor_shape_along_axis [(0, 1)]
              <f32> $2 = arg_load [2]
              $3 : range_for $0, $1 {block_dim=128} body {
                <i32> $4 = loop_index $3 [0]
                <*f32> $5 = arg_addr [(0, False)]
                <*f32> $6 = external_ptr $5, $4 ['unsafe']
                <f32> $7 = global_load $6
                <f32> $8 = mul $2, $7
                <*f32> $9 = arg_addr [(1, False)]
                <*f32> $10 = external_ptr $9, $4 ['unsafe']
                <f32> $11 = atomic_add $10, $8
              }
            }"""
        )
    ).rstrip()
    rows: list[tuple[str, ...]] = []
    for name, stage in ir.STAGES.items():
        without = ", ".join(f"`{ir.CODES[code].name}`" for code in sorted(stage.forbidden))
        types = "exact" if stage.typed else "free"
        rows.append((f"`{name}`", types, "tasks" if stage.offloaded else "ops", without))
    lines = [NOTE, "# The IR", "", *_docstring(ir.op), "", "## Text", "", "```text", example]
    lines += ["```", "", *_docstring(ir.parser), "", "## Stages", "", *_docstring(ir.spec), ""]
    lines += table(("stage", "operand types", "the root holds", "without"), rows)
    lines += ["", "## Rules", "", *_docstring(verifier)]
    return "\n".join(lines) + "\n"


def _docstring(module: ModuleType) -> list[str]:
    """A module's docstring as it stands."""
    return ["```text", *(inspect.getdoc(module) or "").splitlines(), "```"]


def passes_page() -> str:
    """Every pass, with what its file says it does."""
    lines = [
        NOTE,
        "# Passes",
        "",
        "What stands in which stage, and why, is said in `engine/passes/pipeline.py`. Without an",
        "optional pass the result is the same, only slower.",
    ]
    for info in all_passes():
        doc = inspect.getdoc(sys.modules[info.fn.__module__]) or ""
        kind = "optional" if info.optional else "required"
        per = ", once a task" if info.per_task else ""
        lines += ["", f"## {info.name}", "", f"*{kind}{per}.* {info.summary}", ""]
        lines += ["```text", doc, "```"]
    return "\n".join(lines) + "\n"


def studio_page() -> str:
    """The page of the studio as it is, with the tables of its keys made anew."""
    page = (Path(__file__).parent / "studio.md").read_text(encoding="utf-8")
    head, begin, rest = page.partition(KEYS_BEGIN)
    _, end, tail = rest.partition(KEYS_END)
    lines = [""]
    for scope, title in SCOPES.items():
        rows = [
            (" ".join(f"`{name}`" for name in key_names(c.keys)), c.title, c.help, f"`{c.id}`")
            for c in by_scope(scope)
        ]
        if rows:
            lines += [f"### {title}", "", *table(("keys", "command", "what it does", "id"), rows)]
            lines += [""]
    return head + begin + "\n" + "\n".join(lines) + "\n" + end + tail


def names_page() -> str:
    """Every public name of the language."""
    spec = importlib.util.spec_from_file_location(
        "docs_names", Path(__file__).with_name("names.py")
    )
    assert spec and spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return NOTE + "\n" + module.page()


def conformance_page() -> str:
    """Every feature of the conformance suite."""
    features = process.features()
    lines = [NOTE, "# Conformance", "", *_CONFORMANCE.strip().splitlines()]
    lines += [f"There are {len(features)} features.", *conformance_rows(features)]
    return "\n".join(lines) + "\n"


_CONFORMANCE = """
Each feature of the language has a small program that shows it. The suite runs them on every backend
and holds what they compute against what must come out, and against the interpreter:

    qd-studio doctor --conformance                         every backend that launches kernels here
    qd-studio doctor --conformance --backend opencl,cpu
    qd-studio doctor --conformance --feature gradients     one group, or one feature
    qd-studio doctor --conformance --backend opencl --config opencl_mapping=lanes
    qd-studio doctor --conformance --json

A cell of the table says

- `ok`: the values are right;
- `no`: the backend, or this device, lacks what the feature needs, and says so; reasons stand below;
- `FAILED`: another value came out, which is named with its place, or an error.

The exit code is 1 if a cell says FAILED, and 3 if none of the backends works here. A backend runs
in a process of its own: one that crashes or hangs fails that feature, and the table goes on.

A feature is a function in `app/conformance/kernels`; see `app/conformance/feature.py`. Run
`python docs/generate.py` when there is another one.
"""


PAGES: dict[str, Callable[[], str]] = {
    "config.md": config_page,
    "conformance.md": conformance_page,
    "ir.md": ir_page,
    "language/names.md": names_page,
    "ops.md": ops_page,
    "passes.md": passes_page,
    "studio.md": studio_page,
}


def main() -> None:
    for name, make in PAGES.items():
        (Path(__file__).parent / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
