"""Kernels from text, and what the front end makes of them.

An error case shows where its carets must be, in a comment under the line:

    y = z
    #   ^
"""

import re
from itertools import count

import pytest
from qd_studio import engine as qd
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend.build import build
from qd_studio.engine.frontend.specialization import NdarrayKey
from qd_studio.engine.ir import verify, walk

HEAD = "from qd_studio import engine as qd\nimport math\nimport numpy as np\n"
_numbers = count()


def load(text, tmp_path, head=HEAD):
    """Run a file with this text; its names."""
    path = tmp_path / f"case{next(_numbers)}.py"
    path.write_text(head + text)
    names = {"__name__": path.stem}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names


def spec_keys_of(decl, values=None):
    """What arguments of the declared types would give; templates come from ``values``."""
    values = values or {}
    config = CompileConfig()
    found = []
    for param in decl.params:
        if param.kind == "template":
            found.append(values[param.name])
        elif param.kind == "ndarray":
            ndim = 1 if param.ndim is None else param.ndim
            found.append(NdarrayKey(param.dtype or qd.f32, ndim, False))
        else:
            found.append(param.scalar_type(config))
    return tuple(found)


def built(kernel, config=None, **templates):
    """The result of building a kernel."""
    decl = kernel.decl
    result = build(decl, spec_keys_of(decl, templates), config or CompileConfig())
    assert verify(result.func) == []
    return result


def ops_of(kernel, config=None, **templates):
    """Every op of a built kernel, in order."""
    return walk(built(kernel, config, **templates).func.body)


def names_of(kernel, config=None, **templates):
    """The op names of a built kernel, in order."""
    return [op.name for op in ops_of(kernel, config, **templates)]


def carets_in(text):
    """(line, column, end column) of the comment that marks the place of the error, or None."""
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.fullmatch(r"\s*#\s*(\^+)\s*", line):
            return number - 1, match.start(1), match.end(1)
    return None


def check_error(text, kind, message, tmp_path, hint=None):
    """Loading the text and building its kernel ``k`` must fail like this."""
    with pytest.raises(kind) as caught:
        names = load(text, tmp_path)
        built(names["k"], **names.get("TEMPLATES", {}))
    error = caught.value
    assert type(error) is kind, error
    assert message in error.message
    place = carets_in(HEAD + text)
    if place is not None:
        assert (error.line, error.col, error.end_col) == place, error
        assert error.file.endswith(".py")
        assert error.source_line.strip()
        assert "^" * (place[2] - place[1]) in str(error)
    if hint is not None:
        assert hint in (error.hint or "")
    assert "engine/frontend" not in str(error)
    return error
