"""The page of compatibility states a reason for each name that is missing, and for no other."""

from tests.hygiene.test_language_pages import module

PAGE = module("compatibility")


def test_every_missing_name_has_a_reason_and_every_reason_a_name():
    listed = {one.path: one for one in PAGE.entries()}
    unexplained = [path for path, one in listed.items() if not one.here and not one.remark]
    assert not unexplained
    here = {path for path, one in listed.items() if one.here}
    assert not set(PAGE.MISSING) - (set(listed) - here)
    assert not set(PAGE.DIFFERS) - here
