"""Give the top-level folders their import names: engine/ installs as qd_studio.engine."""

from setuptools import find_packages, setup

found = find_packages(include=["engine*", "app*"])
setup(packages=[f"qd_studio.{name}" for name in found])
