"""Machines with a shared cache, in one process."""

import json
import os

from qd_studio.engine.cache import entry
from qd_studio.engine.cache.parts import key_of
from qd_studio.engine.cache.remote import client, record, signing
from qd_studio.engine.cache.remote.record import ENTRY, Place
from qd_studio.engine.cache.remote.signing import Keys
from qd_studio.engine.cache.store import Entry, Store
from qd_studio.engine.config import resolve

from .shelf import ENGINE, ROOMY, code

SECRET = "the secret of the team"
KERNEL = "module.kernel"


made_here: list["Host"] = []


class Host:
    """A machine: a folder of its own, and the shared cache."""

    def __init__(self, root, url: str, host: str = "host-a", **options):
        given = {"remote_cache": url, "offline_cache_file_path": str(root), **options}
        self.config = resolve(given, os.environ).config
        self.remote = client.Remote(
            client.settings_of(self.config), signing.keys_of(self.config, os.environ), host
        )
        self.counts = self.remote.counts
        made_here.append(self)

    def store(self, layer: str = "offline") -> Store:
        found = Store(self.config.offline_cache_file_path, layer, ROOMY)
        found.remote = self.remote
        return found

    def write(self, number: int, **more) -> str:
        made = entry_of(number, **more)
        assert self.store().write(made)
        assert self.remote.flush(5)
        return made.key

    def read(self, number: int, **more):
        made = entry_of(number, **more)
        return self.store().answer(made.key, made.kernel)


def entry_of(number: int, size: int = 3000, engine: str = ENGINE, target: str = "znver4") -> Entry:
    parts = {"kernel": KERNEL, "engine": engine, "target": target, "ir": str(number)}
    about = {"engine": engine, "backend": "cpu", "parts": parts, "file": "k.py"}
    return Entry(key_of(parts.items()), KERNEL, about, {"number": number}, code(number, size))


def place_of(number: int) -> Place:
    return Place(ENTRY, "offline", KERNEL, entry_of(number).key)


def resigned(number: int, secret: str = SECRET, at: Place | None = None, **change) -> bytes:
    """A record for the place of ``number``, changed before it was signed."""
    made = entry_of(number, engine=change.pop("engine", ENGINE))
    data = entry.pack(made._replace(about={**made.about, "created": 1.0}))
    lines, digest = record.closed(
        at or place_of(number), made.about, data, Keys(secret.encode()), "host-x"
    )
    if change:
        about = {**json.loads(lines.split(b"\n")[1]), **change}
        text = b"QDRC1\n" + json.dumps(about).encode()
        lines = text + b"\n" + Keys(secret.encode()).sign(text)[1].encode() + b"\n"
    return record.packed(lines, digest, data)[0]
