# mypy: ignore-errors
# pyright: basic
"""``qd.math``: constants, vector types, and functions in the style of shading languages."""

from ..lang.math import (
    acos as acos,
)
from ..lang.math import (
    asin as asin,
)
from ..lang.math import (
    atan2 as atan2,
)
from ..lang.math import (
    cconj as cconj,
)
from ..lang.math import (
    cdiv as cdiv,
)
from ..lang.math import (
    ceil as ceil,
)
from ..lang.math import (
    cexp as cexp,
)
from ..lang.math import (
    cinv as cinv,
)
from ..lang.math import (
    clamp as clamp,
)
from ..lang.math import (
    clog as clog,
)
from ..lang.math import (
    clz as clz,
)
from ..lang.math import (
    cmul as cmul,
)
from ..lang.math import (
    cos as cos,
)
from ..lang.math import (
    cpow as cpow,
)
from ..lang.math import (
    cross as cross,
)
from ..lang.math import (
    csqrt as csqrt,
)
from ..lang.math import (
    degrees as degrees,
)
from ..lang.math import (
    determinant as determinant,
)
from ..lang.math import (
    distance as distance,
)
from ..lang.math import (
    dot as dot,
)
from ..lang.math import (
    exp as exp,
)
from ..lang.math import (
    eye as eye,
)
from ..lang.math import (
    ffs as ffs,
)
from ..lang.math import (
    floor as floor,
)
from ..lang.math import (
    fns as fns,
)
from ..lang.math import (
    fract as fract,
)
from ..lang.math import (
    inverse as inverse,
)
from ..lang.math import (
    isinf as isinf,
)
from ..lang.math import (
    isnan as isnan,
)
from ..lang.math import (
    length as length,
)
from ..lang.math import (
    log as log,
)
from ..lang.math import (
    log2 as log2,
)
from ..lang.math import (
    max as max,
)
from ..lang.math import (
    min as min,
)
from ..lang.math import (
    mix as mix,
)
from ..lang.math import (
    mod as mod,
)
from ..lang.math import (
    normalize as normalize,
)
from ..lang.math import (
    popcnt as popcnt,
)
from ..lang.math import (
    pow as pow,
)
from ..lang.math import (
    radians as radians,
)
from ..lang.math import (
    reflect as reflect,
)
from ..lang.math import (
    refract as refract,
)
from ..lang.math import (
    rot_by_axis as rot_by_axis,
)
from ..lang.math import (
    rot_yaw_pitch_roll as rot_yaw_pitch_roll,
)
from ..lang.math import (
    rotation2d as rotation2d,
)
from ..lang.math import (
    rotation3d as rotation3d,
)
from ..lang.math import (
    round as round,
)
from ..lang.math import (
    rsqrt as rsqrt,
)
from ..lang.math import (
    scale as scale,
)
from ..lang.math import (
    sign as sign,
)
from ..lang.math import (
    sin as sin,
)
from ..lang.math import (
    smoothstep as smoothstep,
)
from ..lang.math import (
    sqrt as sqrt,
)
from ..lang.math import (
    step as step,
)
from ..lang.math import (
    tan as tan,
)
from ..lang.math import (
    tanh as tanh,
)
from ..lang.math import (
    translate as translate,
)
from ..lang.math import (
    vdir as vdir,
)
from .annotations import (
    ivec2 as ivec2,
)
from .annotations import (
    ivec3 as ivec3,
)
from .annotations import (
    ivec4 as ivec4,
)
from .annotations import (
    mat2 as mat2,
)
from .annotations import (
    mat3 as mat3,
)
from .annotations import (
    mat4 as mat4,
)
from .annotations import (
    uvec2 as uvec2,
)
from .annotations import (
    uvec3 as uvec3,
)
from .annotations import (
    uvec4 as uvec4,
)
from .annotations import (
    vec2 as vec2,
)
from .annotations import (
    vec3 as vec3,
)
from .annotations import (
    vec4 as vec4,
)

e: float
inf: float
nan: float
pi: float
