"""The names that packages import to extend the studio; `docs/plugins.md` shows how.

    [project.entry-points."qd_studio.panels"]           a tab, a part of ``show`` and of reports
    [project.entry-points."qd_studio.analyses"]         numbers and remarks, for rules and reports
    [project.entry-points."qd_studio.report_sections"]  a section of reports

The name of an entry point is the id of the `Panel`, `Analysis` or `ReportSection` it leads to.
Names that are not in ``__all__`` here may change in any version.
"""

from __future__ import annotations

from ..engine.inspect.ir_counts import Statement, listing_after, statements
from .core.analyses import Analysis, AnalysisRemark, Result, Subject
from .core.lines import Line
from .markup.html import Page
from .panels import Asked, Look, NothingToShow, Panel, Shown, Tab
from .report.sections import ReportSection

__all__ = [
    "Analysis", "AnalysisRemark", "Asked", "Line", "Look", "NothingToShow", "Page", "Panel",
    "ReportSection", "Result", "Shown", "Statement", "Subject", "Tab", "listing_after",
    "statements",
]  # fmt: skip
