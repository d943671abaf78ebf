"""Give the top-level folders their import names: engine -> qd_studio.engine, app -> qd_studio.app."""

from setuptools import find_packages, setup

found = find_packages(include=["engine*", "app*"])
setup(packages=[f"qd_studio.{name}" for name in found])
