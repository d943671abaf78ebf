"""`app.history` finds the commit like ``git bisect``, and leaves the repository as it is."""

import subprocess
from pathlib import Path

import pytest
from qd_studio.app.history import bisect_commits
from qd_studio.app.revisions import NoRevisionError
from qd_studio.engine.inspect.record_bisection import Judged


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A function that commits files; the kernel's file imports a module that imports another."""
    for name, value in (("NAME", "a"), ("EMAIL", "a@b")):
        monkeypatch.setenv(f"GIT_AUTHOR_{name}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{name}", value)

    def git(*words):
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *words], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "-q")

    def commit(subject, **texts):
        for name, text in texts.items():
            path = tmp_path / "sim" / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        git("add", "-A")
        git("commit", "-q", "-m", subject)

    commit("start", run="from parts import f\nX = 1\n", parts="import deep\n", deep="Y = 1\n")
    commit("other", unrelated="A = 1\n")
    commit("comment", run="from parts import f\nX = 1  # one\n")
    commit("does not parse", run="from parts import\n")
    commit("parses", run="from parts import f\nX = 1  # two\n")
    commit("deep change", deep="Y = 2\n")
    commit("unrelated again", unrelated="A = 2\n")
    commit("last", run="from parts import f\nX = 1  # three\n")
    return tmp_path / "sim" / "run.py", git


def judged_by(read):
    """A judge of the copy: what ``read`` makes of the texts of run and deep."""
    seen = []

    def judge(path):
        run = Path(path).read_text()
        deep = Path(path).with_name("deep.py").read_text()
        seen.append(run)
        if "import f" not in run:
            return Judged(state="unknown", reason="SyntaxError")
        return read(run, deep)

    return judge, seen


def test_the_commit_of_an_imported_module_is_found(repository):
    path, git = repository
    before = git("status", "--porcelain"), git("worktree", "list"), git("rev-parse", "HEAD")
    path.write_text("not saved in git")
    judge, seen = judged_by(
        lambda run, deep: Judged(state="wrong" if "Y = 2" in deep else "right", reason="y")
    )
    steps = []
    found = bisect_commits(str(path), git("rev-list", "HEAD").split()[-1], "HEAD", judge, "",
                           steps.append)  # fmt: skip
    assert (found.state, found.part, found.commit.subject) == ("found", "commit", "deep change")
    assert found.commit.files == ("sim/deep.py",)
    assert found.commit.left == ()
    assert len(seen) <= 5
    assert any("last: wrong" in text for text in steps)
    assert path.read_text() == "not saved in git"
    git("checkout", "-q", "--", ".")
    assert before == (
        git("status", "--porcelain"),
        git("worktree", "list"),
        git("rev-parse", "HEAD"),
    )


def test_a_figure_and_commits_that_cannot_be_judged(repository):
    path, git = repository
    first = git("rev-list", "HEAD").split()[-1]
    judge, _ = judged_by(
        lambda run, deep: Judged(state="measured", value=9.0 if "# t" in run else 1.0)
    )
    found = bisect_commits(str(path), first, "HEAD", judge, "loads", lambda text: None)
    assert (found.state, found.commit.subject, found.good, found.bad) == (
        "found", "parses", "1", "9",
    )  # fmt: skip
    # The one before it does not parse: it may have been that.
    assert [text.split(" ", 1)[1] for text in found.commit.left] == ["does not parse"]
    assert "SyntaxError" in found.reason
    same, _ = judged_by(lambda run, deep: Judged(state="measured", value=2.0))
    assert bisect_commits(str(path), first, "HEAD", same, "loads", print).state == "agrees"
    wrong, _ = judged_by(lambda run, deep: Judged(state="wrong", reason="always"))
    answer = bisect_commits(str(path), first, "HEAD", wrong, "", lambda text: None)
    assert answer.state == "unknown" and "is wrong already: always" in answer.reason


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [("none", "HEAD", "there is no revision 'none'"), ("HEAD", "HEAD~2", "swap them")],
)
def test_revisions_that_do_not_fit(repository, good, bad, said):
    path, _ = repository
    with pytest.raises(NoRevisionError, match=said):
        bisect_commits(str(path), good, bad, lambda copy: Judged(state="right"), "", print)
