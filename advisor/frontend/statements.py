"""Statements of a kernel's body, as statements of the intermediate form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any

import libcst as cst

from advisor.frontend.accumulations import (
    Combination,
    accumulated,
    combination,
    is_by_element,
    only_statement,
    passed_on,
    scattered_at_once,
    search,
    searches,
    stored_totals,
)
from advisor.frontend.arrays import value_of
from advisor.frontend.bindings import (
    assigned_names,
    names_in,
    resolve,
    target_names,
)
from advisor.frontend.declarations import Declarations
from advisor.frontend.directives import Pragmas, spoken_of
from advisor.frontend.effects import Effects, Reading, effects_of, joined, roots
from advisor.frontend.indices import (
    MOST_ITERATIONS,
    Known,
    is_prange,
    known,
    pairs,
    range_of,
)
from advisor.frontend.inlined import DEEPEST_CALLS, Bodies, given_to
from advisor.frontend.lists import begun, grown, room, row_of
from advisor.frontend.others import Work, kind_of, work_of
from advisor.frontend.scope import KINDS, OBJECT, Scope, looks_up, part_of
from advisor.frontend.simple_statements import LEFT_EARLY, SimpleStatements
from advisor.frontend.stores import (
    CONDITION,
    bind_item,
    chosen_stores,
    evaluated,
    extreme,
    mask_of,
    truth,
)
from advisor.frontend.trees import NotKnown, NotUnderstood, nodes_in, parts_of
from advisor.ir.dependence import least_index
from advisor.ir.nests import is_of_elements
from advisor.ir.shapes import ArrayType, whole
from advisor.ir.statements import (
    Bind,
    Choice,
    Loop,
    Opaque,
    ScalarBind,
    Stated,
    Statement,
    Threads,
    Unknown,
    Unrolled,
    mentioned,
    walk,
)
from advisor.ir.values import Elementwise, Point, Read, Scalar, Value, reads
from advisor.numpy_table import PYTHON_INTEGER, strong
from advisor.observed import SeenNumber
from advisor.source import Span
from costdb.expr import Expr, minimum, num, sym
from costdb.expr.functions import chance
from costdb.expr.functions import trips as number_of_trips

DEEPEST_LOOPS = 8
"""Loops within loops that are still read: each may be read twice for each time around it."""

UNTOLD = "how often the loop runs is not known: `# advise: trip COUNT` above it says so"

Item = tuple[str, Read | Scalar, Expr]
"""A name that goes through an array or a list of numbers, which, and how long that is."""


class Body(SimpleStatements):
    """Reads the statements of one kernel in order, keeping what names denote."""

    def __init__(
        self,
        scope: Scope,
        declarations: Declarations,
        pragmas: Pragmas,
        threads: Callable[[int], Threads],
        reading: Reading,
    ) -> None:
        super().__init__(scope, declarations)
        self.reading = reading
        self.bodies = Bodies(reading.functions, reading.scopes)
        # the statement that is read, its calls of functions of the file, and what these give
        self.reads: cst.CSTNode | None = None
        self.expanded: dict[cst.Call, cst.BaseExpression | None] = {}
        originals, span_of = self.bodies.originals, scope.span
        scope.span = lambda node: span_of(originals.get(node, node))
        scope.expanded, scope.elsewhere = self._expanded, originals
        self.pragmas = pragmas
        # of a loop over prange, by its line
        self.threads = threads
        self.loops_around = 0
        # how often statements are read for loops over written-out values; 0 outside of any
        self.copies = 0
        self.reasons: dict[Span, str] = {}
        # for what a name no longer denotes: the line that is not understood, and why
        self.causes: dict[str, tuple[int, str]] = {}
        self.starts: dict[Span, dict[str, Scalar]] = {}

    def block(self, node: cst.BaseSuite, *, of_loop: bool = False) -> tuple[Statement, ...]:
        """Return the statements of a suite; `of_loop`, of what a loop repeats."""
        if self.source is None:
            self.source = node
        return self._parts(node.body, of_loop)

    def _parts(self, parts: Sequence[cst.CSTNode], of_loop: bool) -> tuple[Statement, ...]:
        found: list[Statement] = []
        for position, part in enumerate(parts):
            if of_loop and isinstance(part, cst.If) and _ends(part):
                skipping = self._skipping(part, parts[position + 1 :])
                if skipping is not None:
                    return (*found, *skipping)
            rest = parts[position + 1 :]
            filled = None if self.source is None else begun(part, rest, self.source)
            row = row_of(part, rest, self.scope)
            if row is not None:
                self.scope.rows[row[0]] = row[1]
                continue
            if filled is not None:
                self.scope.lists[filled] = grown(filled, rest, self.scope)
                inner = self._parts(rest, of_loop)
                return (*found, *room(filled, self.scope.span(part), self.scope), *inner)
            if isinstance(part, cst.SimpleStatementLine):
                span = self.scope.span(part)
                stated = spoken_of(self.pragmas.costs_us, range(span.start_line, span.end_line + 1))
                if stated is not None:
                    found.append(self._stated(part, stated))
                    continue
                for small in part.body:
                    found.extend(self._guarded(small, self._accounted))
            elif isinstance(part, cst.BaseSmallStatement):
                found.extend(self._guarded(part, self._accounted))
            elif isinstance(part, cst.BaseCompoundStatement):
                found.extend(self._guarded(part, self._compound))
        return tuple(found)

    def _skipping(self, node: cst.If, rest: Sequence[cst.CSTNode]) -> Sequence[Statement] | None:
        """Read ``if ...: continue`` and what follows it in the loop; None where it is unknown."""
        lines = self._header(node)
        if spoken_of(self.pragmas.costs_us, lines) is not None:
            return None
        try:
            return self._if(node, lines, self.scope.span(node), rest)
        except NotUnderstood:
            return None

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
        mentions |= scope.behind(mentions) | changes
        work: Work | None = None
        with suppress(NotUnderstood):
            work = self._besides(node)
        made: list[Statement] = []
        if work is not None:
            made += [self._computed(value, span) for value in work.values]
            if work.unpriced or changes:
                reason = f"{work.unpriced or 'what this changes'} has no price"
                made.append(Opaque(reason, mentions, span, changes=changes))
        else:
            made.append(Unknown(self._reason(node, span, refused), mentions, span))
        self._rebound(node, span, found, plain=work is not None)
        if work is not None and self.loops_around:
            # each iteration may find another number
            made += (
                ScalarBind(name, Scalar(name, scope.numbers[name]), span)
                for name in sorted(assigned_names(node) & scope.numbers.keys())
            )
        self._note_implied(names_in(node), made)
        return made if len(made) == 1 else (Unrolled(tuple(made), span),) if made else ()

    def _expanded(self, call: cst.Call) -> cst.BaseExpression | None:
        """Read a call of a function of the file as what the function does, where that is read."""
        if call not in self.expanded:
            self.expanded[call] = self._in_its_place(call)
        return self.expanded[call]

    def _in_its_place(self, call: cst.Call) -> cst.BaseExpression | None:
        scope = self.scope
        name = self.reading.functions.named(call.func, self.reading.scopes)
        if name is None or name in scope.calls or len(scope.calls) == DEEPEST_CALLS:
            return None
        body = self.bodies.of(name)
        given = None if body is None else given_to(body, call)
        if body is None or given is None:
            return None
        moment, pending = scope.moment(), list(scope.pending)
        arrays, around, known = {*scope.locals}, scope.calls, self.expanded
        made: list[Statement] = []
        try:
            for parameter, value in given.items():
                made += self._passed(parameter, value, scope.span(call))
            scope.calls, self.expanded = (*around, name), {}
            made += self._parts(body.statements, False)
            certain = not made or self.reads is None or not _is_conditional(call, self.reads)
            if certain and not any(type(one) is Unknown for one in walk(tuple(made))):
                scope.pending += made
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

    def _passed(self, name: str, node: cst.BaseExpression, span: Span) -> Sequence[Statement]:
        """Let a parameter of a function be what a call gives it."""
        scope = self.scope
        if isinstance(node, cst.Name) and (node.value in scope.things or node.value == "None"):
            scope.bind_thing(name, kind_of(node, scope))
            return ()
        number = known(node, scope)
        value = value_of(node, scope)
        if isinstance(value, Read) and scope.type_of(value).extents:
            scope.bind_view(name, value)
            return ()
        found = scope.type_of(value)
        if found.extents:
            scope.bind_local(name, found)
            return (Bind(name, value, span),)
        if not isinstance(value, Scalar) and not (scope.by_element and is_of_elements(value)):
            scope.bind_number(name, found.dtype)
            return (ScalarBind(name, value, span),)
        scope.bind_element(name, value)
        if isinstance(number, Expr):
            scope.scalars[name] = number
        return ()

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

    def _rebound(
        self,
        node: cst.CSTNode,
        span: Span,
        found: Effects,
        *,
        plain: bool,
    ) -> None:
        """Let names that a statement binds be what a run showed, or what they are seen to be."""
        scope = self.scope
        for name in assigned_names(node):
            scope.forget(name)
        for name in self._foreign(found):
            if not scope.has_array(name) or name in scope.seen.unsettled:
                scope.forget(name)
        self._bound_as_seen(assigned_names(node), node, span, plain=plain)
        for link in found.links:
            scope.relate(link)
        if found.reaches and scope.seen.around:
            scope.relate(names_in(node))

    def _effects(self, node: cst.CSTNode) -> Effects:
        """Return what a statement may change, and what leads to the same memory after it."""
        return effects_of(node, self.reading)

    def _changes(self, found: Effects) -> frozenset[str]:
        """Return the arrays that a statement may change, also those that it does not name."""
        return self.scope.arrays_among(_reached(found) | self._foreign(found))

    def _foreign(self, found: Effects) -> frozenset[str]:
        """Return the attributes and outer names that a statement may change by what it calls."""
        around, reached = self.scope.seen.around, _reached(found)
        if found.reaches:
            return around.union(name.partition(".")[0] for name in around)
        return frozenset(name for name in around if name.partition(".")[0] in reached)

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
                if isinstance(target, cst.Name) and target.value not in scope.things:
                    known = numbers or target.value in scope.numbers
                    parts += [] if known else [cst.BinaryOperation(target, cst.Add(), value)]
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
            if stored and not roots(part, self.reading) <= scope.things.keys():
                raise NotUnderstood("a store to something that is not known to be an array")
            one = work_of(part, scope, self.reading, of_numbers=numbers)
            made.values += one.values
            made.unpriced = made.unpriced or one.unpriced
        return made

    def _bound_as_seen(
        self,
        names: Iterable[str],
        node: cst.CSTNode,
        span: Span,
        *,
        plain: bool = False,
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
            kind = kind_of(_value_for(name, node), scope) if plain else OBJECT
            if isinstance(what, str):
                self.causes[name] = (span.start_line, f"`{name}` came as {what}")
                kind = what if what in KINDS else kind
            if kind != OBJECT:
                scope.bind_thing(name, kind)

    def _stated(self, node: cst.CSTNode, microseconds: Expr) -> Stated:
        mentions = self.scope.behind(names_in(node))
        for name in assigned_names(node):
            self.scope.forget(name)
        return Stated(microseconds, mentions, self.scope.span(node))

    def _accounted(self, node: cst.BaseSmallStatement) -> Sequence[Statement]:
        """Read a simple statement, and note the arrays it needs without saying so."""
        names = names_in(node)
        self._refuse_attributes(node)
        found = self._combination(node)
        made = self.small(node) if found is None else self.combined(found, self.scope.span(node))
        self._note_implied(names, (*self.scope.pending, *made))
        return made

    def _refuse_attributes(self, node: cst.CSTNode) -> None:
        """Refuse to follow an attribute through a loop, or where no run showed what is bound."""
        scope = self.scope
        for name in assigned_names(node):
            in_place = isinstance(node, cst.AugAssign) and scope.is_array(name)
            if name not in scope.seen.around or in_place:
                continue
            if self.loops_around or self.copies or not isinstance(node, cst.BaseSmallStatement):
                raise NotUnderstood(f"`{name}` changes in a loop")
            if scope.seen.bound(name, scope.span(node)) is None:
                raise NotUnderstood(f"no run showed what `{name}` becomes")

    def _combination(self, node: cst.CSTNode) -> Combination | None:
        """Return how a statement goes on with a number that the loops around accumulate."""
        if not self.scope.accumulating and not self.scope.passed_on:
            return None
        found = combination(node, self._function)
        names = self.scope.accumulating | self.scope.passed_on
        return found if found is not None and found.name in names else None

    def _function(self, node: cst.BaseExpression) -> str | None:
        """Return the full name of a function, also of a builtin one."""
        if isinstance(node, cst.Name) and not self.scope.not_builtin(node.value):
            return f"builtins.{node.value}"
        return resolve(node, self.scope.imports)

    def _note_implied(self, names: frozenset[str], made: Sequence[Statement]) -> None:
        scope, said = self.scope, frozenset[str]().union(*map(mentioned, made))
        behind = {scope.views[name].array for name in names & scope.views.keys()}
        scope.implied |= {name for name in names | behind if scope.has_array(name)} - said

    def _compound(self, node: cst.BaseCompoundStatement) -> Sequence[Statement]:
        lines = self._header(node)
        stated = spoken_of(self.pragmas.costs_us, lines)
        if stated is not None:
            return (self._stated(node, stated),)
        span = self.scope.span(node)
        match node:
            case cst.For():
                return self._for(node, lines, span)
            case cst.While():
                return self._while(node, lines, span)
            case cst.If():
                return self._if(node, lines, span)
            case cst.With():
                return self._with(node, span)
            case cst.Try():
                return self._try(node, span)
            case cst.FunctionDef(name=name) | cst.ClassDef(name=name):
                self.scope.bind_thing(name.value, "function")
                return ()
        raise NotUnderstood("this kind of statement is not understood")

    def _try(self, node: cst.Try, span: Span) -> Sequence[Statement]:
        """Read what may be left anywhere: nothing is moved within it, or across its ends."""
        scope = self.scope
        before = scope.moment()
        self.branches += 1
        made = list(self.block(node.body))
        scope.either(before, scope.moment())
        for handler in node.handlers:
            start = scope.moment()
            if handler.name is not None:
                for name in target_names(handler.name.name):
                    scope.forget(name)
            then = self.block(handler.body)
            scope.either(start, scope.moment())
            made.append(Choice(chance(scope.span(handler).start_line), then, (), span))
        self.branches -= 1
        for part in (node.orelse, node.finalbody):
            made += () if part is None else self.block(part.body)
        return (Unrolled(tuple(made), span),)

    def _with(self, node: cst.With, span: Span) -> Sequence[Statement]:
        """Read what a ``with`` holds; from ``with np.errstate(...)`` nothing is to be moved."""
        if node.asynchronous is not None:
            raise NotUnderstood("this kind of statement is not understood")
        call = node.items[0].item
        full = resolve(call.func, self.scope.imports) if isinstance(call, cst.Call) else None
        if full != "numpy.errstate" or len(node.items) != 1 or not isinstance(call, cst.Call):
            entered = cst.With(node.items, cst.SimpleStatementSuite([cst.Pass()]))
            changes = self._changes(self._effects(entered))
            for item in node.items:
                for name in () if item.asname is None else target_names(item.asname.name):
                    self.scope.forget(name)
            mentions = self.scope.behind(names_in(entered)) | changes
            entering = Opaque("what `with` does has no price", mentions, span, changes=changes)
            return (Unrolled((entering, *self.block(node.body), entering), span),)
        ignored = all(
            isinstance(one.value, cst.SimpleString) and one.value.evaluated_value == "ignore"
            for one in call.args
        )
        body = self.block(node.body)
        if not ignored:
            # where errors are raised, it matters which of them come first
            return (Unrolled(body, span),)
        arrays = frozenset(self.scope.declared.keys() | self.scope.locals.keys())
        edge = Stated(num(0), arrays, span)
        return (edge, *body, edge)

    def _header(self, node: cst.BaseCompoundStatement) -> range:
        """Return the lines from the first of a compound statement to the one with its colon."""
        first = self.scope.span(node).start_line
        if not isinstance(node, cst.For | cst.While | cst.If):
            return range(first, first + 1)
        inner = node.body.header if isinstance(node.body, cst.IndentedBlock) else node.body
        return range(first, self.scope.span(inner).start_line + 1)

    def _for(self, node: cst.For, lines: range, span: Span) -> Sequence[Statement]:
        trips = spoken_of(self.pragmas.trips, lines)
        if node.orelse is not None or node.asynchronous is not None:
            raise NotUnderstood("a for loop with else, or an asynchronous one")
        left = trips is None and _may_be_left(node.body)
        made = self._for_each(node, trips, span)
        if left:
            # its bounds say how often it runs at most
            return tuple(_stated_trips(one) if isinstance(one, Loop) else one for one in made)
        return made

    def _for_each(self, node: cst.For, trips: Expr | None, span: Span) -> Sequence[Statement]:
        if self.scope.seen.around.intersection(target_names(node.target)):
            raise NotUnderstood("a loop whose index is an attribute")
        self._note_implied(names_in(node.iter), ())
        variable = node.target.value if isinstance(node.target, cst.Name) else None
        bounds = range_of(node.iter, self.scope)
        if trips is None:
            items = self._written_out(node, bounds)
            if items is not None:
                return self._unrolled(node, items, span)
        if bounds is not None and bounds[2] < 0 and trips is not None:
            raise NotUnderstood("a loop that counts down, with a stated number of trips")
        if bounds is not None and variable is not None:
            made = self._counting(node, variable, bounds, trips, span)
            if is_prange(node.iter, self.scope):
                made = replace(made, threads=self.threads(span.start_line))
            return (scattered_at_once(made) if trips is None else _stated_trips(made),)
        if trips is None:
            each = self._each(node)
            if each is not None:
                counter, extent, named = each
                made = self._counting(node, counter, (num(0), extent, 1), None, span, named)
                return (scattered_at_once(made),)
        work = work_of(node.iter, self.scope, self.reading)
        self.scope.relate({*target_names(node.target)} | roots(node.iter, self.reading))
        needed = [self._computed(value, span) for value in work.values]
        return (*needed, *self._untold(node, trips, span))

    def _untold(
        self, node: cst.For | cst.While, trips: Expr | None, span: Span
    ) -> Sequence[Statement]:
        """Read a loop of which the source does not show how often it runs."""
        times = number_of_trips(span.start_line) if trips is None else trips
        loop = _stated_trips(self._looped(node, None, num(0), times, 1, span))
        return (loop,) if trips is not None else (Opaque(UNTOLD, frozenset(), span), loop)

    def _each(self, node: cst.For) -> tuple[str | None, Expr, Sequence[Item]] | None:
        """Read ``for x in a[1:]``, ``enumerate(a)`` and ``zip(a, b)`` over arrays.

        Returns
        -------
        str or None
            The name of the index, where there is one.
        Expr
            How many elements or rows there are.
        sequence of Item
            Names, and of what they denote one part after the other.
        """
        scope, counter = self.scope, None
        target: cst.BaseExpression = node.target
        given: cst.BaseExpression = node.iter
        match given, target:
            case (
                cst.Call(func=cst.Name(value="enumerate"), args=[cst.Arg(array, None, star="")]),
                cst.Tuple(elements=[cst.Element(cst.Name(value=index)), cst.Element(part)]),
            ) if not scope.not_builtin("enumerate"):
                counter, given, target = str(index), array, part
        items = self._items(target, given)
        if items is None:
            return None
        named = {counter, *(name for name, _, _ in items)}
        named |= {view.array for _, view, _ in items if isinstance(view, Read)}
        if assigned_names(node.body) & (named | names_in(node.iter)):
            return None
        # zip ends with the shortest
        lengths = tuple(dict.fromkeys(length for _, _, length in items))
        return counter, minimum(*lengths) if len(lengths) > 1 else lengths[0], items

    def _items(
        self, target: cst.BaseExpression, given: cst.BaseExpression
    ) -> Sequence[Item] | None:
        """Return the names that go through arrays side by side; None where anything else is."""
        match given, target:
            case (
                cst.Call(func=cst.Name(value="zip"), args=[_, *_] as arguments),
                cst.Tuple(elements=elements),
            ) if not self.scope.not_builtin("zip"):
                if any(a.keyword or a.star for a in arguments) or len(arguments) != len(elements):
                    return None
                parts = [
                    self._items(element.value, argument.value)
                    for element, argument in zip(elements, arguments, strict=True)
                ]
                known = [part for part in parts if part is not None]
                return tuple(chain.from_iterable(known)) if len(known) == len(parts) else None
            case cst.Name(value=numbers), cst.Name(value=name) if numbers in self.scope.listed:
                length, dtype = self.scope.listed[numbers]
                return [(name, Scalar(numbers, dtype), length)]
            case cst.Name() | cst.Subscript(), cst.Name(value=name):
                try:
                    value = value_of(given, self.scope)
                except NotUnderstood:
                    return None
                if isinstance(value, Read) and (extents := self.scope.type_of(value).extents):
                    return [(name, value, extents[0])]
        return None

    def _written_out(
        self, node: cst.For, bounds: tuple[Expr, Expr, int] | None
    ) -> tuple[Known, ...] | None:
        """Return the values that a loop is read for one by one; None for any other loop."""
        if bounds is not None and not looks_up(node, self.scope):
            return None
        found = known(node.iter, self.scope)
        return found if isinstance(found, tuple) else None

    def _unrolled(self, node: cst.For, items: Sequence[Known], span: Span) -> Sequence[Statement]:
        """Read the body of a loop once for each of the values that it goes through."""
        if _may_be_left(node.body):
            raise NotUnderstood(LEFT_EARLY)
        scope, around = self.scope, self.copies
        names, changed = frozenset(target_names(node.target)), assigned_names(node.body)
        if (names | names_in(node.iter)) & changed:
            raise NotUnderstood("a loop that changes what it goes through")
        copies = max(1, around) * len(items)
        if copies > MOST_ITERATIONS:
            raise NotUnderstood(
                f"loops over more than {MOST_ITERATIONS} written-out values are not followed"
            )
        made: list[Statement] = []
        self.copies = max(1, copies)
        try:
            for item in items:
                for name, value in pairs(node.target, item, scope):
                    bind_item(name, value, scope)
                made.extend(self.block(node.body, of_loop=True))
        finally:
            self.copies = around
            for name in names:
                scope.written_out.pop(name, None)
        return (Unrolled(tuple(made), span),) if made else ()

    def _counting(
        self,
        node: cst.For,
        variable: str | None,
        bounds: tuple[Expr, Expr, int],
        trips: Expr | None,
        span: Span,
        items: Sequence[Item] = (),
    ) -> Loop:
        """Read a loop over a range; one that counts down, as one over how far it has come."""
        scope = self.scope
        symbol = scope.index(variable, span.start_line)
        low, high, step = bounds
        index: Expr | None = None
        if step < 0:
            low, high, step, index = num(0), low - high, 1, low - sym(symbol)
        if trips is not None:
            high = low + trips * step
        else:
            scope.maxima[symbol], scope.starts[symbol] = high - 1, low
        made = self._looped(node, variable, low, high, step, span, index, items)
        scope.maxima.pop(symbol, None)
        scope.starts.pop(symbol, None)
        if index is not None:
            # the index is another number than what the loop counts
            name = scope.loop_texts.pop(symbol, None)
            scope.counted_down += [] if name is None else [(name, index)]
        return made

    def _while(self, node: cst.While, lines: range, span: Span) -> Sequence[Statement]:
        trips = spoken_of(self.pragmas.trips, lines)
        if node.orelse is not None:
            raise NotUnderstood("a while loop with else")
        return self._untold(node, trips, span)

    def _looped(
        self,
        node: cst.For | cst.While,
        variable: str | None,
        low: Expr,
        high: Expr,
        step: int,
        span: Span,
        index: Expr | None = None,
        items: Sequence[Item] = (),
    ) -> Loop:
        if self.loops_around == DEEPEST_LOOPS:
            raise NotUnderstood(f"more than {DEEPEST_LOOPS} loops within one another")
        scope = self.scope
        symbol = scope.index(variable, span.start_line)
        # what any function may change, one that is called may
        foreign = self._foreign(self._effects(node))
        foreign -= scope.arrays_among(scope.seen.around - scope.seen.unsettled)
        changed = assigned_names(node) | foreign
        before, strided = scope.moment(), set(scope.strided)
        varying, scope.varying = scope.varying, scope.varying | changed
        around, started = set(scope.accumulating), dict(scope.started)
        by_element, scope.by_element = scope.by_element, is_by_element(node)
        for name in accumulated(node, self._function) & scope.elements.keys():
            # what it holds when the loop begins was computed from elements
            scope.bind_number(name, strong(scope.type_of(scope.elements[name]).dtype))
        totals = {
            name: scope.numbers.get(name, PYTHON_INTEGER)
            for name in accumulated(node, self._function)
            if name in scope.numbers or name in scope.scalars
        }
        scope.accumulating |= totals.keys()
        passing, scope.passed_on = scope.passed_on, self._passed_on(node)
        starts = tuple((name, self._start(name)) for name in sorted(scope.passed_on))
        passed = {name: strong(scope.type_of(start).dtype) for name, start in starts}
        self.starts[span] = {n: started[n] for n in sorted(totals) if n in started}
        self.loops_around += 1

        carried = {n: scope.numbers[n] for n in changed & scope.numbers.keys() - totals.keys()}
        # a whole number that changes is one within the loop; what it is after that nobody follows
        counted = (changed & scope.scalars.keys()) - totals.keys() - _variables(node)
        carried |= dict.fromkeys(counted, PYTHON_INTEGER)

        known = symbol in scope.maxima
        scope.running.append((symbol, low, high, step) if known else None)

        def once_around() -> tuple[Statement, ...]:
            return self._once_around(
                node, variable, symbol, low, changed, {**carried, **totals}, index, items, passed
            )

        kin = dict(scope.kin)
        # what only the loop makes arrays of is none when it begins
        unknown = {name for name in changed if not scope.has_array(name)}

        def settled() -> bool:
            types = {**dict.fromkeys(scope.scalars, PYTHON_INTEGER), **scope.numbers}
            same = all(types.get(name) == dtype for name, dtype in carried.items())
            same = same and scope.kin == kin
            return same and scope.lost <= before.lost | unknown and scope.strided == strided

        def again() -> tuple[Statement, ...]:
            scope.restore(before)
            scope.lost |= unknown
            kin.update(scope.kin)
            return once_around()

        body = once_around()
        lost = scope.lost - before.lost - unknown
        if not settled() and lost <= scope.renamed and scope.strided == strided:
            # names that were handed over are bound anew, or a later iteration does not know them;
            # a number has the type that iterations give it
            found = scope.numbers.keys() | scope.scalars.keys()
            carried = {n: scope.numbers.get(n, carried[n]) for n in carried if n in found}
            unknown |= lost
            body = again()
        if not settled():
            # a later iteration may find names otherwise than the first one did
            carried = {}
            unknown |= scope.lost | scope.arrays_among(changed)
            body = again()
        totals = {**{n: t for n, t in carried.items() if n not in counted}, **totals, **passed}
        scope.running.pop()
        scope.varying = varying
        self.loops_around -= 1
        totals = {name: scope.numbers.get(name, dtype) for name, dtype in totals.items()}
        totals |= {name: scope.totals[name].dtype for name in passed}
        scope.passed_on = passing
        scope.either(before, scope.moment())
        scope.unsettle(changed)
        scope.accumulating, scope.by_element = around, by_element
        scope.started = {n: value for n, value in started.items() if n not in changed}
        for name, dtype in totals.items():
            scope.bind_number(name, dtype)
        if variable is not None and variable not in assigned_names(node.body):
            scope.loop_texts[symbol] = variable
        return Loop(symbol, low, high, step, body, span, starts=starts)

    def _passed_on(self, node: cst.For | cst.While) -> set[str]:
        """Return the numbers that a loop passes on from one iteration to the next, and uses."""
        scope = self.scope
        spread = (array.spec.mesh.axes for array in scope.declared.values())
        if not scope.by_element or self.branches or any(spread):
            # ranks would have to pass them on to each other
            return set()
        known = scope.numbers.keys() | scope.scalars.keys() | scope.elements.keys()
        found = {name for name in passed_on(node, self._function) if name in known}
        for one in searches(node):
            if one.best in known:
                found |= {one.best, one.place}
        return {name for name in found if not scope.has_array(name)}

    def _start(self, name: str) -> Value:
        """Return what a number holds before a loop, by its name where nothing else is known."""
        scope = self.scope
        if name in scope.scalars:
            return value_of(scope.scalars[name], scope)
        known = scope.elements.get(name) or scope.started.get(name)
        if known is not None:
            return known
        return Scalar(name, scope.numbers.get(name, PYTHON_INTEGER))

    def _once_around(
        self,
        node: cst.For | cst.While,
        variable: str | None,
        symbol: str,
        low: Expr,
        changed: frozenset[str],
        totals: Mapping[str, str],
        index: Expr | None,
        items: Sequence[Item] = (),
        passed: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[Statement, ...]:
        scope = self.scope
        # what an earlier iteration assigned is not what the name denoted before the loop
        scope.unsettle(changed)
        scope.numbers.update(totals)
        for name, dtype in passed.items():
            scope.totals[name] = ArrayType(dtype, ())
            scope.bind_element(name, Read(name, ()))
        if variable is not None:
            scope.bind_scalar(variable, sym(symbol) if index is None else index)
        elif isinstance(node, cst.For) and not items:
            self._bound_as_seen(target_names(node.target), node, scope.span(node.target))
        numbers: list[Statement] = []
        for name, view, _ in items:
            if isinstance(view, Scalar):
                # nothing else writes it, as no name has this index
                item = Scalar(f"{view.text}[{symbol}]", view.dtype)
                scope.bind_number(name, view.dtype)
                numbers.append(ScalarBind(name, item, scope.span(node.body)))
                continue
            rest = whole(scope.type_of(view).extents[1:])
            part = part_of(view, (Point(sym(symbol)), *rest))
            if rest:
                scope.bind_view(name, part)
            elif scope.by_element:
                scope.bind_element(name, part)
            else:
                scope.bind_number(name, scope.type_of(part).dtype)
                numbers.append(ScalarBind(name, part, scope.span(node.body)))
        scope.minima[symbol] = least_index(low, scope.minima)
        tested: Sequence[Statement] = ()
        if isinstance(node, cst.While):
            outer, scope.pending, self.expanded = scope.pending, [], {}
            made = self._tested(node.test)
            tested, scope.pending = (*scope.pending, *made), outer
        body = stored_totals(self.block(node.body, of_loop=True), self.starts)
        return (*tested, *numbers, *body)

    def _tested(self, test: cst.BaseExpression) -> Sequence[Statement]:
        """Return what it takes to evaluate a condition; what decides it need not be understood."""
        scope, span = self.scope, self.scope.span(test)
        made: Sequence[Statement]
        try:
            made = evaluated(test, scope, span)
        except NotUnderstood as refused:
            mentions = scope.behind(names_in(test))
            alone = cst.Expr(test)
            self.bodies.originals[alone] = test
            made = self._not_read(alone, span, mentions, refused)
        self._note_implied(names_in(test), made)
        return made

    def _if(
        self,
        node: cst.If,
        lines: range,
        span: Span,
        rest: Sequence[cst.CSTNode] | None = None,
    ) -> Sequence[Statement]:
        """Read a condition; with `rest`, one that leaves out those for one iteration."""
        probability = spoken_of(self.pragmas.probabilities, lines)
        found = None if probability is not None else self._combination(node)
        if found is not None:
            return self.combined(found, span)
        sought = None if probability is not None else search(node)
        if sought is not None and {sought.best, sought.place} <= self.scope.passed_on:
            return self.sought(sought, span)
        looked_for = None if probability is not None else extreme(node, span, self.scope)
        if looked_for is not None:
            return (looked_for,)
        tested = self._tested(node.test)
        if _guards(node, cst.Raise):
            # a run that gets past it did nothing but the test
            return tested
        if probability is None:
            # also where it comes out one way for all sizes of at least 1, both branches stay
            probability = truth(node.test, self.scope)
        if probability is None:
            guarded = self._guarded_stores(node, rest)
            if guarded is not None:
                return guarded
            probability = chance(span.start_line)
        if self.copies and probability in (num(0), num(1)):
            # it comes out otherwise for other values that the loop goes through
            return (*tested, *self._branch(node, rest, holds=probability == num(1)))
        scope = self.scope
        before, started = scope.moment(), dict(scope.started)
        self.branches += 1
        then = self._branch(node, rest, holds=True)
        after = scope.moment()
        scope.restore(before)
        orelse = self._branch(node, rest, holds=False)
        self.branches -= 1
        scope.either(after, scope.moment())
        changed = assigned_names(node).union(*map(assigned_names, rest or ()))
        scope.started = {n: v for n, v in started.items() if n not in changed}
        return (*tested, Choice(probability, then, orelse, span))

    def _guarded_stores(
        self, node: cst.If, rest: Sequence[cst.CSTNode] | None
    ) -> Sequence[Statement] | None:
        """Read what elements decide as choices between elements; None where it does more."""
        scope = self.scope
        if not scope.by_element or self.copies:
            return None
        condition = mask_of(node.test, scope)
        if isinstance(condition, Scalar) or not is_of_elements(condition):
            return None
        before, started = scope.moment(), dict(scope.started)
        self.branches += 1
        ways, numbers = [], []
        for holds in (True, False):
            scope.restore(before)
            scope.started = dict(started)
            ways.append(self._branch(node, rest, holds=holds))
            numbers.append({**scope.started, **scope.elements})
        self.branches -= 1
        scope.restore(before)
        scope.started = dict(started)
        made = chosen_stores(condition, *ways)
        if made is None:
            return None
        made = tuple(replace(one, held=scope.held_in(one.value)) for one in made)
        for store in made:
            scope.changed(store.array)
        for name in assigned_names(node).union(*map(assigned_names, rest or ())):
            scope.forget(name)
            one, other = (known.get(name) for known in numbers)
            if one is not None and other is not None:
                changed = {store.array for store in made}
                value = Elementwise("where", (condition, one, other))
                if not changed & {read.array for read in reads(value)}:
                    scope.type_of(value)
                    scope.bind_element(name, value)
        return made

    def _branch(
        self, node: cst.If, rest: Sequence[cst.CSTNode] | None, *, holds: bool
    ) -> tuple[Statement, ...]:
        """Return what is done where a condition holds, or where it does not."""
        if rest is not None and not holds:
            return self._parts(rest, of_loop=True)
        if rest is not None:
            span, made = self.scope.span(node), self._parts(_before_continue(node.body), False)
            left = (isinstance(one, Opaque) and one.reason == LEFT_EARLY for one in made)
            # what decides it is what there is to see
            parts = zip(made, left, strict=True)
            return tuple(replace(one, span=span) if here else one for one, here in parts)
        return self.block(node.body) if holds else self._else(node)

    def _else(self, node: cst.If) -> tuple[Statement, ...]:
        if isinstance(node.orelse, cst.Else):
            return self.block(node.orelse.body)
        if isinstance(node.orelse, cst.If):
            return tuple(self._guarded(node.orelse, self._compound))
        return ()


def _reached(found: Effects) -> frozenset[str]:
    """Return the names of what a statement may change, and of all that may lead to it."""
    groups = joined(found.links)
    return found.changed.union(*(one for one in groups if one & found.changed))


def _is_conditional(call: cst.Call, node: cst.CSTNode) -> bool:
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


def _holders(target: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Return what an assignment stores into, and the places in it; none for names."""
    if isinstance(target, cst.Tuple | cst.List):
        return [one for element in target.elements for one in _holders(element.value)]
    if isinstance(target, cst.Attribute):
        return [target.value]
    return [target] if isinstance(target, cst.Subscript) else []


def _value_for(name: str, node: cst.CSTNode) -> cst.BaseExpression | None:
    """Return the expression that a statement gives a single name; a call of nothing for others."""
    match node:
        case cst.Assign(targets=targets, value=value) if all(
            isinstance(one.target, cst.Name) for one in targets
        ):
            return value
    return cst.Call(cst.Name("object"))


def _variables(node: cst.For | cst.While) -> frozenset[str]:
    """Return the names that a loop itself binds."""
    return frozenset(target_names(node.target)) if isinstance(node, cst.For) else frozenset()


def _stated_trips(loop: Loop) -> Loop:
    """Return a loop whose bounds are what a pragma says, not what the source does."""
    return replace(loop, stated=True)


def _may_be_left(body: cst.CSTNode) -> bool:
    """Return whether a loop's body leaves the loop, or the function, before its last iteration."""
    match body:
        case cst.Break() | cst.Return():
            return True
        case cst.For() | cst.While():
            # its own breaks leave that one
            return any(isinstance(part, cst.Return) for part in nodes_in(body))
    return any(map(_may_be_left, parts_of(body)))


def _ends(node: cst.If) -> bool:
    """Return whether a condition without else ends with an iteration, the loop or the function."""
    body = node.body.body if node.orelse is None else ()
    last = body[-1] if body else None
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    return isinstance(small, cst.Continue | cst.Break | cst.Return)


def _before_continue(body: cst.BaseSuite) -> Sequence[cst.CSTNode]:
    """Return the statements of a suite, without a ``continue`` at its end."""
    *rest, last = body.body
    small = last.body if isinstance(last, cst.SimpleStatementLine) else [last]
    return [*rest, *(one for one in small if not isinstance(one, cst.Continue))]


def _guards(node: cst.If, kind: type[cst.CSTNode]) -> bool:
    """Return whether a condition without else guards one statement, of a kind."""
    return node.orelse is None and isinstance(only_statement(node.body), kind)
