"""One test a kernel, or one a sample that runs as a script."""

from tests.samples.sample_files import FILES, KERNELS


def pytest_generate_tests(metafunc):
    if {"sample", "kernel_name"} <= set(metafunc.fixturenames):
        metafunc.parametrize(
            ("sample", "kernel_name"), KERNELS, ids=[f"{s}.{k}" for s, k in KERNELS]
        )
    elif "script" in metafunc.fixturenames:
        with_main = [path for path in FILES if "__main__" in path.read_text()]
        metafunc.parametrize("script", with_main, ids=[path.stem for path in with_main])
