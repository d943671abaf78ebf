"""Runs cases of the corpus with the caches on disk: `corpus_child.py PROGRAM OUT ARCH NAME...`.

As the corpus' own worker does, but for the options; the environment may say more of these. The last
line reports what the store of the offline cache did.
"""

import json
import os
import sys

from tests.reference import worker

start = worker.start


def with_caches(qd, engine, arch, options):
    more = json.loads(os.environ.get("CORPUS_OPTIONS", "{}"))
    start(qd, engine, arch, {"offline_cache": True, **more, **options})


def main():
    program, out, arch, *names = sys.argv[1:]
    worker.start = with_caches
    worker.main(program, out, "ours", arch, *names)
    from qd_studio.engine.cache import store

    stores = store._stores
    counts = [s.statistics for (_, layer), s in stores.items() if layer == "offline"]
    reported = {
        "hits": sum(c.hits for c in counts),
        "misses": sum(c.misses for c in counts),
        "stored": sum(c.stored for c in counts),
        "damaged": sum(c.damaged for c in counts),
    }
    with open(out, "a", encoding="utf-8") as file:
        file.write(json.dumps({"name": "<store>", **reported}) + "\n")


if __name__ == "__main__":
    main()
