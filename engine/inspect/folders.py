"""The caches on disk as a whole: where they are, how full, and what is wrong with them.

Looking leaves no trace, as everywhere in this package.
"""

from __future__ import annotations

import os

from ..cache import cleaning, folder
from ..cache.store import Store, remedy
from ..config import resolve
from ..named_tuple import NamedTuple

__all__ = ["CacheFolder", "LayerFolder", "cache_folder"]


class LayerFolder(NamedTuple):
    """One layer's folder. bytes: of all its entries. problem, remedy: of the folder itself.

    bad: (path, what is wrong) of each entry of no use. foreign: how many another version wrote.
    """

    name: str
    entries: int = 0
    bytes: int = 0
    problem: str = ""
    remedy: str = ""
    bad: tuple[tuple[str, str], ...] = ()
    foreign: int = 0


class CacheFolder(NamedTuple):
    """The root of the caches. off: why options keep programs off it, or empty. there: it exists.

    problem, remedy: why it is not used or not written to. limit: bytes.
    """

    root: str
    off: str = ""
    there: bool = False
    problem: str = ""
    remedy: str = ""
    limit: int = 0
    policy: str = ""
    layers: tuple[LayerFolder, ...] = ()

    @property
    def bytes(self) -> int:
        """The size of all layers together."""
        return sum(layer.bytes for layer in self.layers)


def cache_folder() -> CacheFolder:
    """The caches that a program started here would use: options are those of the environment.

    Every entry is read and checked.
    """
    config = resolve({}, os.environ).config
    root = folder.root_of(config)
    rules = cleaning.Rules.of(config)
    off = "" if config.offline_cache else "offline_cache=False: programs use no cache on disk"
    found = CacheFolder(root, off, limit=rules.limit, policy=rules.policy)
    try:
        problem = folder.fault_of(root)
    except FileNotFoundError:
        return found
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    layers: tuple[LayerFolder, ...] = ()
    if not problem:
        names = [name for name in folder.names_in(root) if folder.is_layer(name)]
        layers = tuple(_layer(root, name, rules) for name in names)
        if not os.access(root, os.W_OK | os.X_OK):
            problem = "cannot be written to: kernels are found there, but new ones are not kept"
    return found._replace(
        there=True, layers=layers, problem=problem, remedy=remedy(root, problem) if problem else ""
    )  # fmt: skip


def _layer(root: str, name: str, rules: cleaning.Rules) -> LayerFolder:
    store = Store(root, name, rules)
    try:
        problem = folder.fault_of(store.folder)
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    if problem:
        return LayerFolder(name, problem=problem, remedy=remedy(store.folder, problem))
    infos = list(store.all())
    return LayerFolder(
        name,
        len(infos),
        sum(info.size for info in infos),
        bad=tuple((x.path, x.problem) for x in infos if x.problem and not x.foreign),
        foreign=sum(info.foreign for info in infos),
    )
