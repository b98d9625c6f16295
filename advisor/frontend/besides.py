"""Statements that are not read as work on arrays, and calls that are read as what is called."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, product
from typing import Any

import libcst as cst

from advisor.frontend.arrays import value_of
from advisor.frontend.bindings import (
    Function,
    NameScope,
    Naming,
    assigned_names,
    dotted,
    function_of,
    home_of,
    names_in,
)
from advisor.frontend.declarations import Declarations
from advisor.frontend.directives import Pragmas
from advisor.frontend.effects import (
    Effects,
    Reading,
    Work,
    work_of,
)
from advisor.frontend.indices import known
from advisor.frontend.lists import joined
from advisor.frontend.scope import KINDS, Scope, is_kept
from advisor.frontend.simple_statements import SimpleStatements
from advisor.frontend.trees import NotKnown, NotUnderstood, as_python, nodes_in
from advisor.ir.effects import BUILTINS, OBJECT
from advisor.ir.statements import (
    CONDITION,
    NO_PRICE,
    Bind,
    Opaque,
    Return,
    ScalarBind,
    Statement,
    Threads,
    Unknown,
    Unrolled,
    mentioned,
    walk,
)
from advisor.ir.values import Read, Scalar, Value
from advisor.observed import SeenNumber
from advisor.source import PROPERTY, Span, properties_read
from costdb.expr import Expr, sym
from costdb.records import dataclass, field

# --- inlined --------------------------------------------------------------------------------------
# Calls of functions of the file that are read as what the functions do.
#
# The function's own names are told apart from those of whoever calls it by what they are called:
# ``x`` of ``f`` is ``f__x``. No such name stands in the source.


DEEPEST_CALLS = 3
"""Calls within calls that are read so."""

_READ = (
    cst.Assign | cst.AugAssign | cst.AnnAssign | cst.Expr | cst.Pass
    | cst.For | cst.While | cst.If | cst.Break | cst.Continue
)  # fmt: skip
_NAMED = cst.Name | cst.Attribute | cst.Subscript
_DEFAULTS = cst.Integer | cst.Float | cst.UnaryOperation | cst.Name | cst.SimpleString


@dataclass(frozen=True, slots=True)
class Inlined:
    """What a function does, with names that it alone has.

    Attributes
    ----------
    parameters : mapping of str to (str, libcst.BaseExpression or None)
        What its parameters are called, in order, and what they are where nothing is given. Those
        that are objects are called what these are.
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
    source : str
        Of the file.
    originals : dict of CSTNode to CSTNode
        Nodes of the file by what stands for them.
    """

    scopes: tuple[NameScope, ...]
    source: str
    originals: dict[cst.CSTNode, cst.CSTNode] = field(default_factory=dict)
    _known: dict[tuple[cst.FunctionDef, frozenset[tuple[str, str]]], Inlined | None] = field(
        default_factory=dict
    )

    def original(self, node: cst.CSTNode) -> cst.CSTNode:
        """Return the node of the file that a node stands for, through all that stand between."""
        while (of := self.originals.get(node, node)) is not node:
            node = of
        return node

    def of(
        self, function: Function, objects: Mapping[str, str], around: Collection[str]
    ) -> Inlined | None:
        """Return what a function does; None for one that is more than assignments and a result.

        Parameters
        ----------
        function : Function
        objects : mapping of str to str
            Parameters that are objects, and which these are where it is called.
        around : collection of str
            Attributes that are read as names.
        """
        key = function[0], frozenset(objects.items())
        if key not in self._known:
            self._known[key] = self._read(*function, objects, around)
        return self._known[key]

    def _read(
        self,
        node: cst.FunctionDef,
        scopes: tuple[NameScope, ...],
        objects: Mapping[str, str],
        around: Collection[str],
    ) -> Inlined | None:
        own, given = scopes[-1], node.params
        statements: list[cst.CSTNode] = list(node.body.body)
        plain = not (given.star_kwarg or isinstance(given.star_arg, cst.Param))
        plain &= {dotted(one.decorator) for one in node.decorators} <= {"property", "staticmethod"}
        if not plain or node.asynchronous is not None or own.later or own.elsewhere:
            return None
        if not self._sees_the_same(scopes) or any(len(own.bound[one]) > 1 for one in objects):
            return None
        returned: cst.BaseExpression = cst.Name("None")
        match statements[-1]:
            case cst.SimpleStatementLine(body=[cst.Return(value=value)]) if not any(
                map(_returns, statements[:-1])
            ):
                statements.pop()
                returned = value or returned
            case _ if any(map(_returns, statements)):
                returned = cst.Name(f"{node.name.value}__return")
                ended = self._ended(statements, returned)
                if ended is None:
                    return None
                statements = ended
        calls = (one for one in nodes_in(returned) if isinstance(one, cst.Call))
        if any(is_conditional(one, returned) for one in calls):
            return None
        smalls = [one for part in statements for one in _smalls(part)]
        if not all(isinstance(one, _READ) for one in smalls) or any(map(_shows, smalls)):
            return None
        names = {one: objects.get(one, f"{node.name.value}__{one}") for one in own.bound}

        def named(one: cst.CSTNode) -> str | None:
            path = dotted(one) if isinstance(one, _NAMED) else None
            root, *rest = (path or "").split(".")
            name = ".".join((names.get(root, ""), *rest))
            return name if name in around or (not rest and root in names) else None

        naming = Naming(named, properties_read(self.source))
        defaults = [*given.posonly_params, *given.params, *given.kwonly_params]
        if not all(one.default is None or isinstance(one.default, _DEFAULTS) for one in defaults):
            return None
        # what a default names may be something else where the function is called
        default_names = (one.default.value for one in defaults if isinstance(one.default, cst.Name))
        homes = ((one, home_of(one, scopes[:-1])) for one in default_names)
        if any(home is not None and len(home.bound[one]) > 1 for one, home in homes):
            return None
        made = [part.visit(naming) for part in statements]
        read = tuple(part for part in made if isinstance(part, cst.CSTNode))
        shown = returned.visit(naming)
        assert isinstance(shown, cst.BaseExpression)
        self.originals |= naming.originals
        given_names = (one.name.value for one in defaults)
        parameters = {
            n: (names[n], one.default) for n, one in zip(given_names, defaults, strict=True)
        }
        again = frozenset(names[one] for one, found in own.bound.items() if len(found) > 1)
        return Inlined(parameters, read, shown, again)

    def _ended(
        self, statements: Sequence[cst.CSTNode], result: cst.Name
    ) -> list[cst.CSTNode] | None:
        """Return statements that name what they return, and end at their end alone.

        What follows a condition that returns goes to its other branch. None where both branches
        may go on, or where a loop returns.
        """
        place = next((n for n, one in enumerate(statements) if _returns(one)), None)
        if place is None:
            # it ends without a result
            return None
        before, here, after = list(statements[:place]), statements[place], statements[place + 1 :]
        made: cst.CSTNode = here
        match here:
            case (
                cst.Return(value=cst.BaseExpression() as value)
                | cst.SimpleStatementLine(body=[cst.Return(value=cst.BaseExpression() as value)])
            ):
                given = cst.Assign([cst.AssignTarget(result)], value)
                self.originals[given] = here
                made = cst.SimpleStatementLine([given])
            case cst.If(body=body, orelse=orelse):
                blocks: list[list[cst.CSTNode]] = [[*body.body], [] if orelse is None else [orelse]]
                if isinstance(orelse, cst.Else):
                    blocks[1] = [*orelse.body.body]
                then, rest = (
                    self._ended(one if _leaves(one) else [*one, *after], result) for one in blocks
                )
                if then is None or rest is None or not any(map(_leaves, blocks)):
                    return None
                inner = body.with_changes(body=then)
                self.originals[inner] = body
                other = cst.Else(cst.IndentedBlock([]).with_changes(body=rest))
                made = here.with_changes(body=inner, orelse=other)
            case _:
                return None
        self.originals[made] = here
        return [*before, made]

    def _sees_the_same(self, scopes: tuple[NameScope, ...]) -> bool:
        """Return whether names that a function does not bind mean the same where it is called."""
        free = scopes[-1].used - scopes[-1].bound.keys()
        return all(home_of(name, scopes[:-1]) is home_of(name, self.scopes) for name in free)


def _returns(node: cst.CSTNode) -> bool:
    """Return whether something may return from the function that it stands in."""
    return any(isinstance(one, cst.Return) for one in nodes_in(node))


def _leaves(block: Sequence[cst.CSTNode]) -> bool:
    """Return whether what stands after some statements is never reached."""
    match block[-1] if block else None:
        case cst.Return() | cst.SimpleStatementLine(body=[*_, cst.Return()]):
            return True
        case cst.If(body=body, orelse=cst.Else(body=other)):
            return _leaves(body.body) and _leaves(other.body)
        case cst.If(body=body, orelse=cst.If() as other):
            return _leaves(body.body) and _leaves([other])
    return False


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


def _shows(node: cst.CSTNode) -> bool:
    """Return whether a statement calls a builtin function, as ``print``, for what that does."""
    match node:
        case cst.Expr(cst.Call(cst.Name(name))):
            return name in BUILTINS
    return False


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


# --- besides --------------------------------------------------------------------------------------


_SIZED = frozenset({"list", "tuple", "dict", "set", "str"})


class Besides(SimpleStatements):
    """Reads statements so that what is not understood of one leaves what is known around it."""

    def __init__(
        self,
        scope: Scope,
        declarations: Declarations,
        pragmas: Pragmas,
        threads: Callable[[int], Threads],
        reading: Reading,
        scopes: tuple[NameScope, ...],
        functions: Mapping[str, Sequence[Function]],
    ) -> None:
        super().__init__(scope, declarations)
        self.reading = reading
        self.bodies, self.functions = Bodies(scopes, reading.source), functions
        # the statement that is read, its calls of functions of the file, and what these give
        self.reads: cst.CSTNode | None = None
        self.expanded: dict[cst.Call, cst.BaseExpression | None] = {}
        original, span_of = self.bodies.original, scope.span
        scope.span = lambda node: span_of(original(node))
        scope.expanded, scope.elsewhere = self._expanded, self.bodies.originals
        self.pragmas = pragmas
        # of a loop over prange, by its line
        self.threads = threads
        # and how many loops within such ones were read
        self.rounds = 0
        self.reasons: dict[Span, str] = {}
        # for what a name no longer denotes: the line that is not understood, and why
        self.causes: dict[str, tuple[int, str]] = {}
        self.starts: dict[Span, dict[str, Scalar]] = {}
        # what loops need as it was before them
        self.kept: list[Statement] = []

    def _parts(self, parts: Sequence[cst.CSTNode], of_loop: bool) -> tuple[Statement, ...]:
        """Read statements of one block; `of_loop`, of what a loop repeats."""
        raise NotImplementedError

    def block(self, node: cst.BaseSuite, *, of_loop: bool = False) -> tuple[Statement, ...]:
        """Return the statements of a suite; `of_loop`, of what a loop repeats."""
        if self.source is None:
            self.source = node
        return self._parts(node.body, of_loop)

    def _guarded(
        self,
        node: cst.BaseSmallStatement | cst.BaseCompoundStatement,
        read: Callable[[Any], Sequence[Statement]],
    ) -> Sequence[Statement]:
        """Read a statement; what is not understood becomes an explicit unknown."""
        scope, span = self.scope, self.scope.span(node)
        mentions = scope.behind(names_in(node))
        outer = scope.pending, self.expanded, self.reads
        self.reads = node
        try:
            scope.pending, self.expanded = [], {}
            done = read(node)
        except NotUnderstood as refused:
            scope.pending, self.expanded = [], {}
            done = self._not_read(node, span, mentions, refused)
        finally:
            made = scope.pending
            if any(self.expanded.values()):
                scope.given |= assigned_names(node)
            scope.pending, self.expanded, self.reads = outer
        return (Unrolled((*made, *done), span),) if made else done

    def _not_read(
        self,
        node: cst.BaseSmallStatement | cst.BaseCompoundStatement,
        span: Span,
        mentions: frozenset[str],
        refused: NotUnderstood,
    ) -> Sequence[Statement]:
        """Return what is known of a statement that is not understood as one on arrays."""
        scope, found = self.scope, self._effects(node)
        changes = self._changes(found)
        for array in changes:
            scope.changed(array)
        mentions |= scope.behind(mentions) | changes
        work: Work | None = None
        with suppress(NotUnderstood):
            work = self._besides(node)
        made: list[Statement] = []
        if work is not None:
            made += [self._computed(value, span) for value in work.values]
            if work.unpriced or changes:
                reason = f"{work.unpriced or 'what this changes'} {NO_PRICE}"
                steps = self.reading.steps(node)
                made.append(Opaque(reason, mentions, span, steps=steps, changes=changes))
        else:
            reason = self._reason(node, span, refused)
            made.append(Unknown(reason, mentions, span, steps=self.reading.steps(node)))
        self._rebound(node, span, found, plain=work is not None)
        if work is not None and self.loops_around:
            # each iteration may find another number
            made += (
                ScalarBind(name, Scalar(name, scope.numbers[name]), span)
                for name in sorted(assigned_names(node) & scope.numbers.keys())
            )
        match node:
            case cst.Assign([cst.AssignTarget(cst.Name(value=name))]) if name in scope.growing:
                with suppress(NotUnderstood):
                    made += joined(name, None, span, scope)
        if isinstance(node, cst.Return):
            made.append(Return(scope.arrays_among(names_in(node)), span))
        self._note_implied(names_in(node), made)
        if len(made) == 1 or isinstance(node, cst.Expr):
            # each value that a call is given is one by itself
            return made
        return (Unrolled(tuple(made), span),) if made else ()

    def _expanded(self, call: cst.Call) -> cst.BaseExpression | None:
        """Read a call of a function of the file as what the function does, where that is read."""
        if call not in self.expanded:
            self.expanded[call] = self._in_its_place(call)
        return self.expanded[call]

    def _in_its_place(self, call: cst.Call) -> cst.BaseExpression | None:
        scope = self.scope
        found = self._called(call)
        name = None if found is None else found[0][0].name.value
        if found is None or name in scope.calls or len(scope.calls) == DEEPEST_CALLS:
            return None
        function, whole, objects = found
        body = self.bodies.of(function, objects, scope.seen.around)
        given = None if body is None else given_to(body, whole)
        if body is None or given is None:
            return None
        moment, pending = scope.moment(), list(scope.pending)
        arrays, around, known = {*scope.locals}, scope.calls, self.expanded
        made: list[Statement] = []
        try:
            scope.calls, self.expanded = (*around, function[0].name.value), {}
            for parameter, value in given.items():
                if parameter not in objects.values():
                    made += self._passed(parameter, value, scope.span(call))
            made += self._parts(body.statements, False)
            certain = not made or self.reads is None or not is_conditional(call, self.reads)
            # which array a name is that a function binds more than once, nobody follows
            followed = scope.views.keys() | scope.written_out.keys()
            certain &= not any(one in followed or scope.has_array(one) for one in body.again)
            if certain and not any(map(_is_unread, walk(tuple(made)))):
                scope.pending += made
                self._evaluated(call, body.result)
                return body.result
        except NotUnderstood:
            pass
        finally:
            scope.calls, self.expanded = around, known
        scope.restore(moment)
        scope.pending = pending
        for other in scope.locals.keys() - arrays:
            del scope.locals[other]
        return None

    def _called(self, call: cst.Call) -> tuple[Function, cst.Call, dict[str, str]] | None:
        """Return the function that a call surely calls, all it is given, and which are objects.

        Methods are given what they are called on. What is given objects binds no attributes.
        """
        scope, whole = self.scope, call
        function = function_of(call.func, self.bodies.scopes, self.functions)
        match call:
            case cst.Call(cst.Name("len"), [one]) if not scope.not_builtin("len"):
                call = cst.Call(cst.Attribute(one.value, cst.Name("__len__")))
            case cst.Call(cst.Attribute(one)):
                whole = call.with_changes(args=[cst.Arg(one), *call.args])
            case _ if function is None or not any(scope.is_object(n) for n in names_in(call)):
                return None if function is None else (function, whole, {})
        method = (dotted(call.func) or "").rpartition(".")[2]
        named = self.functions.get(method.removesuffix(PROPERTY), ())
        tree, names = as_python(call), self.reading.names if named else None
        found = names.file.called(tree, names) if names and isinstance(tree, ast.Call) else None
        done = None if names is None or found is None else names.file.done(found[0])
        if found is None or done is None or done.changes.wholly:
            return None
        texts = {name: ast.unparse(value) for name, value in found[1].items()}
        objects = {name: text for name, text in texts.items() if scope.is_object(text)}
        lines = {scope.span(one[0].name).start_line: one for one in named}
        # what only is static may be decorated where what it does is known
        return lines[found[0].lineno], call if found[0].decorator_list else whole, objects

    def _evaluated(self, call: cst.Call, result: cst.BaseExpression) -> None:
        """Note what a call returns, before another one gives its parameters other values."""
        scope, pending = self.scope, list(self.scope.pending)
        scope.results.pop(call, None)
        try:
            scope.results[call] = value_of(result, scope)
        except NotUnderstood:
            scope.pending = pending

    def _passed(self, name: str, node: cst.BaseExpression, span: Span) -> Sequence[Statement]:
        """Let a parameter of a function be what a call gives it."""
        scope = self.scope
        if isinstance(node, cst.Name) and (node.value in scope.things or node.value == "None"):
            scope.bind_thing(name, scope.kind_of(node))
            return ()
        number = known(node, scope)
        scope.written_out.pop(name, None)
        if isinstance(number, cst.SimpleString):
            scope.written_out[name] = number
            return ()
        value = value_of(node, scope)
        if isinstance(value, Read) and scope.type_of(value).extents:
            scope.bind_view(name, value)
            return ()
        made = self._denoting(name, value, node, span)
        if isinstance(number, Expr):
            scope.scalars[name] = number
        return made

    def _computed(self, value: Value, span: Span) -> Statement:
        """Return the statement that computes a value which nothing holds."""
        found = self.scope.type_of(value)
        if not found.extents:
            return ScalarBind(CONDITION, value, span)
        name = f"<{span.start_line}:{span.start_column}:{len(self.scope.locals)}>"
        self.scope.locals[name] = found
        return Bind(name, value, span)

    def _reason(self, node: cst.CSTNode, span: Span, refused: NotUnderstood) -> str:
        """Return why a statement is not understood, or since which other one."""
        root = self.causes.get(refused.name) if isinstance(refused, NotKnown) else None
        reason = refused.reason
        if root is not None and root[0] != span.start_line:
            reason += f", since line {root[0]} is not understood: {root[1]}"
        # a loop may be read twice, and then for what followed from the first reason
        reason = self.reasons.setdefault(span, reason)
        for name in assigned_names(node):
            self.causes.setdefault(name, root or (span.start_line, reason))
        return reason

    def _rebound(self, node: cst.CSTNode, span: Span, found: Effects, *, plain: bool) -> None:
        """Let names that a statement binds be what a run showed, or what they are seen to be."""
        scope = self.scope
        for name in assigned_names(node):
            scope.forget(name)
        foreign = self._foreign(found)
        lost = {n for n in foreign if not scope.has_array(n) or n in scope.seen.unsettled}
        scope.renew(sorted(lost), span.start_line)
        self._bound_as_seen(assigned_names(node), node, span, plain=plain)
        self._related(found, assigned_names(node))
        if isinstance(node, cst.Assign | cst.AnnAssign):
            names = assigned_names(node)
            pairs = (product(link & names, link - names) for link in found.links)
            scope.linked.update(map(frozenset, chain.from_iterable(pairs)))

    def _effects(self, node: cst.CSTNode) -> Effects:
        """Return what a statement may change, and what leads to the same memory after it."""
        return self.reading.effects(node)

    def _related(self, found: Effects, bound: frozenset[str] = frozenset()) -> None:
        """Note what may lead to the same memory from here on, and what others may keep."""
        scope = self.scope
        for link in found.links:
            scope.relate(link)
        if found.reaches:
            scope.relate(bound | scope.kept)
            scope.kept |= found.changed

    def _changes(self, found: Effects) -> frozenset[str]:
        """Return the arrays that a statement may change, also those that it does not name."""
        scope, changes = self.scope, found.reached | self._foreign(found)
        if found.reaches:
            # also whoever called this may have kept what it gave
            changes |= scope.kept | scope.declared.keys()
        return scope.arrays_among(changes)

    def _foreign(self, found: Effects) -> frozenset[str]:
        """Return the attributes and outer names that a statement may change by what it calls."""
        around = self.scope.seen.around - self.scope.seen.fixed
        if found.reaches:
            return around.union(name.partition(".")[0] for name in self.scope.seen.around)
        return found.bound & around | {n for n in around if n.partition(".")[0] in found.reached}

    def _besides(self, node: cst.CSTNode) -> Work:
        """Return what a statement takes that does no work on arrays but what it needs as values.

        Raises
        ------
        NotUnderstood
            It is none.
        """
        scope = self.scope
        names = assigned_names(node)
        shown = [scope.seen.bound(name, scope.span(node)) for name in names]
        numbers = bool(names) and all(isinstance(one, SeenNumber) for one in shown)
        match node:
            case cst.Expr(value=value) | cst.Return(value=cst.BaseExpression() as value):
                parts = [value]
            case cst.Assign(targets=targets, value=value):
                parts = [value]
                for target in targets:
                    parts += _holders(target.target)
            case cst.AugAssign(target=target, value=value):
                parts = [value, target]
                known = scope.things.keys() | scope.numbers.keys()
                if isinstance(target, cst.Name) and not numbers and target.value not in known:
                    total = cst.BinaryOperation(target, cst.Add(), value)
                    self.bodies.originals[total] = target
                    parts.append(total)
            case cst.AnnAssign(target=target, value=cst.BaseExpression() as value):
                parts = [value, *_holders(target)]
            case _:
                raise NotUnderstood("this kind of statement is not understood")
        if names & scope.seen.around:
            raise NotUnderstood("an attribute that changes")
        if names and not isinstance(parts[0], cst.Tuple | cst.List):
            with suppress(NotUnderstood):
                if scope.type_of(value_of(parts[0], scope)).extents:
                    parts = []
        if not parts:
            raise NotUnderstood("a name of an array that is not followed")
        made = Work()
        for part in parts:
            stored = isinstance(part, cst.Subscript) and part is not parts[0]
            if stored and not self.reading.roots(part) <= scope.things.keys():
                raise NotUnderstood("a store to something that is not known to be an array")
            one = work_of(part, scope, of_numbers=numbers)
            made.values += one.values
            made.unpriced = made.unpriced or one.unpriced
        return made

    def _bound_as_seen(
        self, names: Iterable[str], node: cst.CSTNode, span: Span, *, plain: bool = False
    ) -> None:
        """Let what a statement binds be what a run showed, or no array where it surely is none."""
        scope = self.scope
        simple = isinstance(node, cst.BaseSmallStatement | cst.For)
        once = simple and not (self.loops_around or self.branches or self.copies)
        for name in sorted(names):
            what = scope.seen.bound(name, span)
            alone = once and scope.times_bound(name) == 1
            # what a loop or a branch bound may be something else where it did not run
            if simple and scope.bind_seen(name, what, once=alone):
                continue
            scope.forget(name)
            scope.lost.add(name)
            value = _value_for(name, node)
            kind = scope.kind_of(value)
            own = alone and kind in _SIZED and name not in scope.kept
            if own and self.source is not None and is_kept(name, self.source):
                # how long it is, no statement changes
                scope.lengths[name] = sym(f"{name}.len")
                scope.later_texts[f"{name}.len"] = f"len({name})"
            # what is sorted or written out is no array, nor holds one
            made = value.func if isinstance(value, cst.Call) else None
            made_by = made.value if isinstance(made, cst.Name) else ""
            plain = plain or kind in ("function", "str") or (made_by, kind) == ("sorted", "list")
            kind = kind if plain else OBJECT
            if isinstance(what, str):
                self.causes[name] = (span.start_line, f"`{name}` came as {what}")
                kind = what if what in KINDS else kind
            if kind != OBJECT:
                scope.bind_thing(name, kind)

    def _note_implied(self, names: frozenset[str], made: Sequence[Statement]) -> None:
        scope, said = self.scope, frozenset[str]().union(*map(mentioned, made))
        behind = {scope.views[name].array for name in names & scope.views.keys()}
        scope.implied |= {name for name in names | behind if scope.has_array(name)} - said


def _is_unread(statement: Statement) -> bool:
    """Return whether a statement is not read, or changes what only is known to be changed."""
    if isinstance(statement, Opaque):
        return bool(statement.changes)
    return isinstance(statement, Unknown)


def _holders(target: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Return what an assignment stores into, and the places in it; none for names."""
    if isinstance(target, cst.Tuple | cst.List):
        return [one for element in target.elements for one in _holders(element.value)]
    if isinstance(target, cst.Attribute):
        return [target.value]
    return [target] if isinstance(target, cst.Subscript) else []


def _value_for(name: str, node: cst.CSTNode) -> cst.BaseExpression:
    """Return the expression that a statement gives a single name; a call of nothing for others."""
    match node:
        case cst.Assign(targets=targets, value=value) if all(
            isinstance(one.target, cst.Name) for one in targets
        ):
            return value
    return cst.Call(cst.Name("object"))
