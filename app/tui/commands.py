"""The one table of actions: bindings, palette, help, key bars, docs and key maps are made of it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from textual.binding import Binding

if TYPE_CHECKING:
    from ..panels import Panel

__all__ = ["SCOPES", "Command", "all_commands", "bindings", "by_scope", "command", "key_names"]


class Command(NamedTuple):
    """An action a person can ask for.

    id: stable, for key maps. keys: separated by commas. action: the Textual action. scope: where
    it works (`SCOPES`).
    """

    id: str
    keys: str
    title: str
    help: str
    action: str
    scope: str


SCOPES: Final = {
    "everywhere": "Everywhere",
    "list": "In any list or listing",
    "home": "On the matrix of kernels",
    "kernel": "On a kernel",
    "debug": "On the Debug tab of a kernel",
    "compare": "On the list of what to compare with",
    "versus": "On a comparison",
    "ir": "On the IR of two compiles",
    "study": "On the answer of a bisection",
    "application": "On the kernels of an application",
    "config": "On the options",
}

_OF_SCOPES: Final = {
    "everywhere": (
        ("help", "question_mark,f1", "Help", "Show all keys.", "app.help"),
        ("quit", "q", "Quit", "Leave the studio.", "app.quit"),
        ("back", "escape", "Back", "Leave this screen, panel or search.", "app.leave"),
        ("palette", "ctrl+p,colon", "Commands", "Find and run any action.", "app.command_palette"),
        ("search", "slash", "Search", "Find text in the focused list.", "app.search"),
        ("search-next", "n", "Next match", "Go to the next match.", "app.search_step(1)"),
        ("search-previous", "N", "Previous match", "Go to the previous match.",
         "app.search_step(-1)"),
        ("find", "F", "Find everywhere", "Find text in all sources, in the IR after every pass, in "
         "generated code, errors and the log.", "app.find"),
        ("jump", "semicolon", "Jump", "Show letters at all lines on the screen; typing them goes "
         "there.", "app.jump"),
        ("copy", "y", "Copy line", "Copy the line under the cursor, without its gutter.",
         "app.copy_line"),
        ("copy-all", "Y", "Copy everything", "Copy the whole list.", "app.copy_all"),
        ("save", "s", "Save session", "Write what is shown to a .qds file in this folder.",
         "app.save_session"),
        ("refresh", "r", "Compile again", "Import, compile and measure once more.",
         "app.recompile"),
        ("cancel", "C", "Cancel", "Stop the current work of the worker.", "app.cancel"),
        ("export", "e", "Export", "Write the list to a text file; a graph also as SVG, DOT and "
         "Mermaid.", "app.export"),
        ("screenshot", "S", "Screenshot", "Write the screen to an SVG file in this folder.",
         "app.write_screenshot"),
        ("edit", "v", "Edit", "Open the source line in the editor of VISUAL or EDITOR.",
         "app.edit"),
        ("edit-ir", "i", "Edit the IR", "Open the IR after the selected pass in your editor; then "
         "check, launch and time it next to the unedited kernel.", "app.edit_ir"),
        ("bisect", "A", "Why wrong", "Find the pass that makes the kernel's result wrong.",
         "app.study('bisect')"),
        ("reproduce", "P", "Reproduce", "Write a small script that shows the wrong result.",
         "app.study('repro')"),
        ("nan", "Z", "Which NaN", "Find the operation and the iteration that made the first NaN or "
         "infinity.", "app.study('nan')"),
        ("check-gradient", "V", "Check gradient", "Compare the kernel's gradient with differences; "
         "show the wrong entry, the path to it, and the cause.", "app.study('check-grad')"),
        ("log", "o", "Log", "Show the output of user code and of the engine.", "app.log"),
        ("config", "c", "Options", "See all compile options; change some and compare.",
         "app.config"),
        ("backends", "B", "All backends", "Compile for every backend, also for those that cannot "
         "launch here; again: only for those selected at the start.", "app.backends"),
        ("theme", "t", "Light or dark", "Switch between the light and the dark theme.",
         "app.switch_theme"),
        ("next-theme", "T", "Next theme", "Change between the usual colours, high contrast, and "
         "colours safe for people who confuse red and green.", "app.next_theme"),
        ("tour-next", "full_stop", "Tour", "Start the tour, or skip its step.", "app.tour_next"),
        ("tour-end", "comma", "End the tour", "End the tour; also hides the offer of one.",
         "app.tour_end"),
        ("suspend", "ctrl+z", "Suspend", "Go back to the shell; `fg` returns.",
         "app.suspend_process"),
    ),
    "list": (
        ("line-up", "up,k", "Line up", "Move up.", "line(-1)"),
        ("line-down", "down,j", "Line down", "Move down.", "line(1)"),
        ("page-up", "pageup,ctrl+b", "Page up", "Move up by a screenful.", "page(-1)"),
        ("page-down", "pagedown,ctrl+f,space", "Page down", "Move down by a screenful.", "page(1)"),
        ("first", "home,g", "First line", "Go to the first line.", "edge(0)"),
        ("last", "end,G", "Last line", "Go to the last line.", "edge(1)"),
        ("left", "left,h", "Scroll left", "Scroll sideways.", "side(-8)"),
        ("right", "right,l", "Scroll right", "Scroll sideways.", "side(8)"),
        ("choose", "enter", "Open", "Open the item of the line.", "choose"),
    ),
    "home": (
        ("more-backends", "b", "More backends", "Show the backends that do not fit into the "
         "matrix.", "screen.more_backends"),
        ("changes", "d", "What the save did", "Compare the kernel with its state before the last "
         "save: what differs, and the diff where the IR first differs.", "screen.edit"),
        ("compare", "D", "Compare with", "Compare the kernel with any of the last saves, a "
         "revision of git, another option value, or its backends with each other.",
         "screen.compare"),
    ),
    "kernel": (
        ("next-tab", "tab", "Next tab", "Go to the next tab.", "screen.tab(1)"),
        ("previous-tab", "shift+tab", "Previous tab", "Go to the previous tab.", "screen.tab(-1)"),
        ("next-pass", "right_square_bracket", "Next pass", "Step to the next pass with an effect "
         "(on Code: the next text).", "screen.step(1)"),
        ("previous-pass", "left_square_bracket", "Previous pass", "Step back (on Code: the "
         "previous text).", "screen.step(-1)"),
        ("next-hunk", "right_curly_bracket", "Next change", "Jump to the next changed lines.",
         "screen.hunk(1)"),
        ("previous-hunk", "left_curly_bracket", "Previous change", "Jump to the previous changed "
         "lines.", "screen.hunk(-1)"),
        ("definition", "d", "Definition", "Go to the definition of the first operand; again: of "
         "the next operand.", "screen.definition"),
        ("use", "D", "Next use", "Go to the next op that uses this one.", "screen.use"),
        ("error", "E", "Go to the error", "Show the source line of the first error.",
         "screen.error"),
        ("pane", "w", "Other pane", "Move between the list of passes and the diff, or the cache "
         "layers and the details of one; on Autodiff: to the next pane.", "screen.other_pane"),
        ("narrower", "less_than_sign", "Narrower list", "On Passes: give the diff more columns.",
         "screen.widen(-6)"),
        ("wider", "greater_than_sign", "Wider list", "On Passes: give the list more columns.",
         "screen.widen(6)"),
        ("zoom", "m", "Only this pane", "On Passes, Caches and Autodiff: give the focused pane all "
         "of the space, or undo that.", "screen.zoom"),
        ("split", "u", "Split or unified", "Show the diff in two columns or in one.",
         "screen.flip('split')"),
        ("noops", "z", "Show no-ops", "Show or fold passes without effect.",
         "screen.flip('fold_noops')"),
        ("whole", "x", "Whole listing", "Show or fold unchanged lines of the diff or graph, and "
         "what the readable form of code leaves out.", "screen.flip('whole')"),
        ("form", "f", "Readable form", "Show the IR on Passes, or LLVM IR, PTX and assembly on "
         "Code, in the readable form, with your names and infix, or as it is.",
         "screen.flip('readable')"),
        ("what-if", "W", "What if", "On Explain: compile as if the assumptions of the remark under "
         "the cursor held, check the results, and measure the gain.", "screen.what_if"),
        ("graph-form", "O", "Form of the graph", "Show control flow as a drawing, as an overview "
         "with loops as boxes, or as an outline.", "screen.graph_form"),
        ("backend", "b", "Next backend", "Show the next backend's compile.", "screen.next_backend"),
        ("measure", "M", "Measure the machine", "On Cost: measure bandwidth, arithmetic and "
         "latency, once for this machine, and show what limits each task.", "screen.measure"),
        ("next-kernel", "J", "Next kernel", "Show the next kernel.", "screen.kernel(1)"),
        ("previous-kernel", "K", "Previous kernel", "Show the previous kernel.",
         "screen.kernel(-1)"),
    ),
    "debug": (
        ("debug-next", "right_square_bracket,f10", "Next line", "Step to the next line.",
         "screen.debug('motion', 'next')"),
        ("debug-previous", "left_square_bracket,f7", "Line before", "Step back to the line before.",
         "screen.debug('motion', 'stepBack')"),
        ("debug-into", "greater_than_sign,f11", "Into the function", "Step to the next line, also "
         "of a function that the line calls.", "screen.debug('motion', 'stepIn')"),
        ("debug-out", "less_than_sign,f12", "Out of the function", "Step to the caller.",
         "screen.debug('motion', 'stepOut')"),
        ("debug-op", "plus,equals_sign", "Next op", "Execute one op of the IR.",
         "screen.debug('motion', 'next', True)"),
        ("debug-op-back", "minus", "Op before", "Undo one op of the IR.",
         "screen.debug('motion', 'stepBack', True)"),
        ("debug-continue", "right_curly_bracket,f5", "Continue", "Go on to a breakpoint, a change, "
         "an error or the end.", "screen.debug('motion', 'continue')"),
        ("debug-reverse", "left_curly_bracket,f6", "Continue backwards", "Go back to a breakpoint, "
         "a change or the start.", "screen.debug('motion', 'reverseContinue')"),
        ("debug-break", "b,f9", "Breakpoint", "Set a breakpoint at the line under the cursor, or "
         "remove it.", "screen.debug('breakpoint')"),
        ("debug-condition", "U", "Breakpoint with a condition", "Set a breakpoint that stops only "
         "if an expression is true, such as `i == 3 and x[i] > 2`.", "screen.debug('condition')"),
        ("debug-who", "W", "Who wrote it", "Find the last write of the selected value; of an "
         "array, of the element that you name.", "screen.debug('who', False)"),
        ("debug-when", "H", "When it changed", "Find the last write that changed the selected "
         "value; of an array, of the element that you name.", "screen.debug('who', True)"),
        ("debug-change", "X", "Stop when it changes", "Continue until the selected value changes; "
         "of an array, the element that you name. Again: no longer. Nothing removes all.",
         "screen.debug('change')"),
        ("debug-go", "L", "Go to that moment", "Go to the moment before the write that was found; "
         "again: back to where you were.", "screen.debug('go')"),
        ("debug-value", "p", "Value of an expression", "Show the value of an expression over the "
         "names of the kernel; it stays below the values. Nothing removes all.",
         "screen.debug('ask_value')"),
        ("debug-op-list", "f", "IR", "Show or hide the ops of the IR around this moment.",
         "screen.debug('ops')"),
        ("debug-iteration", "I", "Another iteration", "Choose the iteration (`3`, `3, 4`; `all`) "
         "and start again.", "screen.debug('iteration')"),
        ("debug-workload", "Q", "Another workload", "Choose the workload and start again.",
         "screen.debug('workload')"),
        ("debug-restart", "a", "Start again", "Start again, with the file as it is saved now.",
         "screen.debug('restart')"),
    ),
    "compare": (
        ("compare-from", "m", "Compare from here", "Compare the others with the save under the "
         "cursor, not with the newest.", "screen.mark"),
    ),
    "versus": (
        ("versus-backend", "b", "Next backend", "Show the passes on the next backend.",
         "screen.step"),
        ("versus-whole", "x", "All passes", "Show or hide passes without an effect.",
         "screen.whole"),
    ),
    "ir": (
        ("diff-form", "f", "Readable form", "Show the IR in the readable form, with your names and "
         "infix, or as it is.", "screen.form"),
    ),
    "study": (
        ("which-commit", "b", "Which commit", "Find the commit that made the result wrong or "
         "different, or worse in what was asked last; asks for a good revision of git.",
         "screen.commits"),
    ),
    "application": (
        ("sort-next", "right_square_bracket", "Sort by the next column", "Sort the kernels by the "
         "next column.", "screen.sort(1)"),
        ("sort-previous", "left_square_bracket", "Sort by the previous column", "Sort the kernels "
         "by the column before.", "screen.sort(-1)"),
        ("expensive", "x", "Most expensive lines", "Count what each source line of the program "
         "costs, in another process, and list the most expensive ones.", "screen.expensive"),
        ("sort-turn", "R", "Turn the order", "Sort in the opposite order.", "screen.turn"),
    ),
    "config": (
        ("option-next", "right_square_bracket", "Next value", "Compile with the next value of the "
         "option: the next choice, or twice the number.", "screen.option_step(1)"),
        ("option-previous", "left_square_bracket", "Previous value", "Compile with the value "
         "before: the choice before, or half of the number.", "screen.option_step(-1)"),
        ("option-default", "u", "Value at the start", "Compile with the option's value at the "
         "start again.", "screen.option_default"),
        ("sweep", "p", "Sweep", "Measure the selected kernel with several values of the option, "
         "and plot the times.", "screen.sweep"),
    ),
}  # fmt: skip
_COMMANDS: Final = tuple(
    Command(*each, scope) for scope, several in _OF_SCOPES.items() for each in several
)


_TAB_KEYS: Final = (*"1234567890", *(f"alt+{n}" for n in range(1, 10)))
"""Those of packages come last."""


@cache
def all_commands() -> tuple[Command, ...]:
    """All commands, those of the tabs after the one for the tab before; loads the panels."""
    from ..panels import tabs

    at = _COMMANDS.index(command("previous-tab")) + 1
    return (*_COMMANDS[:at], *map(_tab_command, tabs(), _TAB_KEYS), *_COMMANDS[at:])


def _tab_command(panel: Panel, key: str) -> Command:
    return Command(f"tab-{panel.id}", key, f"Tab {panel.id}", f"Show the {panel.id} tab.",
                   f"screen.show_tab('{panel.id}')", "kernel")  # fmt: skip


def by_scope(scope: str) -> list[Command]:
    """The commands of one scope, in order."""
    # Only the scope of kernels has tabs: the first screen need not load the panels.
    found = all_commands() if scope == "kernel" else _COMMANDS
    return [c for c in found if c.scope == scope]


def command(id: str) -> Command:
    """The command called ``id``; KeyError if there is none."""
    found = _BY_ID.get(id)
    return found if found is not None else {c.id: c for c in all_commands()}[id]


_BY_ID: Final = {c.id: c for c in _COMMANDS}


@cache
def _ids() -> frozenset[str]:
    return frozenset([c.id for c in all_commands()])


def is_known(item: tuple[str, str]) -> bool:
    """True if an item of the key bar, (ids joined by ``+``, word), names commands only."""
    return _ids().issuperset(item[0].split("+"))


_NAMES: Final = {
    "question_mark": "?", "slash": "/", "colon": ":", "right_square_bracket": "]",
    "left_square_bracket": "[", "right_curly_bracket": "}", "left_curly_bracket": "{",
    "less_than_sign": "<", "greater_than_sign": ">", "escape": "esc", "pageup": "pgup",
    "pagedown": "pgdn", "full_stop": ".", "comma": ",", "semicolon": ";",
    "circumflex_accent": "^", "dollar_sign": "$", "asterisk": "*",
}  # fmt: skip


def key_names(keys: str) -> list[str]:
    """Keys as a person calls them: ``question_mark,f1`` becomes ``["?", "f1"]``."""
    return [_name(*key.rpartition("+")) for key in keys.split(",")]


def _name(held: str, plus: str, key: str) -> str:
    return f"{held}{plus}{_NAMES.get(key, key)}"


def bindings(scope: str) -> list[Binding | tuple[str, str] | tuple[str, str, str]]:
    """Textual bindings of one scope; ids let a key map change the keys."""
    return [
        Binding(c.keys, c.action, c.title, show=False, id=c.id, tooltip=c.help)
        for c in by_scope(scope)
    ]
