"""What ``--executor`` accepts, and what it says where something is missing."""

import sys

import pytest
from qd_studio.app import cli
from qd_studio.app.farm.executors import FarmError, Spec, SpecError


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("dusk:tcp://a:1", "there is no executor 'dusk:tcp://a:1'; there are: processes, dask"),
        ("dask", "needs the address of a scheduler"),
        ("processes:4", "--jobs N sets the number"),
        ("slurm:gpu", "'gpu' is not KEY=VALUE, as in partition=gpu"),
        ("call:make", "call:MODULE.FUNCTION"),
    ],
)
def test_a_spec_that_means_nothing(text, why):
    with pytest.raises(SpecError, match=r".") as caught:
        Spec.parse(text)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("text", "package", "extra"),
    [
        ("dask:tcp://127.0.0.1:9", "distributed", "farm"),
        ("mpi", "mpi4py.futures", "farm"),
        ("slurm", "submitit", "farm"),
        ("ray", "ray", "farm-ray"),
    ],
)
def test_a_missing_package_names_its_extra(text, package, extra, monkeypatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == package.partition(".")[0]]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "meta_path", [NoPackages(), *sys.meta_path])
    with pytest.raises(FarmError) as caught:
        Spec.parse(text).open()
    assert f"pip install 'qd-studio[{extra}]'" in str(caught.value)


class NoPackages:
    """No library of a cluster is installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("distributed", "mpi4py", "submitit", "ray"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def not_an_executor():
    return 1


def test_a_function_that_returns_no_executor():
    with pytest.raises(FarmError, match="it returns int, no concurrent"):
        Spec.parse(f"call:{__name__}.not_an_executor").open()


def test_the_command_says_so(path, capsys):
    assert cli.main(["--report", str(path), "--executor", "dusk"]) == 2
    assert "there is no executor 'dusk'" in capsys.readouterr().err
    assert cli.main(["sweep", str(path), "--option", "fast_math", "--executor", "dask"]) == 2
    assert "needs the address" in capsys.readouterr().err


@pytest.mark.extra("distributed")
def test_a_scheduler_that_does_not_answer(monkeypatch):
    from qd_studio.app.farm import executors

    monkeypatch.setattr(executors, "CONNECT_S", 1.0)
    with pytest.raises(FarmError, match="no scheduler answered within 1 s; start one with"):
        Spec.parse("dask:tcp://127.0.0.1:9").open()
