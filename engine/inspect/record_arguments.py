"""The part of a record about parameters, arguments and field layouts; see `record`."""

from typing import Annotated

from .record_base import RecordPart, about

__all__ = [
    "BindingRecord",
    "LayoutRecord",
    "ParamRecord",
    "WorkloadRecord",
]


class ParamRecord(RecordPart, frozen=True, kw_only=True):
    """A parameter as the kernel declares it."""

    name: Annotated[str, about("Name of the parameter.")]
    kind: Annotated[
        str,
        about(
            "Kind: scalar, ndarray, template, matrix (or vector), struct, tensor, record (a "
            "dataclass) or instance (``self``)."
        ),
    ]
    dtype: Annotated[str, about("Data type.")] = ""
    ndim: Annotated[int, about("Number of axes.")] = 0
    annotation: Annotated[str, about("The annotation as text.")] = ""


class WorkloadRecord(RecordPart, frozen=True, kw_only=True):
    """A set of arguments."""

    label: Annotated[str, about("Name of the workload.")]
    origin: Annotated[
        str,
        about(
            "Source: workload (declared), recorded (--run), synthetic, state or none. With state,"
            " the kernel takes no arguments and is launched on fields as the file left them."
        ),
    ]
    sizes: Annotated[dict[str, int | float | str], about("Sizes by name.")] = {}  # noqa: RUF012
    args: Annotated[tuple[str, ...], about("The arguments as text.")] = ()
    bytes: Annotated[int | None, about("Bytes that one launch moves to and from memory.")] = None
    flops: Annotated[int | None, about("Float operations of one launch.")] = None
    by_bytes: Annotated[
        str,
        about(
            "Source of ``bytes``: ``declared`` (by the author), ``counted`` (see `counting`), or "
            "``not counted: reason``; empty before a launch."
        ),
    ] = ""
    by_flops: Annotated[str, about("Source of ``flops``, as ``by_bytes``.")] = ""
    reason: Annotated[
        str, about("For origin none: the parameter that could not be generated, and why.")
    ] = ""


class LayoutRecord(RecordPart, frozen=True, kw_only=True):
    """The memory layout of the elements of a field."""

    shape: Annotated[tuple[int, ...], about("Shape of the field.")]
    element_shape: Annotated[
        tuple[int, ...], about("Shape of the vector or matrix in each element.")
    ] = ()
    origin: Annotated[tuple[int, ...], about("First valid index of each axis.")] = ()
    digits: Annotated[
        tuple[str, ...],
        about(
            "Parts of the address, outermost first: an axis (``i``, ``j``, ...; for elements "
            "``c`` of a vector, ``r`` and ``c`` of a matrix), with the part of its index if dense"
            " levels are nested (``i/8``, ``i%8``)."
        ),
    ] = ()
    strides: Annotated[tuple[int, ...], about("Bytes between neighbours along each digit.")] = ()
    arrangement: Annotated[
        str,
        about(
            "Order of the parts of an element: ``AOS`` (side by side), ``SOA`` (separate), "
            "``mixed``, or empty for scalars."
        ),
    ] = ""
    bytes: Annotated[int, about("Bytes of all elements.")] = 0
    span: Annotated[
        int,
        about(
            "Bytes from the first element to the end of the last; more than ``bytes`` if other "
            "data is in between."
        ),
    ] = 0


class BindingRecord(RecordPart, frozen=True, kw_only=True):
    """A parameter of the compiled function, and its value at a launch."""

    name: Annotated[
        str, about("Name in the kernel: ``x``, ``tank.rates.feed``, ``p.vel[1]``, ``position``.")
    ]
    kind: Annotated[str, about("Kind: scalar, ndarray or field.")]
    dtype: Annotated[str, about("Data type.")]
    ndim: Annotated[int, about("Number of axes, without those of an element.")] = 0
    element_shape: Annotated[tuple[int, ...], about("Shape of an element.")] = ()
    origin: Annotated[
        str,
        about(
            "Source: argument, member (of a dataclass or an object), part (of a vector, matrix or"
            " struct), gradient or field."
        ),
    ] = "argument"
    argument: Annotated[
        str, about("The declared parameter that it belongs to; empty for a field.")
    ] = ""
    written: Annotated[bool, about("True if the kernel writes to it.")] = False
    used: Annotated[bool, about("True if the finished kernel needs it.")] = True
    axes: Annotated[
        tuple[int, ...],
        about("Axes of an array in memory order, outermost first; empty for the default order."),
    ] = ()
    layout: Annotated[LayoutRecord | None, about("Layout of a field.")] = None
