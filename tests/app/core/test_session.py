"""How news change what is known of some files."""

from msgspec.structs import replace
from qd_studio.app.core.pending import PARTS, waiting
from qd_studio.app.core.session import Session, awaited, labels_of, merged
from qd_studio.engine.inspect.record import BackendRecord, ErrorRecord, FileRecord, LogLine

from tests.app import gradients
from tests.app.records import make_record

KERNEL = replace(make_record().kernels[0], file="a.py")
LISTED = replace(KERNEL, backends=(), workloads=())
ERROR = ErrorRecord(kind="SyntaxError", message="broken", file="a.py", line=3)


def text(path):
    return FileRecord(path=path, sha256="", text=path)


def loaded(session=None):
    session = session or Session.of(["a.py", "b.py"])
    return session.file_loaded("a.py", (text("a.py"), text("help.py")), (LISTED,), ())


def test_a_file_is_listed_then_filled():
    session = loaded()
    assert session.record().kernels == (LISTED,)
    session = session.kernel_updated(KERNEL)
    assert session.record().kernels == (KERNEL,)
    assert session.kernel(KERNEL.id) == KERNEL
    assert session.kernel("nothing") is None


def test_sessions_are_values():
    before = loaded()
    before.kernel_updated(KERNEL)
    assert before.record().kernels == (LISTED,)


def test_helpers_touch_those_that_import_them():
    session = loaded()
    assert session.paths_touched_by(["help.py"]) == ("a.py",)
    assert session.paths_touched_by(["b.py", "a.py"]) == ("a.py", "b.py")
    assert session.paths_touched_by(["other.py"]) == ()
    assert session.watched() == ("a.py", "help.py", "b.py")


def test_a_failed_load_keeps_everything_as_stale():
    session = loaded().kernel_updated(KERNEL).file_failed("a.py", (text("a.py"),), (ERROR,))
    (kernel,) = session.record().kernels
    assert kernel.stale
    assert kernel.backend("cpu").earlier == ("passes", "code", "launches", "caches")
    assert kernel.backend("cpu").launches == KERNEL.backend("cpu").launches
    assert session.record().errors == (ERROR,)
    # The helper still counts: mending it may be what helps.
    assert "help.py" in session.watched()
    again = loaded(session.job_started(["a.py"]))
    assert again.record().errors == ()
    assert again.record().kernels[0] == waiting(kernel)
    assert not again.kernel_updated(KERNEL).record().kernels[0].stale


def test_listing_again_keeps_results_as_pending_unless_they_hold():
    session = loaded().kernel_updated(KERNEL)
    assert loaded(session).record().kernels[0] == waiting(KERNEL)
    files = (text("a.py"),)
    held = session.file_loaded("a.py", files, (LISTED,), (), {KERNEL.id})
    assert held.record().kernels[0] == KERNEL
    gone = session.file_loaded("a.py", files, (), ())
    assert gone.record().kernels == ()


def test_a_kernel_that_fails_keeps_its_last_compile():
    failed = BackendRecord(backend="cpu", status="error", reason="broken", errors=(ERROR,))
    new = merged(replace(KERNEL, backends=(failed,)), KERNEL)
    old = KERNEL.backend("cpu")
    (backend,) = new.backends
    assert new.stale
    assert (backend.status, backend.errors) == ("error", (ERROR,))
    assert (backend.compile, backend.launches) == (old.compile, old.launches)


def test_what_a_failing_pass_left_is_newer_than_the_last_compile():
    partial = replace(KERNEL.backend("cpu").compile, code_bytes=0)
    failed = BackendRecord(backend="cpu", status="error", compile=partial, errors=(ERROR,))
    new = merged(replace(KERNEL, backends=(failed,)), KERNEL)
    assert not new.stale
    assert new.backends == (failed,)


def test_output_is_grouped_by_stream_in_the_record_and_kept_per_job():
    session = loaded()
    for stream, line in (("stderr", "1"), ("stdout", "2"), ("engine", "3"), ("stdout", "4")):
        session = session.logged(LogLine(stream=stream, text=line))
    assert [x.text for x in session.record().log] == ["2", "4", "1", "3"]
    assert session.job_started(["b.py"]).record().log == ()


def test_labels_are_as_short_as_they_can_be():
    assert labels_of(["/x/a.py", "/x/b.py"]) == {"/x/a.py": "a.py", "/x/b.py": "b.py"}
    paths = ["/x/one/k.py", "/x/two/k.py", "/y/two/k.py", "/y/z.py"]
    assert list(labels_of(paths).values()) == ["one/k.py", "x/two/k.py", "y/two/k.py", "z.py"]
    assert labels_of(["k.py", "a/k.py"]) == {"k.py": "k.py", "a/k.py": "a/k.py"}


GRADIENT = replace(KERNEL, id=f"{KERNEL.id}.grad", name="scale.grad", primal=KERNEL.id)
DIFFERENTIATED = replace(KERNEL, gradient=GRADIENT.id)


def names(session):
    return [k.name for k in session.record().kernels]


def test_a_gradient_comes_after_its_kernel():
    other = replace(LISTED, id="a.py:other", name="other")
    session = Session.of(["a.py"]).file_loaded("a.py", (text("a.py"),), (LISTED, other), ())
    session = session.kernel_updated(DIFFERENTIATED, final=False)
    session = session.kernel_updated(GRADIENT, final=False)
    assert names(session) == ["scale", "scale.grad", "other"]
    session = session.kernel_updated(replace(GRADIENT, doc="new"))
    assert names(session) == ["scale", "scale.grad", "other"]
    assert session.kernel(GRADIENT.id).doc == "new"


def test_a_gradient_without_its_kernel_is_no_ones():
    assert names(loaded().kernel_updated(replace(GRADIENT, primal="a.py:gone"))) == ["scale"]


def test_a_gradient_stays_pending_until_its_kernel_says_that_it_has_none():
    session = loaded().kernel_updated(DIFFERENTIATED).kernel_updated(GRADIENT)
    session = loaded(session)
    assert names(session) == ["scale", "scale.grad"]
    assert all(k.backend("cpu").earlier == PARTS for k in session.record().kernels)
    # What is known so far says nothing of gradients yet.
    session = session.kernel_updated(KERNEL, final=False)
    assert names(session) == ["scale", "scale.grad"]
    assert session.kernel(KERNEL.id).gradient == GRADIENT.id
    assert names(session.kernel_updated(KERNEL)) == ["scale"]
    assert names(session.kernel_updated(DIFFERENTIATED)) == ["scale", "scale.grad"]


def test_the_gradient_of_a_kernel_that_fails_stays_as_stale():
    session = loaded().kernel_updated(DIFFERENTIATED).kernel_updated(GRADIENT)
    failed = BackendRecord(backend="cpu", status="error", reason="broken", errors=(ERROR,))
    broken = session.kernel_updated(replace(KERNEL, backends=(failed,)))
    assert names(broken) == ["scale", "scale.grad"]
    assert broken.kernel(KERNEL.id).gradient == GRADIENT.id
    assert broken.kernel(GRADIENT.id).stale
    # When the kernel is mended, what it says of its gradient counts again.
    assert names(broken.kernel_updated(KERNEL)) == ["scale"]


def test_gradients_that_still_hold_are_not_stale():
    session = loaded().kernel_updated(DIFFERENTIATED).kernel_updated(GRADIENT)
    again = session.file_loaded("a.py", (text("a.py"),), (LISTED,), (), {KERNEL.id, GRADIENT.id})
    assert not any(k.stale or k.backend("cpu").earlier for k in again.record().kernels)


def test_sizes_of_the_last_launch_stay_next_to_the_new_ir_until_there_are_others():
    old = gradients.make_record().kernels[1]
    before = old.backends[0]
    ir = replace(before.autodiff, tasks=(), links=(), reverse=0, sized=False, bytes=0)
    new = replace(old, backends=(replace(before, launches=(), agreement=None, autodiff=ir),))
    backend = awaited(new, old).backends[0]
    assert "launches" in backend.earlier
    assert backend.autodiff.sized and backend.autodiff.bytes == 624
    assert (backend.autodiff.links, backend.autodiff.reverse) == ((), 0)
    assert merged(new, old).backends[0].autodiff == ir
