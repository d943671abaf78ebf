"""Every case of every ``*.qdir`` file; see `qdir` for the format."""

import pytest

from .qdir import all_cases, check

CASES = all_cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case, bless):
    check(case, bless)


def test_names_are_unique():
    names = [str(case) for case in CASES]
    assert len(names) == len(set(names))
