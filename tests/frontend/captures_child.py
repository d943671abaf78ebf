"""Runs cases of the corpus and reports what kernels read and no capture has.

`captures_child.py PROGRAM OUT ARCH NAME...`; the last line of the output is a JSON object.
"""

import ast
import json
import sys

from qd_studio.engine.frontend import build, func_context, lvalues

from tests.reference import worker

read = []
seen = {"builds": 0, "names": 0, "attributes": 0, "missed": []}

outer, attribute_of, made = func_context.FuncContext.outer, lvalues._attribute_of, build.build


def recorded_outer(self, name):
    found = outer(self, name)
    if found is not func_context.MISSING:
        read.append((self.decl, (name,)))
    return found


def recorded_attribute(w, node, *args):
    found = attribute_of(w, node, *args)
    path, root = [], node
    while isinstance(root, ast.Attribute):
        path.append(root.attr)
        root = root.value
    if isinstance(root, ast.Name) and not w.has_local(root.id):
        read.append((w.context.decl, (root.id, *reversed(path))))
    return found


def is_part(one, other):
    """Whether one path is the beginning of the other."""
    length = min(len(one), len(other))
    return one[:length] == other[:length]


def checked_build(*args, **kwargs):
    read.clear()
    result = made(*args, **kwargs)
    captures = {}
    for capture in result.captures:
        captures.setdefault(capture.decl, []).append(capture.path)
    for decl, path in read:
        seen["names" if len(path) == 1 else "attributes"] += 1
        if not any(is_part(path, other) for other in captures.get(decl, ())):
            seen["missed"].append(f"{decl.qualname}: {'.'.join(path)}")
    seen["builds"] += 1
    return result


def main():
    func_context.FuncContext.outer, lvalues._attribute_of = recorded_outer, recorded_attribute
    build.build = checked_build
    program, out, arch, *names = sys.argv[1:]
    worker.main(program, out, "ours", arch, *names)
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
