"""Finding the samples and their kernels.

Samples are scripts: a file may import its neighbours (`geometry.py` does), so their folder
is on the import path here as it does when one of them is run.

There are two kinds. Those that import this engine declare workloads and checks beside their
kernels. Those that say `import quadrants` run unchanged on Quadrants, too, which knows neither;
they have a scenario, `simulate(steps)`, that returns arrays by name (`PORTABLE`).
"""

import ast
import importlib
import sys
from pathlib import Path

SAMPLES = Path(__file__).parents[2] / "sample_kernels"
sys.path.insert(0, str(SAMPLES))


def decorators_of(node):
    """The decorators of a function definition, as source text."""
    return [ast.unparse(decorator) for decorator in getattr(node, "decorator_list", [])]


def kernels_in(path):
    """Names of the kernels of a sample, read from its text: collecting tests imports nothing."""
    tree = ast.parse(path.read_text())
    return [node.name for node in tree.body if "qd.kernel" in decorators_of(node)]


_TEXTS = {path: path.read_text() for path in sorted(SAMPLES.glob("*.py"))}
PORTABLE = [path for path, text in _TEXTS.items() if "\nimport quadrants as qd" in text]
FILES = [path for path in _TEXTS if path not in PORTABLE]
KERNELS = [(path.stem, name) for path in FILES for name in kernels_in(path)]


def kernel_of(sample, kernel_name):
    return getattr(importlib.import_module(sample), kernel_name)
