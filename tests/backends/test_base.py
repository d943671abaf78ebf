"""The list of backends, and what each says about itself."""

import pytest
from qd_studio.engine.backends import base
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.errors import BackendUnavailableError
from qd_studio.engine.types import PRIMITIVE_TYPES


def test_built_backends_work_here_and_are_one_object_each():
    for name in base.BUILT:
        assert base.availability(name) == (True, "")
        backend = base.find(name)
        assert backend is base.find(name)
        assert backend.name == name
        assert backend.caps.types == frozenset(PRIMITIVE_TYPES)
        assert backend.toolchain()


@pytest.mark.parametrize("name", base.ABSENT)
def test_absent_backends_say_why(name):
    works, reason = base.availability(name)
    assert not works
    assert reason
    with pytest.raises(BackendUnavailableError, match=f"{name}: {reason}"):
        base.find(name)


def test_a_name_that_is_no_backend():
    assert base.availability("abacus") == (False, "there is no such backend")
    assert set(base.names()) == {*base.BUILT, *base.ABSENT}


def test_targets_compare_by_value():
    config = CompileConfig()
    cpu = base.find("cpu")
    assert cpu.target(config) == cpu.target(config)
    assert cpu.target(config) != base.find("interp").target(config)
    assert cpu.target(config).features
