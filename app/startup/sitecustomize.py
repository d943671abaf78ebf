"""Python imports this when it starts, in a program that ``qd-studio run`` has started.

It is not part of a package then: the folder of this file is the first of PYTHONPATH, so that every
Python process of the program imports it, however it was started (multiprocessing by spawn or
forkserver, subprocess). A process with another Python, which lacks qd-studio, is left alone.

The folder is removed from ``sys.path`` again, and a sitecustomize that this one hides is imported.
"""

import importlib
import json
import os
import sys

_VARIABLE = "QDSTUDIO_RUN"


def _start() -> None:
    try:
        wanted = json.loads(os.environ.get(_VARIABLE, "{}"))
        begin = importlib.import_module(wanted["begin"])
    except (ImportError, ValueError, KeyError):
        return
    begin.begin(wanted)


def _hidden() -> None:
    """Import the sitecustomize that the user's Python has, if there is one."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != here]
    sys.path_importer_cache.pop(here, None)
    mine = sys.modules.pop("sitecustomize", None)
    try:
        importlib.import_module("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if mine is not None:
            sys.modules["sitecustomize"] = mine


if _VARIABLE in os.environ:
    _hidden()
    _start()
