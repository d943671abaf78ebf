"""The nonce that keeps the driver's own cache cold, and what is reported of that layer."""

import os
import re
import subprocess
import sys
import threading

import pytest
from qd_studio import engine as qd
from qd_studio.engine.cache import driver
from qd_studio.engine.cache.observe import HIT, MISS, NOT_APPLICABLE, OFF
from qd_studio.engine.config import CompileConfig

from tests.caches import shelf
from tests.caches.ptx_kit import assembled, make_ptx

COLD = CompileConfig(offline_cache=False)
WARM = CompileConfig(offline_cache=True)
PTX = ".version 8.0\n.target sm_90\n.address_size 64\n"
FORM = re.compile(r"// qd-session-nonce: \d+-[0-9a-f]{8}")


def last_line(data: bytes) -> str:
    return data.decode().rstrip("\0").splitlines()[-1]


def test_the_nonce_is_one_comment_line_after_the_text():
    data = driver.submitted(PTX, COLD)
    assert data.startswith(PTX.encode()) and data.endswith(b"\n\0")
    added = data.decode().removeprefix(PTX).removesuffix("\n\0")
    assert FORM.fullmatch(added)


def test_a_text_without_a_line_end_gets_one_first():
    text = driver.submitted(PTX.rstrip("\n"), COLD).decode()
    assert text.splitlines()[2] == ".address_size 64" and FORM.match(text.splitlines()[3])


def test_no_nonce_with_the_offline_cache():
    assert driver.submitted(PTX, WARM) == PTX.encode() + b"\0"


def test_a_text_with_a_nul_is_refused():
    with pytest.raises(ValueError, match="NUL"):
        driver.submitted(PTX + "\0more", WARM)


def test_constant_within_a_process():
    assert driver.submitted(PTX, COLD) == driver.submitted(PTX, COLD)
    assert driver.nonce() == driver.nonce()


def test_constant_across_threads_that_ask_first_at_once():
    driver._lines.clear()
    start = threading.Barrier(8)
    seen = []

    def ask(_):
        start.wait()
        seen.append(driver.nonce())

    shelf.in_threads(ask, 8)
    assert len(seen) == 8 and len(set(seen)) == 1


def test_constant_across_init_and_reset():
    qd.init(arch=qd.cpu, offline_cache=False)
    before = driver.nonce()
    qd.reset()
    qd.init(arch=qd.cpu, offline_cache=False)
    assert driver.nonce() == before
    qd.reset()


FORK = """
import os, sys
from qd_studio.engine.cache import driver
before = driver.nonce()
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.write(write, f"{driver.nonce()}\\n{driver.nonce()}\\n".encode())
    os._exit(0)
os.waitpid(child, 0)
first, second = os.read(read, 1000).decode().splitlines()
print(before == driver.nonce(), first == second, first != before)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_its_own():
    result = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["True", "True", "True"]


def test_the_nonce_changes_nothing_of_the_machine_code(tmp_path):
    ptx = make_ptx()
    plain, cold = driver.submitted(ptx, WARM), driver.submitted(ptx, COLD)
    assert plain != cold
    assert assembled(plain, tmp_path) == assembled(cold, tmp_path)


def test_other_backends_have_no_such_layer():
    seen = driver.observe(WARM, "cpu")
    assert (seen.layer, seen.state) == ("driver", NOT_APPLICABLE) and "cpu" in seen.reason


def test_off_without_the_offline_cache_says_why():
    seen = driver.observe(COLD, "cuda", compiled=True, ms=3.0)
    assert seen.state == OFF and "offline_cache=False" in seen.reason and seen.ms == 3.0


def test_off_by_the_variable_of_the_driver(monkeypatch):
    monkeypatch.setenv("CUDA_CACHE_DISABLE", "1")
    seen = driver.observe(WARM, "cuda", compiled=True)
    assert seen.state == OFF and "CUDA_CACHE_DISABLE" in seen.reason
    monkeypatch.setenv("CUDA_CACHE_DISABLE", "0")
    assert driver.observe(WARM, "cuda", compiled=True).state == MISS


def test_hit_and_miss_are_what_the_driver_reported():
    hit = driver.observe(WARM, "cuda", compiled=False)
    assert (hit.state, hit.source) == (HIT, "disk")
    assert driver.observe(WARM, "cuda", compiled=True).state == MISS
    assert driver.observe(WARM, "cuda").state == NOT_APPLICABLE
