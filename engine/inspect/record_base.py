"""The base of all parts of a record, and the description of their attributes; see `record`."""

import msgspec

__all__ = ["RecordPart", "about"]


class RecordPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """The settings that all parts of a record share.

    Parts may have ``{}`` as a default: msgspec copies an empty container for each object.
    """


def about(text: str) -> msgspec.Meta:
    """The description of an attribute, which the JSON Schema of the record carries.

    It has no constraint, so it costs nothing when a record is decoded.
    """
    return msgspec.Meta(description=text)
