"""The comparison with a baseline, for Markdown and HTML: what ``qd-studio diff`` says."""

from __future__ import annotations

from collections import Counter
from html import escape as esc

from ...engine.inspect.compare import Comparison, KernelComparison
from ..core.lines import plain
from ..core.views.compared import kernel_lines, summary, verdict_word
from ..markup import markdown as md
from ..markup.html import table, td

__all__ = ["to_html", "to_markdown"]

_HEADS = ("kernel", "verdict", "what differs")


def _counts(found: Comparison) -> str:
    counts = Counter(verdict_word(kernel) for kernel in found.kernels)
    return ", ".join(f"{n} {word}" for word, n in counts.items()) or "no kernels to compare"


def _summary(kernel: KernelComparison) -> str:
    text = "".join(text for text, _ in summary(kernel))
    return "" if text == verdict_word(kernel) else text


def _changed(found: Comparison) -> list[KernelComparison]:
    return [kernel for kernel in found.kernels if kernel.state != "same"]


def to_markdown(found: Comparison | None) -> list[str]:
    """The section: a row for each kernel that is not the same, all figures folded below."""
    if found is None:
        return []
    out = ["## Compared with the baseline", "", f"{md.text(_counts(found))}.", ""]
    for note in found.notes:
        out += [f"Note: {md.text(note)}", ""]
    changed = _changed(found)
    if not changed:
        return out
    out += md.table(
        _HEADS, [[md.text(x) for x in (k.name, verdict_word(k), _summary(k))] for k in changed]
    )
    text = "".join(plain(kernel_lines(kernel)) for kernel in changed)
    return out + md.folded("All figures", md.fenced(text.rstrip("\n")))


def to_html(found: Comparison | None) -> str:
    """The section of the page."""
    if found is None:
        return ""
    out = [f"<h2>Compared with the baseline</h2><p>{esc(_counts(found))}.</p>"]
    out += [f'<p class="facts">{esc(note)}</p>' for note in found.notes]
    changed = _changed(found)
    if changed:
        out.append(
            table(_HEADS, [[td(k.name), td(verdict_word(k)), td(_summary(k))] for k in changed])
        )
        text = "".join(plain(kernel_lines(kernel)) for kernel in changed)
        out.append(f"<details><summary>All figures</summary><pre>{esc(text)}</pre></details>")
    return "".join(out)
