"""Entries for `qd-studio cache` to show, and what became of them."""

import os

from qd_studio.engine.cache.engine_id import engine_id

from tests.caches import shelf


def full_about(number: int) -> dict:
    return {
        "file": "/src/module.py",
        "line": 11,
        "sources": [
            {"name": "module.kernel_1", "file": "/src/module.py", "line": 11, "digest": "d1",
             "text": "@qd.kernel\ndef kernel_1(x):\n\thelp(x)\n"},
            {"name": "module.help", "file": "/src/other.py", "line": 5, "digest": "d2",
             "text": "def help(x): pass"},
        ],
        "captures": [{"in": "module.kernel_1", "name": "N.size", "kind": "int", "value": "5"}],
        "params": ["x: ndarray<f32, 1>"],
        "ms": {"frontend": 0.5, "passes": 12.0, "codegen": 3.25},
        "engine": engine_id(),
    }  # fmt: skip


def snapshot(root) -> dict:
    """Bytes and times of change of all files."""
    found = {}
    for name in shelf.file_names(root):
        path = os.path.join(root, name)
        with open(path, "rb") as file:
            found[name] = (file.read(), os.stat(path).st_mtime_ns)
    return found


def damage(path: str) -> None:
    with open(path, "r+b") as file:
        file.seek(200)
        file.write(b"\0\0")


def left(stores) -> list[int]:
    return [n for n in range(6) if os.path.exists(shelf.path(stores[n % 2], n))]
