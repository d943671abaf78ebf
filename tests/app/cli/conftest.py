"""A folder of caches, and the command that looks into it."""

import os
import time

import pytest
from qd_studio.app.cli import main

from tests.app.cli.kit import full_about
from tests.caches import shelf


@pytest.fixture
def root(tmp_path) -> str:
    return str(tmp_path / "cache")


@pytest.fixture
def cache(root, capsys):
    """Runs a command on the root; gives exit code, standard output and standard error."""

    def run(*words: str, at: str = root) -> tuple[int, str, str]:
        status = main(["cache", *words, "--path", at])
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def filled(root):
    """Six entries in two layers, of two kernels, used 0 to 5 days ago."""
    stores = [shelf.store(root), shelf.store(root, "fastcache")]
    now = time.time()
    for number in range(6):
        s = stores[number % 2]
        s.write(shelf.entry(number, **full_about(number)))
        used = now - number * 86400
        os.utime(shelf.path(s, number), (used, used))
    return stores
