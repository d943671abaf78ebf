"""Give the top-level folders their import names: engine/ installs as qd_studio.engine."""

from tempfile import TemporaryDirectory

from setuptools import find_packages, setup

found = find_packages(include=["engine*", "app*"])
# A build folder in the tree would carry modules that are long gone into the next wheel.
with TemporaryDirectory(prefix="qd-studio-build-") as scratch:
    setup(
        packages=["qd_studio", *(f"qd_studio.{name}" for name in found)],
        options={"build": {"build_base": scratch}},
    )
