"""Entries whose contents follow from a number, so that any reader can tell right from wrong."""

import hashlib
import os
import threading
from collections.abc import Callable

from qd_studio.engine.cache.cleaning import Rules
from qd_studio.engine.cache.parts import key_of
from qd_studio.engine.cache.store import Entry, Info, Store

ROOMY = Rules("lru", 1 << 30, 0.25)
ENGINE = "0.1.0+aaaa"


def key(number: int) -> str:
    return key_of([("number", str(number))])


def kernel(number: int) -> str:
    """Five kernels, so that several entries are of one."""
    return f"module.kernel_{number % 5}"


def load(number: int) -> dict:
    return {"number": number, "leaves": [number, None, "ä\ud800", 1.5], "nested": {"a": [[]]}}


def code(number: int, size: int = 3000) -> bytes:
    seed = hashlib.sha256(str(number).encode()).digest()
    return (seed * (size // 32 + 1))[:size]


def about(number: int, **more) -> dict:
    return {
        "engine": ENGINE,
        "backend": "cpu",
        "parts": {"kernel": kernel(number), "ir": str(number)},
        **more,
    }


def entry(number: int, size: int = 3000, **more) -> Entry:
    return Entry(
        key(number), kernel(number), about(number, **more), load(number), code(number, size)
    )


def store(root, layer: str = "offline", rules: Rules = ROOMY) -> Store:
    return Store(str(root), layer, rules)


def read(found: Store, number: int):
    return found.read(key(number), kernel(number))


def is_right(found: Store, number: int, size: int = 3000) -> bool:
    return read(found, number) == (load(number), code(number, size))


def path(found: Store, number: int) -> str:
    return found.path_of(key(number), kernel(number))


def file_names(root) -> list[str]:
    """Names of all files below a folder, relative to it."""
    return sorted(
        os.path.relpath(os.path.join(at, name), root)
        for at, _, names in os.walk(root)
        for name in names
    )


def infos(found: Store) -> dict[str, Info]:
    return {info.key: info for info in found.all()}


def in_threads(work: Callable[[int], object], count: int) -> None:
    """Do ``work(0)``, ``work(1)``, ... at once."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
