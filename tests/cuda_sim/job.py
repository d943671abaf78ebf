"""Full code for the simulator, made by the helper process."""

from qd_studio.engine.backends.cuda import nvptx

from .code import with_ir


def made(text: str, arch: str, level: int) -> bytes:
    return with_ir(nvptx.made(text, arch, level).decode(), text).encode()
