"""Find the commit that made a kernel wrong or worse: `bisect_commits`.

The commits between a good and a bad revision that change the file, or modules of its repository
that it imports, are searched as by ``git bisect``. Each revision is judged in a worker of its own,
on a copy of the repository in a scratch folder: neither the working tree nor anything in ``.git``
changes. A revision that cannot be judged (the file, the kernel or an import is missing, it does
not compile) is passed over.
"""

from __future__ import annotations

import ast
import math
import os
from collections import deque
from collections.abc import Callable, Container, Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from .revisions import NoRevisionError, file_at, git

if TYPE_CHECKING:
    from ..engine.inspect.record_bisection import Bisection, Commit, Judged

__all__ = ["bisect_commits"]


_MOST: Final = 40


def bisect_commits(
    path: str, good: str, bad: str, judge: Callable[[str], Judged], metric: str,
    said: Callable[[str], object], jobs: int = 1,
) -> Bisection:  # fmt: skip
    """The first bad commit of a file. judge: judges the kernel in the copy of it. said: called
    with each step in words. jobs: revisions to judge at once. NoRevisionError if a revision or git
    is missing."""
    return _Search(path, judge, metric, said, jobs).run(good, bad)


class _Search:
    def __init__(
        self, path: str, judge: Callable[[str], Judged], metric: str,
        said: Callable[[str], object], jobs: int = 1,
    ) -> None:  # fmt: skip
        self._jobs: Final = jobs
        self._path: Final = os.path.abspath(path)
        folder = git(os.path.dirname(self._path), "rev-parse", "--show-toplevel")
        self._top: Final = os.path.realpath(folder.decode().strip())
        self._inner: Final = os.path.relpath(os.path.realpath(self._path), self._top)
        self._judge: Final = judge
        self._metric: Final = metric
        self._said: Final = said
        self._judged: dict[str, Judged] = {}
        self._ends: tuple[Judged, Judged] | None = None
        self._by_results = False

    def run(self, good: str, bad: str) -> Bisection:
        old, new = (self._commit(revision) for revision in (good, bad))
        base = self._git("merge-base", old, new)
        if base != old:
            more = f"{bad} is older: swap them" if base == new else f"start from {base[:9]}"
            raise NoRevisionError(f"{good} is not an ancestor of {bad}; {more}")
        if old == new:
            raise NoRevisionError(f"{good} and {bad} are the same commit: name an older good one")
        if self._git("status", "--porcelain", "--", self._inner):
            self._said(f"{self._inner} has changes that are not committed: they are not judged")
        self._judge_all([old, new])
        left, right = self._verdict(old), self._verdict(new)
        for name, one in ((good, left), (bad, right)):
            if one.state == "unknown":
                return self._result("unknown", f"{name} cannot be judged: {one.reason}")
        self._ends = left, right
        unlike = self._unlike(good, bad)
        if unlike is not None:
            return unlike
        return self._search(old, new)

    def _unlike(self, good: str, bad: str) -> Bisection | None:
        """A result if the ends do not differ in what is asked."""
        assert self._ends is not None
        left, right = self._ends
        if self._metric:
            why = self._not_worse(left, right)
            if why:
                return self._result("unknown" if "cannot" in why else "agrees", why)
            return None
        if left.state == "wrong":
            return self._result("unknown", f"{good} is wrong already: {left.reason}")
        if right.state == "wrong":
            return None
        if not (left.results and right.results and self._differs(right)):
            return self._result(
                "agrees", f"nothing is wrong at {bad}, nor at {good}, and the results are the same"
            )
        self._by_results = True
        return None

    def _not_worse(self, old: Judged, new: Judged) -> str:
        """The reason that the metric of ``new`` is not worse; empty if it is."""
        from ..engine.inspect.compare_figures import timing_of

        if old.launch is None or new.launch is None:
            sign = -1 if self._metric == "vector-width" else 1
            worse = (new.value - old.value) * sign
            if worse > 0:
                return ""
            return "the figure is the same" if not worse else "the figure of the bad end is better"
        timing = timing_of(old.launch, new.launch, "", False)
        if timing is None or timing.verdict == "unknown":
            why = "nothing was timed" if timing is None else timing.reason
            return f"the times cannot be compared: {why}"
        if timing.verdict == "worse":
            return ""
        return (
            f"time is {timing.verdict}: {timing.ratio:.2f} of that before, band {timing.band:.2f}"
        )

    def _differs(self, one: Judged) -> str:
        from ..engine.inspect.judging import difference_of

        assert self._ends is not None
        return difference_of(self._ends[0].results, one.results) if one.results else ""

    def _search(self, old: str, new: str) -> Bisection:
        goods, skipped = [old], dict[str, str]()
        bad: str = new
        paths = self._imported(old) | self._imported(new)
        while True:
            words: list[str] = [bad, "--not", *goods, "--", *sorted(paths)]
            lines = self._git("rev-list", "--bisect-all", *words).splitlines()
            found: list[str] = [line.split()[0] for line in lines]
            if not found:
                why = "no commit between them changes the file or what it imports from here"
                return self._result("unknown", why)
            left = [one for one in found if one not in skipped and one != bad]
            if not left:
                others = [one for one in found if one in skipped and one != bad]
                first = bad if bad in found else next(x for x in found if x in skipped)
                return self._first(first, goods, others, skipped, paths)
            now: str = left[0]
            if len(found) == 1 and self._same_files(now, bad, paths):
                return self._first(now, goods, [], skipped, paths)
            more = self._imported(now) - paths
            if more:
                paths |= more
                continue
            if now not in self._judged:
                self._judge_all(self._ahead(bad, goods, skipped, paths))
            one = self._verdict(now)
            state = self._state(one)
            if state == "unknown":
                skipped[now] = one.reason
            elif state == "bad":
                bad = now
            else:
                goods.append(now)

    def _ahead(
        self, bad: str, goods: list[str], skipped: Container[str], paths: set[str]
    ) -> list[str]:
        """The commits that the search may ask for next, the first one first."""
        out: list[str] = []
        branches = deque([(bad, goods)])
        while branches and len(out) < self._jobs:
            to, since = branches.popleft()
            words = [to, "--not", *since, "--", *sorted(paths)]
            lines = self._git("rev-list", "--bisect-all", *words).splitlines()
            found = [line.split()[0] for line in lines]
            one = next((x for x in found if x != to and x not in skipped), "")
            if one:
                if one not in out:
                    out.append(one)
                branches += [(one, since), (to, [*since, one])]
        return out

    def _judge_all(self, commits: list[str]) -> None:
        """Judge several commits at once; alone, each is judged when it is asked for."""
        several = [commit for commit in commits if commit not in self._judged]
        if self._jobs < 2 or len(several) < 2:
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(self._jobs) as pool:
            list(pool.map(self._verdict, several))

    def _same_files(self, a: str, b: str, paths: set[str]) -> bool:
        return not self._git("diff", "--name-only", a, b, "--", *sorted(paths))

    def _state(self, one: Judged) -> str:
        """``good``, ``bad`` or ``unknown``."""
        if one.state == "unknown":
            return "unknown"
        assert self._ends is not None
        left, right = self._ends
        if self._metric:
            values = [left.value, right.value, one.value]
            if self._metric == "time":
                values = [math.log(max(v, 1e-9)) for v in values]
            return "bad" if abs(values[2] - values[1]) <= abs(values[2] - values[0]) else "good"
        if self._by_results:
            return "unknown" if not one.results else "bad" if self._differs(one) else "good"
        return "bad" if one.state == "wrong" else "good"

    # ---- revisions

    def _git(self, *words: str) -> str:
        found = git(self._top, "-c", "core.quotepath=off", *words)
        return found.decode(errors="replace").strip()

    def _commit(self, revision: str) -> str:
        try:
            return self._git("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
        except NoRevisionError:
            raise NoRevisionError(f"there is no revision {revision!r}") from None

    def _verdict(self, commit: str) -> Judged:
        from ..engine.inspect.record_bisection import Judged

        found = self._judged.get(commit)
        if found is not None:
            return found
        try:
            with file_at(self._path, commit) as copy:
                found = self._judge(copy)
        except NoRevisionError as error:
            if error.environment:
                raise
            found = Judged(state="unknown", reason=str(error))
        strays = [m for m in found.modules if self._is_of_working_tree(m)]
        if strays:
            why = f"it imports {strays[0]} of the working tree, in place of that of the revision"
            found = Judged(state="unknown", reason=f"{why}: PYTHONPATH or an installation names it")
        self._judged[commit] = found
        word = found.state if not self._metric else f"{found.value:,.4g}"
        self._said(f"{self._title(commit)}: {word if found.state != 'unknown' else found.reason}")
        return found

    def _is_of_working_tree(self, file: str) -> bool:
        real = os.path.realpath(file)
        inner = os.path.relpath(real, self._top)
        if inner.startswith(os.pardir) or "site-packages" in inner:
            return False
        return bool(self._git("ls-files", "--", real))

    def _title(self, commit: str) -> str:
        return self._git("show", "-s", "--format=%h %s", commit)

    def _imported(self, commit: str) -> set[str]:
        """The file, and the modules of the repository that it imports, directly or not."""
        tree = set(self._git("ls-tree", "-r", "--name-only", "--full-tree", commit).splitlines())
        found, waiting = set[str](), [self._inner]
        while waiting:
            path = waiting.pop()
            if path in found:
                continue
            found.add(path)
            if path in tree and path.endswith(".py"):
                text = self._git("show", f"{commit}:{path}")
                waiting += [p for p in _imports(text, path, self._inner) if p in tree]
        return found

    # ---- results

    def _first(
        self, commit: str, goods: list[str], others: list[str], skipped: dict[str, str],
        paths: set[str],
    ) -> Bisection:  # fmt: skip
        one = self._judged.get(commit) or self._verdict(commit)
        before = self._judged[goods[-1]]
        described = self._described(commit, others, paths)
        reason = ""
        if described.left or self._state(one) != "bad":
            why = next(iter(skipped.values()), "")
            reason = f"commits next to it could not be judged, so it may be one of them: {why}"
        elif self._metric == "time":
            noise = self._not_worse(before, one)
            if noise:
                return self._result("unknown", f"{described.hash} is the nearest, yet {noise}")
        difference = one.reason
        if self._by_results:
            difference = self._differs(one)
            reason = reason or "all backends agree before and after it, on different results"
        return self._result(
            "found", reason, part="commit", commit=described,
            evidence="results" if self._by_results else "commit",
            difference=difference, backend=one.backend, **self._figures(before, one),
        )  # fmt: skip

    def _described(self, commit: str, others: list[str], paths: set[str]) -> Commit:
        from ..engine.inspect.record_bisection import Commit

        short, author, date, subject = self._git(
            "show", "-s", "--format=%h%x09%an%x09%ad%x09%s", "--date=short", commit
        ).split("\t", 3)
        changed = self._git("show", "--first-parent", "--name-only", "--format=", commit)
        files = tuple([f for f in changed.splitlines() if f in paths])
        left = tuple([self._title(one) for one in others])
        return Commit(
            hash=short, subject=subject, author=author, date=date, files=files, left=left[:_MOST]
        )

    def _figures(self, old: Judged, new: Judged) -> dict[str, Any]:
        if not self._metric:
            return {}
        unit = " us" if self._metric == "time" else ""
        texts = [f"{one.value:,.4g}{unit}" for one in (old, new)]
        return {"metric": self._metric, "good": texts[0], "bad": texts[1]}

    def _result(self, state: str, reason: str, **fields: Any) -> Bisection:
        from ..engine.inspect.record_bisection import Bisection

        fields.setdefault("backend", "")
        fields.setdefault("metric", self._metric)
        found = Bisection(
            kernel=os.path.basename(self._path), state=state, reason=reason,
            trials=len(self._judged), **fields,
        )  # fmt: skip
        if self._ends is not None and self._metric and not found.good:
            return msgspec.structs.replace(found, **self._figures(*self._ends))
        return found


def _imports(text: str, path: str, opened: str) -> Iterator[str]:
    """Files, relative to the repository, that the imports of a file may name."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    own = path.split("/")[:-1]
    roots = {tuple(opened.split("/")[:i]) for i in range(len(opened.split("/")))}
    roots |= {tuple(own[:i]) for i in range(len(own) + 1)}
    roots |= {(*root, "src") for root in list(roots)}
    for node in ast.walk(tree):
        names: list[str] = []
        bases = roots
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [module, *(f"{module}.{alias.name}".strip(".") for alias in node.names)]
            if node.level:
                bases = {tuple(own[: len(own) - node.level + 1])}
        for name in names:
            parts = name.split(".") if name else []
            for base in bases:
                for end in range(len(parts) + 1):
                    stem = "/".join((*base, *parts[:end]))
                    yield f"{stem}.py"
                    yield f"{stem}/__init__.py".lstrip("/")
