# pyright: basic
"""The names of `annotations` as mypy sees them without its plugin."""

from typing import Any

NDArray: Any
ndarray: Any
Template: Any
f16: Any
f32: Any
f64: Any
i8: Any
i16: Any
i32: Any
i64: Any
u1: Any
u8: Any
u16: Any
u32: Any
u64: Any
vec2: Any
vec3: Any
vec4: Any
ivec2: Any
ivec3: Any
ivec4: Any
uvec2: Any
uvec3: Any
uvec4: Any
mat2: Any
mat3: Any
mat4: Any
