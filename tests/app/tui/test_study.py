"""The screen of a bisection: one key from the row of a kernel, with a worker of its own."""

import subprocess
from types import SimpleNamespace

import msgspec
from qd_studio.app.tui.screens import study
from qd_studio.app.tui.widgets.lines import LineView
from qd_studio.app.worker.events import Failed, Progress, Studied
from qd_studio.engine.inspect.record import AgreementRecord, ErrorRecord
from qd_studio.engine.inspect.record_bisection import Bisection, ChangedOp, Judged, Reproducer
from qd_studio.engine.inspect.record_gradient import GradientReport, GradientStep
from qd_studio.engine.inspect.record_nans import NanReport, NanRow

from tests.app.records import make_record
from tests.app.tui.pilot import SIZES, press, studio, text_of, until

FOUND = Bisection(
    kernel="scale", backend="cpu", state="found", part="pass", evidence="ir", stage="simplify_II",
    round=1, pass_name="die", difference="x[0]: got 1.0, interpreter 2.0", states=9, trials=6,
    changes=(ChangedOp(op=4, before="<f32> $4 = mul $1, $2", after="", file="k.py", line=3),),
)  # fmt: skip


class Worker:
    def __init__(self):
        self.stopped = False

    def stop(self):
        self.stopped = True


class Link:
    client = object()

    def take(self):
        return []

    def close(self):
        pass


async def opened(monkeypatch, app, pilot, key):
    """(the worker, what it is asked, the callback for its events)."""
    asked = []
    worker = Worker()

    def start(client, kernel, question, on_event):
        asked.extend((kernel, question, on_event))
        return worker

    monkeypatch.setattr(study, "start_study", start)
    app.link = Link()
    await press(pilot, key)
    return worker, asked


async def test_one_key_bisects_the_kernel_of_the_row(monkeypatch):
    record = make_record()
    async with studio(record, SIZES[0]) as (app, pilot):
        worker, (kernel, question, tell) = await opened(monkeypatch, app, pilot, "A")
        assert (kernel, question.kind) == (record.kernels[0].id, "bisect")
        tell(Progress("bisecting scale: the reference", 0, 0))
        await until(pilot, app, "bisecting scale: the reference")
        tell(Studied(kernel, msgspec.json.encode(FOUND)))
        await until(pilot, app, "wrong because of die (simplify_II, round 1)")
        assert "x[0]: got 1.0, interpreter 2.0" in text_of(app)
        assert "- <f32> $4 = mul $1, $2" in text_of(app)
        assert "P writes a script" in text_of(app)
        assert "P script" in text_of(app)
        await press(pilot, "A")  # it is there already
        assert not worker.stopped
        _, (_, question, _) = await opened(monkeypatch, app, pilot, "P")
        assert worker.stopped and question.kind == "repro"
        await press(pilot, "escape")
        assert "what makes the result wrong" not in text_of(app)


async def test_one_key_finds_the_origin_of_a_nan(monkeypatch):
    record = make_record()
    async with studio(record, SIZES[0]) as (app, pilot):
        _, (kernel, question, tell) = await opened(monkeypatch, app, pilot, "Z")
        assert (kernel, question.kind) == (record.kernels[0].id, "nan")
        found = NanReport(
            kernel="scale", state="found", backend="cpu", kind="made", file="k.py", line=3,
            headline="log(0) makes an infinity", stored="x[17]", stored_line=4, iteration=(17,),
            steps=(NanRow(file="k.py", line=3, text="log(0)", value="-inf"),),
        )  # fmt: skip
        tell(Studied(kernel, msgspec.json.encode(found)))
        await until(pilot, app, "scale on cpu: log(0) makes an infinity")
        for part in ("task 0, iteration 17", "x[17], line 4", "which lines lose precision"):
            assert part in text_of(app)


async def test_one_key_checks_the_gradient(monkeypatch):
    record = make_record()
    async with studio(record, SIZES[0]) as (app, pilot):
        _, (kernel, question, tell) = await opened(monkeypatch, app, pilot, "V")
        assert (kernel, question.kind) == (record.kernels[0].id, "check-grad")
        step = GradientStep(
            file="k.py", line=3, op="sin", text="sin(1)", iteration=(17,), value=0.841471,
            rule=0.5, quotient=0.540302, wrong=True,
        )  # fmt: skip
        found = GradientReport(
            kernel="scale.grad", state="wrong", cause="rule", backend="cpu", name="x",
            index=(17,), reverse=0.5, differences=0.540302, error=0.04, path=(step,), file="k.py",
            line=3, why="the rule of sin states the derivative 0.5",
        )  # fmt: skip
        tell(Studied(kernel, msgspec.json.encode(found)))
        await until(pilot, app, "scale.grad on cpu: the gradient of x[17] is wrong")
        for part in ("the rule of an operation", "iteration 17", "0.5, differs from 0.540302"):
            assert part in text_of(app)


async def test_a_key_finds_the_commit(monkeypatch, tmp_path):
    path = tmp_path / "k.py"
    git = ("git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run([*git, "init", "-q"], check=True)
    for text in ("a = 1\n", "a = 2\n", "a = 3\n"):
        path.write_text(text)
        subprocess.run([*git, "add", "k.py"], check=True)
        subprocess.run([*git, "commit", "-qm", f"now {text.strip()}"], check=True)

    def judge(client, path, kernel, question, on_event, cancelled):
        assert (kernel, question.kind) == ("scale", "judge")
        on_event(Progress("compiling scale", 0, 0))
        with open(path) as file:
            return Judged(state="right" if "a = 1" in file.read() else "wrong", reason="x[0]")

    monkeypatch.setattr(study, "judge_file", judge)
    monkeypatch.setattr(Link, "client", SimpleNamespace(template=SimpleNamespace(files=[path])))
    async with studio(make_record(), SIZES[0]) as (app, pilot):
        worker, _ = await opened(monkeypatch, app, pilot, "A")
        await press(pilot, "b", *"HEAD", "~", "2", "enter")
        assert worker.stopped
        await until(pilot, app, "wrong because of commit")
        assert "(now a = 2)" in text_of(app) and "now a = 1: right" in text_of(app)
        await press(pilot, "b", *"gone", "enter")
        await until(pilot, app, "there is no revision 'gone'")
        assert "enter asks another question" in text_of(app)


async def test_the_key_is_named_where_a_result_is_wrong():
    record = make_record()
    kernel = record.kernels[0]
    wrong = AgreementRecord(state="ok", check="failed")
    backends = tuple(msgspec.structs.replace(b, agreement=wrong) for b in kernel.backends)
    kernels = (msgspec.structs.replace(kernel, backends=backends), *record.kernels[1:])
    async with studio(record, SIZES[0]) as (app, pilot):
        assert "why wrong" not in text_of(app)
        app.record = msgspec.structs.replace(record, kernels=kernels)
        app.repaint()
        await pilot.pause()
        assert "A why wrong" in text_of(app)


async def test_both_keys_ask_what_makes_it_worse(monkeypatch):
    for key in ("A", "P"):
        async with studio(make_record()) as (app, pilot):
            _, asked = await opened(monkeypatch, app, pilot, key)
            kernel, _, tell = asked
            answer = FOUND if key == "A" else Reproducer(bisection=FOUND, reason="none")
            tell(Studied(kernel, msgspec.json.encode(answer)))
            await until(pilot, app, "what makes the IR larger")
            view = app.screen.query_one("#list", LineView)
            view.put(
                next(
                    i
                    for i, one in enumerate(view.lines)
                    if getattr(one.key, "metric", "") == "loads"
                )
            )
            await press(pilot, "enter")
            question, tell = asked[-2:]
            assert (question.kind, question.metric) == ("bisect", "loads")
            worse = msgspec.structs.replace(FOUND, metric="loads", good="2", bad="3")
            tell(Studied(kernel, msgspec.json.encode(worse)))
            await until(pilot, app, "worse in loads because of die")
            assert "2 -> 3" in text_of(app)


async def test_a_script_is_written(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    async with studio(make_record()) as (app, pilot):
        _, (kernel, question, tell) = await opened(monkeypatch, app, pilot, "P")
        assert question.kind == "repro"
        made = Reproducer(bisection=FOUND, script="print(1)\n", lines=4)
        tell(Studied(kernel, msgspec.json.encode(made)))
        await until(pilot, app, "4 lines of kernel")
        assert (tmp_path / "repro_scale.py").read_text() == "print(1)\n"


async def test_errors_of_the_worker_are_shown(monkeypatch):
    async with studio(make_record()) as (app, pilot):
        _, (kernel, _, tell) = await opened(monkeypatch, app, pilot, "P")
        tell(Failed(ErrorRecord(kind="E", message="no module named gone", stage="import")))
        await until(pilot, app, "no module named gone")
        none = Reproducer(bisection=msgspec.structs.replace(FOUND), reason="it is a gradient")
        tell(Studied(kernel, msgspec.json.encode(none)))
        await until(pilot, app, "no script: it is a gradient")


async def test_a_saved_session_has_no_worker():
    async with studio(make_record()) as (app, pilot):
        await press(pilot, "A")
        assert "what makes the result wrong" not in text_of(app)
