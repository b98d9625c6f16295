"""What of a kernel's source its intermediate form stands for exactly; all else is not built.

The form says what costs time: it leaves out what a number that is accumulated comes to, say, and
how many decimals are rounded to. A program that runs needs it, so such a kernel is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from advisor.build.text import NotBuiltError
from advisor.ir.kernel import Kernel
from advisor.numpy_table import ROWS
from advisor.source import Span

_FORMS: Final = {
    name: frozenset(keywords.split())
    for names, keywords in (
        ("sum prod mean cumsum cumprod", "axis out dtype keepdims"),
        ("max min amax amin any all count_nonzero", "axis out keepdims"),
        ("argmax argmin sort flip fft ifft", "axis"),
        ("fft2 ifft2 fftn ifftn", "axes"),
        ("zeros ones empty zeros_like ones_like empty_like full full_like", "dtype order shape"),
        ("copy array asarray ascontiguousarray astype", "dtype copy"),
        ("transpose swapaxes moveaxis expand_dims", "axes axis"),
        ("roll", "axis shift"),
        ("bincount", "weights minlength"),
        ("dot matmul outer inner where diff range prange len at ravel clip int float", "out"),
        ("pad", "mode"),
        ("abs round around", "out"),
    )
    for name in names.split()
}
"""Functions and methods by their last name, and the keywords of theirs that the form keeps."""
_MOST: Final = {"round": 1, "around": 1, "fft": 1, "ifft": 1, "diff": 1, "where": 3}


def definition_of(kernel: Kernel) -> ast.FunctionDef:
    """Return the syntax of a kernel's function."""
    name = kernel.name.rpartition(".")[2]
    for node in ast.walk(ast.parse(kernel.context.source)):
        if isinstance(node, ast.FunctionDef) and (node.name, node.lineno) == (
            name,
            kernel.span.start_line,
        ):
            return node
    raise NotBuiltError("it is no plain function", kernel.span)


def check(kernel: Kernel, function: ast.FunctionDef) -> None:
    """Refuse a kernel of whose source the intermediate form leaves something out.

    Raises
    ------
    NotBuiltError
        With the place and what is left out.
    """
    for node, why in _left_out(kernel, function):
        end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        raise NotBuiltError(why, Span(node.lineno, node.col_offset, *end))


def _left_out(kernel: Kernel, function: ast.FunctionDef) -> Iterator[tuple[ast.expr, str]]:
    arrays = kernel.arrays.keys() | kernel.locals.keys()
    for statement in function.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                if node.target.id not in arrays:
                    yield node.target, f"`{node.target.id}` is a number that is accumulated"
            elif isinstance(node, ast.NamedExpr | ast.Lambda | ast.IfExp):
                yield node, f"no form of `{ast.unparse(node)}`"
            elif isinstance(node, ast.Call):
                yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else ast.unparse(called)
    known = _FORMS.get(name, frozenset(("out",)) if name in ROWS else None)
    if known is None:
        yield node, f"no form of `{ast.unparse(called)}`"
        return
    given = {one.arg or "**" for one in node.keywords}
    if given - known:
        yield node, f"`{ast.unparse(called)}` with {', '.join(sorted(given - known))}"
    if len(node.args) > _MOST.get(name, len(node.args)):
        yield node, f"`{ast.unparse(called)}` with {len(node.args)} arguments"
