"""Makes a failing program small: drops statements, then parts of expressions, then parameters.

Every step keeps the program of the generated form, so it stays free of races: places that are
written are never changed, only what is written to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .model import E, Program, S, expressions, walk

__all__ = ["shrink"]

Body = tuple[S, ...]


def shrink(p: Program, fails: Callable[[Program], bool], limit: int = 400) -> Program:
    """The smallest program found for which ``fails`` holds, with at most ``limit`` trials."""
    trials = 0
    changed = True
    while changed and trials < limit:
        changed = False
        for candidate in _smaller(p):
            trials += 1
            if trials >= limit:
                break
            if fails(candidate):
                p, changed = candidate, True
                break
    return p


def _smaller(p: Program) -> Iterator[Program]:
    """Programs a step smaller than ``p``, big steps first."""
    for body in _without_parts(p.body):
        returns = bool(body) and body[-1].kind == "return"
        yield p._replace(
            body=body, results=p.results if returns else (),
            vector_result=p.vector_result and returns,
        )  # fmt: skip
    for body in _flattened(p.body):
        yield p._replace(body=body)
    if p.body and p.body[-1].kind == "return":
        last = p.body[-1]
        for i in range(len(last.exprs)):
            exprs = last.exprs[:i] + last.exprs[i + 1 :]
            results = p.results[:i] + p.results[i + 1 :]
            tail = (last._replace(exprs=exprs),) if exprs else ()
            whole = p.vector_result and len(results) > 1
            body = (*p.body[:-1], *tail)
            yield p._replace(body=body, results=results, vector_result=whole)
    for i in range(len(p.functions)):
        yield p._replace(functions=p.functions[:i] + p.functions[i + 1 :])
    for body in _simpler(p.body):
        yield p._replace(body=body)
    used = _used(p)
    for i, a in enumerate(p.arrays):
        group = next((g for g in p.groups if a.name in g.parts), None)
        if a.name not in used and len(p.arrays) > 1 and (group is None or len(group.parts) == 1):
            groups = tuple(g for g in p.groups if g is not group)
            yield p._replace(arrays=p.arrays[:i] + p.arrays[i + 1 :], groups=groups)
    for g in p.groups:
        if g.layout != "aos" or g.offset:
            plain = g._replace(layout="aos", offset=0)
            yield p._replace(groups=tuple(plain if x is g else x for x in p.groups))
    for i, s in enumerate(p.scalars):
        if s.name not in used and not any(s.name in b.parts for b in p.bundles):
            records = tuple(name for name in p.records if name != s.name)
            method = p.method
            if method is not None:
                method = tuple(name for name in method if name != s.name)
            scalars = p.scalars[:i] + p.scalars[i + 1 :]
            yield p._replace(scalars=scalars, records=records, method=method)


def _used(p: Program) -> set[str]:
    """Names of arrays and scalars that occur."""
    out: set[str] = set()
    roots = [e for f in p.functions for s in walk(f.body) for e in s.exprs]
    roots += [f.result for f in p.functions]
    for s in walk(p.body):
        roots += s.exprs
        if s.kind == "store":
            out.add(s.data)
        elif s.kind in ("aug", "atomic"):
            out.add(s.data[-1])
        elif s.kind == "whole":
            out.update(s.data[1].parts)
        elif s.kind == "for":
            out.add(s.data.array)
    for root in roots:
        for e in expressions(root):
            if e.op in ("var", "load"):
                out.add(e.data)
            elif e.op == "shape":
                out.add(e.data[0])
    # Parts of one value go together.
    for several in (*p.groups, *p.bundles):
        if out & set(several.parts):
            out.update(several.parts)
    return out


def _without_parts(body: Body) -> Iterator[Body]:
    """``body`` without halves, quarters, ... single statements, at every depth."""
    size = len(body)
    while size >= 1:
        for i in range(0, len(body), size):
            rest = body[:i] + body[i + size :]
            if rest or size < len(body):
                yield rest
        size //= 2
    for i, s in enumerate(body):
        for k, inner in enumerate(s.bodies):
            for smaller in _without_parts(inner):
                bodies = (*s.bodies[:k], smaller, *s.bodies[k + 1 :])
                yield (*body[:i], s._replace(bodies=bodies), *body[i + 1 :])


def _flattened(body: Body) -> Iterator[Body]:
    """``body`` with an `if` or `while` replaced by what is in it."""
    for i, s in enumerate(body):
        if s.kind in ("if", "while"):
            for inner in s.bodies:
                if not any(x.kind in ("break", "continue", "for") for x in inner):
                    yield (*body[:i], *inner, *body[i + 1 :])
        for k, inner in enumerate(s.bodies):
            for smaller in _flattened(inner):
                bodies = (*s.bodies[:k], smaller, *s.bodies[k + 1 :])
                yield (*body[:i], s._replace(bodies=bodies), *body[i + 1 :])


def _simpler(body: Body) -> Iterator[Body]:
    """``body`` with one expression replaced by a part of it or by a constant."""
    for i, s in enumerate(body):
        if s.kind not in ("for", "whole"):
            values = len(s.exprs) if s.kind not in ("store", "aug", "atomic") else 1
            for k in range(values):
                for e in _parts(s.exprs[k]):
                    exprs = (*s.exprs[:k], e, *s.exprs[k + 1 :])
                    yield (*body[:i], s._replace(exprs=exprs), *body[i + 1 :])
        for k, inner in enumerate(s.bodies):
            for smaller in _simpler(inner):
                bodies = (*s.bodies[:k], smaller, *s.bodies[k + 1 :])
                yield (*body[:i], s._replace(bodies=bodies), *body[i + 1 :])


def _parts(e: E, depth: int = 0) -> Iterator[E]:
    """Simpler expressions of the same type."""
    if e.op in ("const", "var"):
        return
    for inner in expressions(e):
        if inner is not e and inner.t is e.t and inner.op != "const":
            yield inner
    if e.op in ("load", "shape", "vec"):
        return
    if depth == 0 and e.t.bits > 1:
        yield E("const", e.t, (), 1.0 if e.t.is_real else 1)
    if e.op in ("floordiv", "floormod", "div", "mod", "truediv", "pow"):
        return
    for k, a in enumerate(e.args):
        for smaller in _parts(a, depth + 1):
            yield e._replace(args=(*e.args[:k], smaller, *e.args[k + 1 :]))
