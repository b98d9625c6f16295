"""Which names one iteration of a loop hands to the next."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

_GROWING = frozenset({"append", "extend", "insert", "pop"})


def carried_names(loop: ast.For) -> frozenset[str]:
    """Return names that an iteration may read as the one before left them.

    What an iteration assigns before it reads it is none of them, nor is an array of which only
    elements change. A list that grows is.
    """
    exposed: set[str] = set()
    _through(loop.body, set(names_in(loop.target)), exposed)
    assigned = {name for part in loop.body for name in assigned_names(part)}
    grown = {
        node.func.value.id
        for part in loop.body
        for node in ast.walk(part)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _GROWING
        and isinstance(node.func.value, ast.Name)
    }
    return frozenset((assigned | grown) & exposed)


def stored_arrays(body: Sequence[ast.stmt]) -> frozenset[str]:
    """Return names of which statements change elements."""
    return frozenset(
        node.value.id
        for part in body
        for node in ast.walk(part)
        if isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
    )


def names_in(node: ast.AST) -> Iterator[str]:
    """Yield every name of an expression, except those that comprehensions have for themselves."""
    inner = {one.id for one in _own_of_comprehensions(node)}
    names = (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
    return (name for name in names if name not in inner)


def _own_of_comprehensions(node: ast.AST) -> Iterator[ast.Name]:
    for part in ast.walk(node):
        if isinstance(part, ast.comprehension):
            yield from (one for one in ast.walk(part.target) if isinstance(one, ast.Name))


def assigned_names(node: ast.AST) -> Iterator[str]:
    """Yield names that a statement assigns, those of its parts included."""
    inner = {id(one) for one in _own_of_comprehensions(node)}
    for part in ast.walk(node):
        if id(part) in inner:
            continue
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store | ast.Del):
            yield part.id
        elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            yield part.target.id


def _through(body: Iterable[ast.stmt], written: set[str], exposed: set[str]) -> None:
    """Go through statements in order: what is surely `written`, and what is read before."""
    for statement in body:
        match statement:
            case ast.If(test=test, body=then, orelse=orelse):
                exposed.update(set(names_in(test)) - written)
                one, other = set(written), set(written)
                _through(then, one, exposed)
                _through(orelse, other, exposed)
                written |= one & other
            case ast.For(target=target, iter=over, body=inner):
                exposed.update(set(names_in(over)) - written)
                _through(inner, written | set(names_in(target)), exposed)
            case ast.While(test=test, body=inner):
                exposed.update(set(names_in(test)) - written)
                _through(inner, set(written), exposed)
            case ast.With(body=inner):
                _through(inner, written, exposed)
            case ast.Assign(targets=targets, value=value):
                exposed.update(set(names_in(value)) - written)
                for target in targets:
                    if not isinstance(target, ast.Name | ast.Tuple | ast.List):
                        exposed.update(set(names_in(target)) - written)
                written.update(assigned_names(statement))
            case _:
                exposed.update(set(names_in(statement)) - written)
                written.update(assigned_names(statement))
