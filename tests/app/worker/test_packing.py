"""What the passes did is sent once, and comes out whole every time."""

from msgspec.structs import replace
from qd_studio.app.worker.packing import Packer, Unpacker
from qd_studio.engine.inspect.record import Artefact

from tests.app.records import make_record


def steps():
    """A kernel as it grows: passes, then code, then another run of the passes."""
    kernel = next(
        k for k in make_record().kernels if k.backends and k.backends[0].compile is not None
    )
    backend = kernel.backends[0]
    bare = replace(backend.compile, artefacts=())
    code = replace(bare, artefacts=(Artefact(name="asm", language="asm", text="ret"),))
    fresh = replace(code, snapshots=tuple(replace(s) for s in code.snapshots))

    def holding(compiled):
        return replace(kernel, backends=(replace(backend, compile=compiled), *kernel.backends[1:]))

    return holding(bare), holding(code), holding(fresh)


def test_passes_are_sent_once_and_always_there():
    packer, unpacker = Packer(), Unpacker()
    sent = []
    for kernel in steps():
        packed, again = packer.pack(kernel)
        sent.append(packer.sent)
        assert unpacker.unpack(packed, again) == kernel
        assert bool(packed.backends[0].compile.snapshots) == ("cpu" not in again)
    assert 0 < sent[0] == sent[1] < sent[2]
