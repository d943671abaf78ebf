"""A backend that makes one mistake: the CPU's, where every addition of floats in a loop subtracts.

`install` puts it among the backends of this process. A kernel file that does so, too, brings it
into a worker: ``from tests.app import wrong; wrong.install()``.
"""

from qd_studio.engine.backends import base
from qd_studio.engine.backends.cpu.backend import CpuBackend
from qd_studio.engine.ir import all_ops, parse, to_text
from qd_studio.engine.ir import codes as C

NAME = "wrong"


class WrongBackend(CpuBackend):
    name = NAME

    def lower(self, func, config, *cache):
        func = parse(to_text(func))
        for op in all_ops(func):
            if op.code == C.ADD and op.type.is_real:
                op.code = C.SUB
        return super().lower(func, config, *cache)


BACKEND = WrongBackend()


def install():
    base.BUILT[NAME] = __name__


def remove():
    base.BUILT.pop(NAME, None)
    base._found.pop(NAME, None)
