"""More programs as in `misleading`: what changes does not show in how values are written.

Numbers that Python writes alike, and what belongs to the engine, or to the program that runs.
"""

from tests.caches.misleading import assign

PROGRAMS = {
    "the sign of a constant that is no number": (
        "Z = math.nan if PICK == 'a' else -math.nan\n" + assign("qd.static(math.copysign(2.0, Z))"),
        {"a": 2.0, "b": -2.0},
    ),
    "the sign of a template argument that is no number": (
        assign("qd.static(math.copysign(2.0, t))")
        .replace("a: F32", "a: F32, t: qd.template()")
        .replace("ones(1),", "ones(1), math.nan if PICK == 'a' else -math.nan,"),
        {"a": 2.0, "b": -2.0},
    ),
    "options of the program that runs": (
        "from qd_studio.engine.runtime import program\n"
        + assign("float(qd.static(program.current().config.random_seed))").replace(
            "(ones(1),)", "(ones(1),), random_seed=2 if PICK == 'a' else 3"
        ),
        {"a": 2.0, "b": 3.0},
    ),
    "an object of the engine that is another one in each program": (
        "from qd_studio.engine.runtime import program\n"
        + assign("float(qd.static(program._current.config.random_seed))").replace(
            "(ones(1),)", "(ones(1),), random_seed=2 if PICK == 'a' else 3"
        ),
        {"a": 2.0, "b": 3.0},
    ),
}
