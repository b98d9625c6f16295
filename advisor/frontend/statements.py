"""Statements of a kernel's body, as statements of the intermediate form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
from advisor.frontend.bindings import assigned_names, names_in, resolve, target_names
from advisor.frontend.declarations import Declarations
from advisor.frontend.directives import Pragmas, spoken_of
from advisor.frontend.indices import (
    MOST_ITERATIONS,
    Known,
    is_prange,
    known,
    pairs,
    range_of,
)
from advisor.frontend.scope import Scope, looks_up
from advisor.frontend.simple_statements import SimpleStatements
from advisor.frontend.stores import (
    bind_item,
    chosen_stores,
    evaluated,
    extreme,
    is_inert,
    mask_of,
    truth,
)
from advisor.frontend.trees import NotKnown, NotUnderstood, nodes_in, parts_of
from advisor.ir.dependence import least_index
from advisor.ir.nests import is_of_elements
from advisor.ir.shapes import ArrayType, whole
from advisor.ir.statements import (
    Choice,
    Loop,
    Stated,
    Statement,
    Threads,
    Unknown,
    Unrolled,
    mentioned,
)
from advisor.ir.values import Elementwise, Point, Read, Scalar, Value, reads
from advisor.numpy_table import PYTHON_INTEGER, strong
from advisor.source import Span
from costdb.expr import Expr, num, sym
from costdb.expr.functions import chance

DEEPEST_LOOPS = 8
"""Loops within loops that are still read: each may be read twice for each time around it."""


class Body(SimpleStatements):
    """Reads the statements of one kernel in order, keeping what names denote."""

    def __init__(
        self,
        scope: Scope,
        declarations: Declarations,
        pragmas: Pragmas,
        threads: Callable[[int], Threads],
    ) -> None:
        super().__init__(scope, declarations)
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
            if of_loop and isinstance(part, cst.If) and _guards(part, cst.Continue):
                skipping = self._skipping(part, parts[position + 1 :])
                if skipping is not None:
                    return (*found, *skipping)
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
        mentions = self.scope.behind(names_in(node))
        try:
            return read(node)
        except NotUnderstood as unknown:
            self._forget_assigned(node)
            span = self.scope.span(node)
            root = self.causes.get(unknown.name) if isinstance(unknown, NotKnown) else None
            reason = unknown.reason
            if root is not None and root[0] != span.start_line:
                reason += f", since line {root[0]} is not understood: {root[1]}"
            # a loop may be read twice, and then for what followed from the first reason
            reason = self.reasons.setdefault(span, reason)
            for name in assigned_names(node):
                self.causes.setdefault(name, root or (span.start_line, reason))
            return (Unknown(reason, mentions, span),)

    def _stated(self, node: cst.CSTNode, microseconds: Expr) -> Stated:
        mentions = self.scope.behind(names_in(node))
        self._forget_assigned(node)
        return Stated(microseconds, mentions, self.scope.span(node))

    def _forget_assigned(self, node: cst.CSTNode) -> None:
        for name in assigned_names(node):
            self.scope.forget(name)

    def _accounted(self, node: cst.BaseSmallStatement) -> Sequence[Statement]:
        """Read a simple statement, and note the arrays it needs without saying so."""
        names = names_in(node)
        found = self._combination(node)
        made = self.small(node) if found is None else self.combined(found, self.scope.span(node))
        self._note_implied(names, made)
        return made

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
        said: frozenset[str] = frozenset().union(*map(mentioned, made))
        self.scope.implied |= self.scope.arrays_among(names) - said

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
        raise NotUnderstood("this kind of statement is not understood")

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
        if trips is None and _may_be_left(node.body):
            raise NotUnderstood("a loop that may be left early: how often it runs is not known")
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
            raise NotUnderstood("a loop over something other than range(...)")
        if bounds is None and not is_inert(node.iter, self.scope):
            raise NotUnderstood("a loop over something that may change while it runs")
        return (_stated_trips(self._looped(node, None, num(0), trips, 1, span)),)

    def _each(self, node: cst.For) -> tuple[str | None, Expr, Sequence[tuple[str, str]]] | None:
        """Read ``for x in a``, ``enumerate(a)`` and ``zip(a, b)`` over arrays.

        Returns
        -------
        str or None
            The name of the index, where there is one.
        Expr
            How many elements or rows there are.
        sequence of (str, str)
            Names, and the arrays of which they denote one after the other.
        """
        scope, target, given, counter = self.scope, node.target, node.iter, None
        match given:
            case cst.Call(func=cst.Name(value="enumerate" | "zip" as called), args=arguments) if (
                not scope.not_builtin(called) and not any(a.keyword or a.star for a in arguments)
            ):
                names = (
                    [one.value for one in target.elements] if isinstance(target, cst.Tuple) else []
                )
                arrays = [argument.value for argument in arguments]
                if called == "enumerate":
                    counter, *names = names or [target]
            case _:
                names, arrays = [target], [given]
        pairs = [
            (name.value, array.value)
            for name, array in zip(names, arrays, strict=False)
            if isinstance(name, cst.Name) and isinstance(array, cst.Name)
        ]
        known = all(scope.is_array(array) for _, array in pairs)
        if not known or not len(pairs) == len(names) == len(arrays) or not pairs:
            return None
        extents = {scope.extents_of(array)[0] for _, array in pairs if scope.extents_of(array)}
        changed = assigned_names(node.body)
        numbers = any(len(scope.extents_of(array)) < 2 for _, array in pairs)
        if numbers and not is_by_element(node):
            return None
        if len(extents) != 1 or changed & {name for pair in pairs for name in pair}:
            return None
        if counter is not None and not isinstance(counter, cst.Name):
            return None
        return None if counter is None else counter.value, extents.pop(), pairs

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
        items: Sequence[tuple[str, str]] = (),
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
        if trips is None:
            raise NotUnderstood("a while loop without `# advise: trip COUNT` above it")
        if node.orelse is not None:
            raise NotUnderstood("a while loop with else")
        return (_stated_trips(self._looped(node, None, num(0), trips, 1, span)),)

    def _looped(
        self,
        node: cst.For | cst.While,
        variable: str | None,
        low: Expr,
        high: Expr,
        step: int,
        span: Span,
        index: Expr | None = None,
        items: Sequence[tuple[str, str]] = (),
    ) -> Loop:
        if self.loops_around == DEEPEST_LOOPS:
            raise NotUnderstood(f"more than {DEEPEST_LOOPS} loops within one another")
        scope = self.scope
        symbol = scope.index(variable, span.start_line)
        changed = assigned_names(node)
        before, strided = scope.moment(), set(scope.strided)
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
        self.starts[span] = {n: started[n] for n in totals if n in started}
        self.loops_around += 1

        carried = {n: scope.numbers[n] for n in changed & scope.numbers.keys() - totals.keys()}

        def once_around() -> tuple[Statement, ...]:
            return self._once_around(
                node, variable, symbol, low, changed, {**carried, **totals}, index, items, passed
            )

        # what only the loop makes arrays of is none when it begins
        unknown = {name for name in changed if not scope.has_array(name)}

        def settled() -> bool:
            same = all(scope.numbers.get(name) == dtype for name, dtype in carried.items())
            return same and scope.lost <= before.lost | unknown and scope.strided == strided

        def again() -> tuple[Statement, ...]:
            scope.restore(before)
            scope.lost |= unknown
            return once_around()

        body = once_around()
        lost = scope.lost - before.lost - unknown
        if not settled() and lost <= scope.renamed and scope.strided == strided:
            # names that were handed over are bound anew, or a later iteration does not know them;
            # a number has the type that iterations give it
            carried = {n: scope.numbers[n] for n in carried if n in scope.numbers}
            unknown |= lost
            body = again()
        if not settled():
            # a later iteration may find names otherwise than the first one did
            carried = {}
            unknown |= scope.lost | scope.arrays_among(changed)
            body = again()
        totals = {**carried, **totals, **passed}
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
        items: Sequence[tuple[str, str]] = (),
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
        for name, array in items:
            rest = whole(scope.extents_of(array)[1:])
            part = scope.select(array, (Point(sym(symbol)), *rest))
            if rest:
                scope.bind_view(name, part)
            else:
                scope.bind_element(name, part)
        scope.minima[symbol] = least_index(low, scope.minima)
        tested: Sequence[Statement] = ()
        if isinstance(node, cst.While):
            tested = self._tested(node.test)
        return (*tested, *stored_totals(self.block(node.body, of_loop=True), self.starts))

    def _tested(self, test: cst.BaseExpression) -> Sequence[Statement]:
        made = evaluated(test, self.scope, self.scope.span(test))
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
        if rest is not None:
            return () if holds else self._parts(rest, of_loop=True)
        return self.block(node.body) if holds else self._else(node)

    def _else(self, node: cst.If) -> tuple[Statement, ...]:
        if isinstance(node.orelse, cst.Else):
            return self.block(node.orelse.body)
        if isinstance(node.orelse, cst.If):
            return tuple(self._guarded(node.orelse, self._compound))
        return ()


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


def _guards(node: cst.If, kind: type[cst.CSTNode]) -> bool:
    """Return whether a condition without else guards one statement, of a kind."""
    return node.orelse is None and isinstance(only_statement(node.body), kind)
