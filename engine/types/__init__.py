"""Data types, promotion and parameter annotations. Imports nothing of ours above config/errors."""

from .dtypes import *  # noqa: F403
