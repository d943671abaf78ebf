"""One panel of a record as text or JSON: what ``qd-studio show`` prints.

The text is that of the studio's own panels without colour. The JSON is made of the record's own
parts, as the schema describes them, in one object per kernel and backend::

    passes    {"kernel", "backend", "runs": [PassRun], "diffs": {run index: [lines]}}
    ir        {"kernel", "backend", "run": index or null, "snapshot": Snapshot,
               "locs": [LocRecord]}
    cfg       {"kernel", "backend", "cfgs": [CfgRecord]}
    code      {"kernel", "backend", "artefacts": [Artefact], "machine": MachineRecord or null}
    launch    {"kernel", "backend", "status": text, "reason": text, "launches": [LaunchRecord],
               "agreement": AgreementRecord, "verdicts": [VerdictRecord] (against the first
               backend), "workloads": [WorkloadRecord], "unlaunched": text,
               "device": DeviceRecord or null, "flow": FlowRecord or null,
               "options": [ConfigEntry] (other than the defaults)}
    autodiff  {"kernel", "backend", "autodiff": AutodiffRecord, "forward": Snapshot or null,
               "reverse": Snapshot or null}; of gradient kernels only
    caches    {"kernel", "backend", "caches": [CacheLayer]}
    source    {"kernel", "backend", "file": FileRecord, "statements": {line: [before, after]},
               "params": [LeafRecord]}
    log       a list of LogLine, of the whole record
"""

from __future__ import annotations

import json
import shutil
from typing import Final

from ..engine.inspect.record import Record
from .core.lines import plain
from .core.visible import visible_json
from .panels import Asked, NothingToShow, find

__all__ = ["NothingToShow", "show"]

_WIDTH: Final = 100


def show(
    record: Record,
    panel: str,
    kernel: str | None = None,
    pass_name: str | None = None,
    *,
    as_json: bool = False,
) -> str:
    """The panel as text that ends in a line end.

    kernel: a name or an id; None: all. pass_name: for passes, ir and cfg, only what this pass did,
    ``NAME`` or ``NAME@STAGE``. Raises NothingToShow, or KeyError for an unknown panel.
    """
    chosen = find(panel)
    width = shutil.get_terminal_size((_WIDTH, 24)).columns
    asked = Asked(record, kernel, pass_name, width)
    if as_json and chosen.json is not None:
        text = json.dumps(chosen.json(asked), indent=1, ensure_ascii=False)
        return visible_json(text) + "\n"
    if as_json or chosen.text is None:
        form = "JSON" if as_json else "text"
        raise NothingToShow(chosen.fault or f"the panel {chosen.id} has no {form}")
    return "\n".join(
        f"== {title}\n{plain(lines)}" if title else plain(lines)
        for title, lines in chosen.text(asked)
    )
