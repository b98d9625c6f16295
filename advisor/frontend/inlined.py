"""Calls of functions of the file that are read as what the functions do.

The function's own names are told apart from those of whoever calls it by what they are called:
``x`` of ``f`` is ``f__x``. No such name stands in the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import libcst as cst

from advisor.frontend.bindings import NameScope, ScopeKind
from advisor.frontend.effects import Function, home_of
from advisor.frontend.seen_names import Naming
from advisor.frontend.trees import nodes_in
from costdb.records import dataclass, field

DEEPEST_CALLS = 3
"""Calls within calls that are read so."""

_READ = cst.Assign | cst.AugAssign | cst.AnnAssign | cst.Expr | cst.Pass | cst.For | cst.If
_DEFAULTS = cst.Integer | cst.Float | cst.UnaryOperation | cst.Name | cst.SimpleString


@dataclass(frozen=True, slots=True)
class Inlined:
    """What a function does, with names that it alone has.

    Attributes
    ----------
    parameters : mapping of str to (str, libcst.BaseExpression or None)
        What its parameters are called, in order, and what they are where nothing is given.
    statements : tuple of CSTNode
    result : libcst.BaseExpression
    again : frozenset of str
        Names that it binds more than once.
    """

    parameters: Mapping[str, tuple[str, cst.BaseExpression | None]]
    statements: tuple[cst.CSTNode, ...]
    result: cst.BaseExpression
    again: frozenset[str]


@dataclass(slots=True)
class Bodies:
    """The functions of a file that are read where they are called.

    Attributes
    ----------
    scopes : tuple of NameScope
        Of whoever calls them.
    originals : dict of CSTNode to CSTNode
        Nodes of the file by what stands for them.
    """

    scopes: tuple[NameScope, ...]
    originals: dict[cst.CSTNode, cst.CSTNode] = field(default_factory=dict)
    _known: dict[cst.FunctionDef, Inlined | None] = field(default_factory=dict)

    def of(self, function: Function) -> Inlined | None:
        """Return what a function does; None for one that is more than assignments and a result."""
        node = function[0]
        if node not in self._known:
            self._known[node] = self._read(*function)
        return self._known[node]

    def _read(self, node: cst.FunctionDef, scopes: tuple[NameScope, ...]) -> Inlined | None:
        own, given = scopes[-1], node.params
        statements: list[cst.CSTNode] = list(node.body.body)
        plain = not (given.star_kwarg or isinstance(given.star_arg, cst.Param) or node.decorators)
        if not plain or node.asynchronous is not None or own.later or own.elsewhere:
            return None
        if scopes[-2].kind is ScopeKind.CLASS or not self._sees_the_same(scopes):
            return None
        returned: cst.BaseExpression = cst.Name("None")
        match statements[-1]:
            case cst.SimpleStatementLine(body=[cst.Return(value=value)]):
                statements.pop()
                returned = value or returned
        calls = (one for one in nodes_in(returned) if isinstance(one, cst.Call))
        if any(is_conditional(one, returned) for one in calls):
            return None
        if not all(isinstance(one, _READ) for part in statements for one in _smalls(part)):
            return None
        names = {one: f"{node.name.value}__{one}" for one in own.bound}
        naming = Naming(lambda one: names.get(one.value) if isinstance(one, cst.Name) else None)
        defaults = [*given.posonly_params, *given.params, *given.kwonly_params]
        if not all(one.default is None or isinstance(one.default, _DEFAULTS) for one in defaults):
            return None
        made = [part.visit(naming) for part in statements]
        read = tuple(part for part in made if isinstance(part, cst.CSTNode))
        shown = returned.visit(naming)
        assert isinstance(shown, cst.BaseExpression)
        self.originals.update(naming.originals)
        given_names = (one.name.value for one in defaults)
        parameters = {
            n: (names[n], one.default) for n, one in zip(given_names, defaults, strict=True)
        }
        again = frozenset(names[one] for one, found in own.bound.items() if len(found) > 1)
        return Inlined(parameters, read, shown, again)

    def _sees_the_same(self, scopes: tuple[NameScope, ...]) -> bool:
        """Return whether names that a function does not bind mean the same where it is called."""
        free = scopes[-1].used - scopes[-1].bound.keys()
        return all(home_of(name, scopes[:-1]) is home_of(name, self.scopes) for name in free)


def is_conditional(call: cst.Call, node: cst.CSTNode) -> bool:
    """Return whether a statement evaluates a call only where something holds."""
    for part in nodes_in(node):
        within: Sequence[cst.CSTNode] = ()
        match part:
            case cst.IfExp(body=body, orelse=orelse):
                within = (body, orelse)
            case cst.BooleanOperation(right=right):
                within = (right,)
            case cst.BaseComp() | cst.Lambda():
                within = (part,)
        if any(one is call for inner in within for one in nodes_in(inner)):
            return True
    return False


def _smalls(part: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the statements of a piece of source, also those within others."""
    for node in nodes_in(part):
        if isinstance(node, cst.BaseSmallStatement | cst.BaseCompoundStatement):
            yield node


def given_to(body: Inlined, call: cst.Call) -> dict[str, cst.BaseExpression] | None:
    """Return what a call gives to each parameter; None where that is not written out."""
    names, found = list(body.parameters), dict[str, cst.BaseExpression]()
    for place, argument in enumerate(call.args):
        if argument.star or (argument.keyword is None and place >= len(names)):
            return None
        name = names[place] if argument.keyword is None else argument.keyword.value
        if name not in body.parameters or name in found:
            return None
        found[name] = argument.value
    given = {new: found.get(old, default) for old, (new, default) in body.parameters.items()}
    known = {name: value for name, value in given.items() if value is not None}
    return known if len(known) == len(given) else None
