"""The engine's public names: one sorted `__all__`, every name there, every name documented."""

import inspect
import re

from qd_studio import engine as qd


def sort_key(name: str):
    """Constants, then classes, then the rest, numbers by value: the order ruff keeps."""
    kind = 0 if len(name) > 1 and name.isupper() else 1 if name[0].isupper() else 2
    parts = [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
    return kind, parts


def test_all_is_sorted_without_doubles():
    names = list(qd.__all__)
    assert names == sorted(names, key=sort_key)
    assert len(names) == len(set(names))


def test_every_public_name_is_there():
    assert "kernel" in qd.__all__
    missing = [name for name in qd.__all__ if not hasattr(qd, name)]
    assert not missing


def test_dir_offers_what_all_lists():
    assert set(qd.__all__) <= set(dir(qd))


def test_functions_and_classes_are_documented():
    silent = [
        name
        for name in qd.__all__
        if (inspect.isfunction(value := getattr(qd, name)) or inspect.isclass(value))
        and not (value.__doc__ or "").strip()
    ]
    assert not silent
