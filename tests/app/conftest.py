"""A file with one kernel, for tests to look at or to rewrite."""

import pytest

from tests.app.worker.live import SCALE


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(SCALE)
    return path
