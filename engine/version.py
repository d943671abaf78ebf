"""The version of the package: the only place where it is written.

`pyproject.toml` reads it from here when the package is built. The engine does not ask the installed
metadata: reading it costs several milliseconds, and it is out of date in an editable install.
"""

from typing import Final

__all__ = ["VERSION"]

VERSION: Final = "0.2.0"
