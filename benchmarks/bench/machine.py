"""Where and with what a run was made."""

import datetime
import os
import platform
import subprocess
from pathlib import Path

from .model import Options

VERSIONS = """
import sys
from importlib import metadata
found = ["Python " + sys.version.split()[0]]
for name in sys.argv[1:]:
    try:
        found.append(name + " " + metadata.version(name))
    except metadata.PackageNotFoundError:
        pass
print(", ".join(found))
"""


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def versions(python: str, *packages: str) -> str:
    command = [python, "-c", VERSIONS, *packages]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def facts(options: Options) -> dict[str, str]:
    """Date, processor, load and versions, in the order they are printed."""
    load = os.getloadavg()
    busy = "; BUSY: nothing here is settled" if load[0] > cores() / 2 else ""
    known = {
        "date": datetime.date.today().isoformat(),
        "processor": f"{cpu_model()}, {cores()} cores",
        "system": f"{platform.system()} {platform.machine()}",
        "load before": " ".join(f"{value:.1f}" for value in load) + busy,
        "ours": versions(options.ours, "qd-studio", "llvmlite", "numpy", "textual"),
    }
    if options.reference:
        known["reference"] = versions(options.reference, "quadrants", "numpy")
    if options.numba:
        known["Numba"] = versions(options.numba, "numba", "llvmlite", "numpy")
    return known
