"""Write what is generated from the source, pages and the record schema: `python docs/generate.py`.

Tests compare the generated files with the committed ones.
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
from qd_studio.engine.inspect import store
from qd_studio.engine.ir import verifier
from qd_studio.engine.ir.codes import CODES
from qd_studio.engine.options import UNSUITED, Option
from qd_studio.engine.passes.registry import all_passes

INTRO = """\
Set an option with `qd.init(name=value)` or with the environment variable in the table. An
argument overrides the variable, with a warning if both are set to different values. The variable
overrides the default. An empty variable counts as unset. Switches accept `0` and `1`, also `true`
and `false`.
`QD_DEFAULT_FP` and `QD_DEFAULT_IP` hold a number of bits, `32` or `64`. `QD_ARCH` overrides the
argument `arch`. The unsigned type `default_up` follows `default_ip` and cannot be set. An unknown
name raises a `KeyError`.

Options in cache keys change the generated code: a cache entry with a different value is not used.
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
        "A value that would need missing machinery prints a warning, once per process.",
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
        "## Environment switches",
        "",
        "These are read once at `init`. None of them changes the compiled code.",
        "",
        *table(
            ("variable", "meaning"),
            [
                (
                    "`QD_DUMP_IR`",
                    "write the IR of every stage to `debug_dump_path`, for each specialisation of "
                    "a kernel: `{kernel}_{key}_{point}.ll`; the key is a digest of IR and options",
                ),
                (
                    "`QD_DUMP_SIMPLIFY`",
                    "write the IR after every step of the simplification rounds",
                ),
                ("`QD_DUMP_CFG`", "write the control-flow graph before and after its optimisation"),
                ("`QD_SHOW_COMPILING`", "print the name of each kernel that is compiled"),
                ("`QD_DEBUG_ADSTACK`", "report the memory of adstacks when it is planned"),
                ("`QD_GPU_GRAPH`", "the older name of `QD_GRAPH`, used where that is not set"),
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
    intro = "`engine/ir/codes.py` defines builder, verifier, printer and parser."
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
    """A module's docstring, unchanged, as a text block."""
    return ["```text", *(inspect.getdoc(module) or "").splitlines(), "```"]


def passes_page() -> str:
    """Every pass, with what its file says it does."""
    lines = [
        NOTE,
        "# Passes",
        "",
        "`engine/passes/pipeline.py` lists the passes of each stage and the reasons for it.",
        "Skipping an optional pass produces the same result, but slower.",
    ]
    for info in all_passes():
        doc = inspect.getdoc(sys.modules[info.fn.__module__]) or ""
        kind = "optional" if info.optional else "required"
        per = ", once per task" if info.per_task else ""
        lines += ["", f"## {info.name}", "", f"*{kind}{per}.* {info.summary}", ""]
        lines += ["```text", doc, "```"]
    return "\n".join(lines) + "\n"


def studio_page() -> str:
    """The page of the studio as it is, with new tables of its keys."""
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


def _page_of(name: str) -> str:
    """The page that the module ``name`` in this folder makes."""
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"docs_{name}", path)
    assert spec and spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return NOTE + "\n" + module.page()


def names_page() -> str:
    """Every public name of the language."""
    return _page_of("names")


def compatibility_page() -> str:
    """Every public name of the reference, and whether it is here."""
    return _page_of("compatibility")


def conformance_page() -> str:
    """Every feature of the conformance suite."""
    features = process.features()
    lines = [NOTE, "# Conformance", "", *_CONFORMANCE.strip().splitlines()]
    lines += [f"There are {len(features)} features.", *conformance_rows(features)]
    return "\n".join(lines) + "\n"


_CONFORMANCE = """
Each feature of the language has a small program that demonstrates it. The suite runs the programs
on every backend and compares the results with the expected values and with the interpreter:

    qd-studio doctor --conformance                         every backend that launches kernels here
    qd-studio doctor --conformance --backend opencl,cpu
    qd-studio doctor --conformance --feature gradients     one group, or one feature
    qd-studio doctor --conformance --backend opencl --config opencl_mapping=lanes
    qd-studio doctor --conformance --json

A cell of the table is one of

- `ok`: the values are correct;
- `no`: the backend, or this device, does not support the feature; the reasons are listed below;
- `FAILED`: a wrong value, with its position, or an error.

The exit code is 1 if a cell is FAILED, and 3 if none of the backends works here. Each backend runs
in a separate process. If it crashes or hangs, that feature fails, and the table continues.

A feature is a function in `app/conformance/kernels`; see `app/conformance/feature.py`. Run
`python docs/generate.py` after adding one.
"""


PAGES: dict[str, Callable[[], str]] = {
    "compatibility.md": compatibility_page,
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
    store.SCHEMA_FILE.write_text(store.schema_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
