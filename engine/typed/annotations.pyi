# mypy: ignore-errors
# pyright: basic, reportRedeclaration=false
"""The names that are values and annotations at once: data types, vector types, NDArray, Template.

A parameter ``x: qd.f32`` accepts whatever converts to such a number, so to type checkers ``f32`` is
a protocol; but ``qd.f32(1)`` is a call, and protocols cannot be called. Pyright accepts both of a
class whose decorator returns the type of a protocol. Mypy ignores the decorators of classes: to it
these names have any type, unless the plugin `qd_studio.engine.typed.mypy_plugin` is used.
"""

from typing import Any

from . import containers, numbers, values

MYPY = False

if MYPY:
    from .unchecked import NDArray as NDArray
    from .unchecked import Template as Template
    from .unchecked import f16 as f16
    from .unchecked import f32 as f32
    from .unchecked import f64 as f64
    from .unchecked import i8 as i8
    from .unchecked import i16 as i16
    from .unchecked import i32 as i32
    from .unchecked import i64 as i64
    from .unchecked import ivec2 as ivec2
    from .unchecked import ivec3 as ivec3
    from .unchecked import ivec4 as ivec4
    from .unchecked import mat2 as mat2
    from .unchecked import mat3 as mat3
    from .unchecked import mat4 as mat4
    from .unchecked import ndarray as ndarray
    from .unchecked import u1 as u1
    from .unchecked import u8 as u8
    from .unchecked import u16 as u16
    from .unchecked import u32 as u32
    from .unchecked import u64 as u64
    from .unchecked import uvec2 as uvec2
    from .unchecked import uvec3 as uvec3
    from .unchecked import uvec4 as uvec4
    from .unchecked import vec2 as vec2
    from .unchecked import vec3 as vec3
    from .unchecked import vec4 as vec4
else:
    def _f16(cls: Any, /) -> type[numbers.f16]: ...
    @_f16
    class f16(numbers.f16):
        """A real number of 16 bits."""

    def _f32(cls: Any, /) -> type[numbers.f32]: ...
    @_f32
    class f32(numbers.f32):
        """A real number of 32 bits."""

    def _f64(cls: Any, /) -> type[numbers.f64]: ...
    @_f64
    class f64(numbers.f64):
        """A real number of 64 bits."""

    def _i8(cls: Any, /) -> type[numbers.i8]: ...
    @_i8
    class i8(numbers.i8):
        """A signed integer of 8 bits."""

    def _i16(cls: Any, /) -> type[numbers.i16]: ...
    @_i16
    class i16(numbers.i16):
        """A signed integer of 16 bits."""

    def _i32(cls: Any, /) -> type[numbers.i32]: ...
    @_i32
    class i32(numbers.i32):
        """A signed integer of 32 bits."""

    def _i64(cls: Any, /) -> type[numbers.i64]: ...
    @_i64
    class i64(numbers.i64):
        """A signed integer of 64 bits."""

    def _u1(cls: Any, /) -> type[numbers.u1]: ...
    @_u1
    class u1(numbers.u1):
        """A truth value."""

    def _u8(cls: Any, /) -> type[numbers.u8]: ...
    @_u8
    class u8(numbers.u8):
        """An unsigned integer of 8 bits."""

    def _u16(cls: Any, /) -> type[numbers.u16]: ...
    @_u16
    class u16(numbers.u16):
        """An unsigned integer of 16 bits."""

    def _u32(cls: Any, /) -> type[numbers.u32]: ...
    @_u32
    class u32(numbers.u32):
        """An unsigned integer of 32 bits."""

    def _u64(cls: Any, /) -> type[numbers.u64]: ...
    @_u64
    class u64(numbers.u64):
        """An unsigned integer of 64 bits."""

    def _vec2(cls: Any, /) -> type[values.vec2]: ...
    @_vec2
    class vec2(values.vec2):
        """A vector of 2 floats."""

    def _vec3(cls: Any, /) -> type[values.vec3]: ...
    @_vec3
    class vec3(values.vec3):
        """A vector of 3 floats."""

    def _vec4(cls: Any, /) -> type[values.vec4]: ...
    @_vec4
    class vec4(values.vec4):
        """A vector of 4 floats."""

    def _ivec2(cls: Any, /) -> type[values.ivec2]: ...
    @_ivec2
    class ivec2(values.ivec2):
        """A vector of 2 integers."""

    def _ivec3(cls: Any, /) -> type[values.ivec3]: ...
    @_ivec3
    class ivec3(values.ivec3):
        """A vector of 3 integers."""

    def _ivec4(cls: Any, /) -> type[values.ivec4]: ...
    @_ivec4
    class ivec4(values.ivec4):
        """A vector of 4 integers."""

    def _uvec2(cls: Any, /) -> type[values.uvec2]: ...
    @_uvec2
    class uvec2(values.uvec2):
        """A vector of 2 unsigned integers."""

    def _uvec3(cls: Any, /) -> type[values.uvec3]: ...
    @_uvec3
    class uvec3(values.uvec3):
        """A vector of 3 unsigned integers."""

    def _uvec4(cls: Any, /) -> type[values.uvec4]: ...
    @_uvec4
    class uvec4(values.uvec4):
        """A vector of 4 unsigned integers."""

    def _mat2(cls: Any, /) -> type[values.mat2]: ...
    @_mat2
    class mat2(values.mat2):
        """A matrix of 2 rows and 2 columns of floats."""

    def _mat3(cls: Any, /) -> type[values.mat3]: ...
    @_mat3
    class mat3(values.mat3):
        """A matrix of 3 rows and 3 columns of floats."""

    def _mat4(cls: Any, /) -> type[values.mat4]: ...
    @_mat4
    class mat4(values.mat4):
        """A matrix of 4 rows and 4 columns of floats."""

    def _ndarray(cls: Any, /) -> type[containers.NDArray]: ...
    @_ndarray
    class NDArray(containers.NDArray):
        """A parameter that is an array: ``x: qd.types.NDArray[qd.f32, 2]``.

        An ndarray of `qd.ndarray`, a NumPy array or a torch tensor. Without data type or number of
        axes it accepts any.
        """

        def __class_getitem__(cls, item: Any, /) -> Any: ...

    @_ndarray
    class ndarray(containers.NDArray):
        """A parameter that is an array: ``x: qd.types.ndarray(dtype=qd.f32, ndim=2)``.

        Type checkers refuse calls in annotations; `NDArray` is the same and needs none.
        """

        def __class_getitem__(cls, item: Any, /) -> Any: ...

    def _template(cls: Any, /) -> Any: ...
    @_template
    class Template:
        """A parameter whose value is known when the kernel is compiled: ``x: qd.Template``.

        Each distinct value compiles a new instance. In a function of kernels the argument is passed
        by reference.
        """

template = Template
float16 = f16
float32 = f32
float64 = f64
int8 = i8
int16 = i16
int32 = i32
int64 = i64
uint1 = u1
uint8 = u8
uint16 = u16
uint32 = u32
uint64 = u64
