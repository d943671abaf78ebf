"""A panel, an analysis and a report section from outside of qd-studio."""

from html import escape

from qd_studio.app.plugins import (
    Analysis,
    AnalysisRemark,
    Line,
    Look,
    Panel,
    ReportSection,
    Result,
    Shown,
    Subject,
    Tab,
    listing_after,
    statements,
)


def divisions(subject: Subject) -> Result:
    """Count the divisions of the finished kernel; a multiplication may be cheaper."""
    found = statements(subject.compile, listing_after(subject.compile), "op.div")
    remarks = [AnalysisRemark(f"a division: {s.text}", s.line, s.op) for s in found]
    return Result({"count": len(found)}, remarks)


ANALYSIS = Analysis(
    id="divisions",
    help="Divisions that are left after all passes.",
    numbers={"count": "divisions in the finished kernel"},
    run=divisions,
)


def draw(look: Look) -> Shown:
    """The remarks of all passes, a line each."""
    runs = look.compiled.runs if look.compiled is not None else ()
    lines = [Line(((r.text, ""),), r.op) for run in runs for r in run.remarks]
    return Shown(lines or [Line((("no pass left a remark", "dim"),))])


PANEL = Panel(
    id="hints",
    help="The remarks of all passes.",
    order=90,
    tab=Tab(draw=draw),
    text=lambda asked: [("hints", [Line((("the text of the sample panel", ""),))])],
)


def busiest(record):
    """The kernels with the most statements, at most three."""
    sizes = [
        (b.compile.snapshots[-1].ops, k.id)
        for k in record.kernels
        for b in k.backends[:1]
        if b.compile is not None and b.compile.snapshots
    ]
    return sorted(sizes, reverse=True)[:3]


SECTION = ReportSection(
    id="busiest",
    title="Largest kernels",
    markdown=lambda record: [f"- {name}: {ops} statements" for ops, name in busiest(record)],
    html=lambda record: "".join(
        f"<p>{escape(name)}: {ops} statements</p>" for ops, name in busiest(record)
    ),
    json=lambda record: [{"kernel": name, "statements": ops} for ops, name in busiest(record)],
)
