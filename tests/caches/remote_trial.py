"""Many processes on a shared cache with faults: `python -m tests.caches.remote_trial`.

Each process reads entries into new folders, checks every byte of what it loads, and writes what it
misses. Half of the server's answers are late, errors, cut, changed, signed wrongly, entries that
were replaced long ago, or entries of other keys. Nothing of that may be loaded or be an error. It
runs with the default deadline, with which the cache is soon left alone, and with a long one, with
which it is asked again and again.
"""

import json
import os
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

from qd_studio.engine.cache import folder, running
from qd_studio.engine.cache.observe import HIT

from .cache_server import CacheServer
from .remote_kit import SECRET, Host, entry_of, place_of, resigned
from .shelf import ENGINE, ROOMY, Store, code

KEYS = 40


def work(root: Path, url: str, rounds: int, number: int) -> dict:
    """What one process saw. wrong: loads with other contents."""
    random.seed(number)
    host = Host(root / str(number), url, f"host-{number}")
    wrong = loads = 0
    longest = 0.0
    for at in range(rounds):
        which = random.randrange(KEYS)
        made = entry_of(which)
        store = Store(str(root / str(number) / str(at)), "offline", ROOMY)
        store.remote = host.remote
        began = time.monotonic()
        found = store.answer(made.key, made.kernel)
        longest = max(longest, time.monotonic() - began)
        if found.state == HIT:
            loads += 1
            wrong += (found.load, found.code) != ({"number": which}, code(which))
        else:
            store.write(made)
        time.sleep(0.02)
    host.remote.flush(2)
    counts = host.remote.counts.as_dict()
    return {"wrong": wrong, "loads": loads, "longest_s": longest, **counts}


def seed(server: CacheServer) -> None:
    """Records of an older engine, which `replay` answers with."""
    for which in range(KEYS):
        name = f"ac/{place_of(which).name}"
        server.blobs[name] = resigned(which)
        server.older[name] = resigned(which, engine="0.0.9+old0")


def trial(processes: int, rounds: int, deadline_ms: str, chance: float = 0.5) -> dict:
    """The sums of all processes. failures: processes that ended with an error."""
    running.set_known(ENGINE)
    folder.warn_once = lambda path, text: None  # thousands
    os.environ |= {"QD_REMOTE_CACHE_KEY": SECRET, "QD_REMOTE_CACHE_DEADLINE": deadline_ms}
    total: dict = {"failures": 0, "refused": {}}
    with tempfile.TemporaryDirectory() as name, CacheServer(chance, 0.3) as server:
        root = Path(name)
        seed(server)
        children = []
        for number in range(processes):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    seen = work(root, server.url, rounds, number)
                    (root / f"{number}.json").write_text(json.dumps(seen))
                    status = 0
                except BaseException:
                    traceback.print_exc()
                os._exit(status)
            children.append(child)
        for child in children:
            total["failures"] += os.waitpid(child, 0)[1] != 0
        for path in root.glob("*.json"):
            for key, value in json.loads(path.read_text()).items():
                if key == "refused":
                    for why, count in value.items():
                        total["refused"][why] = total["refused"].get(why, 0) + count
                elif key in ("longest_s", "longest_ms"):
                    total[key] = max(total.get(key, 0.0), value)
                elif isinstance(value, int | float):
                    total[key] = total.get(key, 0) + value
        total["faults"] = server.faults
    return total


if __name__ == "__main__":
    results = {deadline: trial(64, 60, deadline) for deadline in ("100", "5000")}
    print(json.dumps(results, indent=1))
    sys.exit(any(result["wrong"] or result["failures"] for result in results.values()))
