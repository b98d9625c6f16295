"""Comprehensions that arrays are made of, as the loops that fill a list.

``x = np.array([f(v) for v in a if v > 0])`` does what ``part = []``, a loop that appends to it and
``x = np.array(part)`` do. So it is read as these, the list under a name that stands in no source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

from advisor.frontend.bindings import names_in, resolve, target_names
from advisor.frontend.lists import CONVERTED
from advisor.frontend.scope import Scope
from advisor.frontend.seen_names import name_node
from advisor.frontend.trees import nodes_in
from costdb.records import dataclass

_UNSAID = cst.NamedExpr | cst.Await | cst.Yield | cst.Lambda
"""What binds or leaves where a loop would do it in another place."""


@dataclass(frozen=True, slots=True)
class Comprehension:
    """A statement that makes an array of a comprehension, as several.

    Attributes
    ----------
    name : str
        Of the list.
    call : libcst.Call
        What makes the array.
    loop : libcst.For
    after : libcst.BaseSmallStatement
        The statement, with the name in the place of the comprehension.
    own : frozenset of str
        Names that are known in the comprehension alone.
    picked : bool
        Whether conditions decide what is in the list.
    originals : mapping of CSTNode to CSTNode
        Nodes of the file by what stands for them.
    """

    name: str
    call: cst.Call
    loop: cst.For
    after: cst.BaseSmallStatement
    own: frozenset[str]
    picked: bool
    originals: Mapping[cst.CSTNode, cst.CSTNode]


def comprehension(part: cst.CSTNode, scope: Scope) -> Comprehension | None:
    """Return what a statement that makes an array of a comprehension does; None for any other."""
    match part:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(value=cst.Call(lpar=[]) as call)
                | cst.Return(value=cst.Call(lpar=[]) as call) as statement
            ]
        ):
            pass
        case _:
            return None
    match call.args:
        case [cst.Arg(value=cst.ListComp() as made, keyword=None, star="")]:
            if resolve(call.func, scope.imports) not in CONVERTED:
                return None
        case _:
            return None
    if any(isinstance(one, _UNSAID) for one in nodes_in(made)):
        return None
    own = frozenset(
        name
        for one in nodes_in(made)
        if isinstance(one, cst.CompFor)
        for name in target_names(one.target)
    )
    around = names_in(made.for_in.iter) | names_in(call.func)
    if own & around or any(map(scope.has_array, own)):
        return None
    name = f"<list {scope.span(call).start_line}>"
    body = _appended(name, made.elt, 0)
    loop = None if body is None else _around(made.for_in, body)
    if loop is None:
        return None
    after = statement.with_changes(value=call.with_changes(args=[cst.Arg(name_node(name))]))
    originals: dict[cst.CSTNode, cst.CSTNode] = {loop: call, after: statement}
    places = {id(one.target): one for one in nodes_in(made) if isinstance(one, cst.CompFor)}
    known = {*nodes_in(part)}
    for one in (*nodes_in(loop), *nodes_in(after)):
        if isinstance(one, cst.For):
            originals.setdefault(one, places[id(one.target)])
        elif one not in known:
            originals.setdefault(one, call)
        header = one.header if isinstance(one, cst.IndentedBlock) else None
        originals |= {} if header is None else {header: call}
    picked = any(isinstance(one, cst.CompFor) and bool(one.ifs) for one in nodes_in(made))
    return Comprehension(name, call, loop, after, own, picked, originals)


def _line(small: cst.BaseSmallStatement) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([small])


def _appended(
    name: str, value: cst.BaseExpression, depth: int
) -> Sequence[cst.BaseStatement] | None:
    """Return what appends a value to a list; None where that has no form."""
    before: Sequence[cst.BaseStatement] = ()
    if isinstance(value, cst.ListComp):
        row = f"<row {depth}>"
        inner = _appended(row, value.elt, depth + 1)
        loop = None if inner is None else _around(value.for_in, inner)
        if loop is None:
            return None
        begun = cst.Assign([cst.AssignTarget(name_node(row))], cst.List([]))
        before, value = (_line(begun), loop), name_node(row)
    call = cst.Call(cst.Attribute(name_node(name), cst.Name("append")), [cst.Arg(value)])
    return (*before, _line(cst.Expr(call)))


def _around(node: cst.CompFor, body: Sequence[cst.BaseStatement]) -> cst.For | None:
    """Return the loop that a comprehension goes through; None for an asynchronous one."""
    if node.asynchronous is not None:
        return None
    if node.inner_for_in is not None:
        inner = _around(node.inner_for_in, body)
        if inner is None:
            return None
        body = (inner,)
    for one in reversed(node.ifs):
        body = (cst.If(one.test, cst.IndentedBlock(body)),)
    return cst.For(node.target, node.iter, cst.IndentedBlock(body))
