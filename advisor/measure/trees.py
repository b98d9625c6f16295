"""What is read off trees of Python, and small trees that are written."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final

CLOCK: Final = "clock"
_FEW = 16


def parameters(arguments: ast.arguments) -> list[ast.arg]:
    """Return the named parameters of a function."""
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def kind_of(annotation: ast.expr | None) -> str:
    """Return what kind of number an annotation means; ``float`` where it says nothing."""
    return "int" if annotation is not None and ast.unparse(annotation) == "int" else "float"


def is_main(test: ast.expr) -> bool:
    """Whether a condition asks if the file is run as a script."""
    return ast.unparse(test) in ("__name__ == '__main__'", "'__main__' == __name__")


def own_statements(node: ast.stmt) -> Iterator[ast.stmt]:
    """Yield a statement and those in it that belong to the same loop."""
    yield node
    if isinstance(node, ast.If | ast.With):
        for part in (*node.body, *getattr(node, "orelse", ())):
            yield from own_statements(part)


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those in it that belong to the same function."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            yield from own_nodes(child)


def run_by(function: ast.FunctionDef | ast.ClassDef) -> Iterator[ast.AST]:
    """Yield the parts of a function that run: no annotations, no decorators."""
    yield from function.body
    if isinstance(function, ast.ClassDef):
        return
    yield from function.args.defaults
    yield from (one for one in function.args.kw_defaults if one is not None)


def own_members(tree: ast.Module) -> Iterator[str]:
    """Yield what classes of a file define, and what their methods set."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        for part in ast.walk(node):
            match part:
                case ast.FunctionDef(name=name) if not name.startswith("__"):
                    yield name
                case ast.Attribute(attr=name, ctx=ast.Store()) if not name.startswith("__"):
                    yield name
                case ast.Name(id=name, ctx=ast.Store()) if not name.startswith("__"):
                    yield name
                case _:
                    pass


def root_name(node: ast.expr) -> str:
    """Return the name that a chain of calls, attributes and subscripts begins with."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_short(over: ast.expr) -> bool:
    """Whether a loop runs a few times that the text tells: it is part of what is around it."""
    match over:
        case ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]):
            values = [b.value for b in bounds if isinstance(b, ast.Constant)]
            whole = [v for v in values if isinstance(v, int)]
            if not whole or len(whole) != len(bounds) or whole[2:] == [0]:
                return False
            return len(range(*whole)) <= _FEW
        case _:
            return False


def handed(loop: str, method: str, names: Sequence[str]) -> list[ast.stmt]:
    """Return ``v1, v2 = loop.method(v1, v2)``."""
    if not names:
        return []
    values = ast.Tuple([ast.Name(one) for one in names])
    function = ast.Attribute(ast.Name(loop), method)
    return [ast.Assign([values], ast.Call(function, list(values.elts), []))]


def assigned_broke(name: str) -> ast.stmt:
    """Return what tells a loop of the clock that the program leaves it."""
    return ast.Assign([ast.Attribute(ast.Name(name), "broke", ast.Store())], ast.Constant(True))


def clock_call(method: str, *given: int) -> ast.stmt:
    """Return a call of the clock."""
    function = ast.Attribute(ast.Name(CLOCK), method)
    return ast.Expr(ast.Call(function, [ast.Constant(one) for one in given], []))
