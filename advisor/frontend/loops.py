"""Loops of a kernel's body: over ranges, arrays, lists, and whatever else there is."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, pairwise
from types import MappingProxyType

import libcst as cst

from advisor.frontend.accumulations import (
    Combination,
    accumulated,
    combination,
    is_by_element,
    passed_on,
    scattered_at_once,
    searches,
    stored_totals,
)
from advisor.frontend.arrays import value_of
from advisor.frontend.besides import Besides
from advisor.frontend.bindings import assigned_names, name_node, names_in, resolve, target_names
from advisor.frontend.directives import spoken_of
from advisor.frontend.effects import work_of
from advisor.frontend.indices import (
    MOST_ITERATIONS,
    Bounds,
    Known,
    is_prange,
    is_range,
    known,
    pairs,
    range_of,
)
from advisor.frontend.scope import Moment, Split, looks_up, part_of
from advisor.frontend.simple_statements import LEFT_EARLY
from advisor.frontend.splits import ends_of_parts, guarded
from advisor.frontend.stores import bind_item, evaluated
from advisor.frontend.trees import MOST_NODES, NotUnderstood, as_python, nodes_in, parts_of
from advisor.ir.dependence import least_index, non_negative_within
from advisor.ir.shapes import ArrayType, whole
from advisor.ir.statements import (
    NO_PRICE,
    UNTOLD,
    Bind,
    Choice,
    Loop,
    Opaque,
    ScalarBind,
    Scatter,
    Statement,
    Store,
    Unknown,
    Unrolled,
    walk,
)
from advisor.ir.values import Point, Read, Scalar, Value
from advisor.ir.waiting import carried as carried_by
from advisor.numpy_table import PYTHON_INTEGER, strong
from advisor.source import Span
from costdb.expr import Expr, ceil_div, minimum, num, sym
from costdb.expr.functions import trips as number_of_trips
from costdb.expr.nodes import Num

DEEPEST_LOOPS = 8
"""Loops within loops that are still read: each may be read twice for each time around it."""

MOST_ROUNDS = 16
"""Loops within loops over written-out values that are read, of one function and in all copies."""

MOST_SPLITS = 3
"""Loops within one another whose ranges are read in parts."""

Item = tuple[str, Read | Scalar, Expr]
"""A name that goes through an array or a list of numbers, which, and how long that is."""


class Loops(Besides):
    """Reads loops, keeping what names denote from one iteration to the next."""

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
        rows = node if trips is not None else self._row_by_row(node)
        if rows is not node:
            return self._through_rows(node, rows, span)
        nested = node if trips is not None else self._index_by_index(node)
        if nested is not node:
            return self._for_each(nested, None, span)
        self._note_implied(names_in(node.iter), ())
        variable = node.target.value if isinstance(node.target, cst.Name) else None
        bounds, counts = None, False
        try:
            bounds = range_of(node.iter, self.scope)
        except NotUnderstood:
            # only the data know them
            counts = trips is None and is_range(node.iter, self.scope)
            if not counts:
                raise
        if trips is None:
            items = self._written_out(node, bounds)
            if items is not None:
                return self._unrolled(node, items, span)
        if bounds is not None and bounds[2] == -1 and trips is not None:
            raise NotUnderstood("a loop that counts down, with a stated number of trips")
        if bounds is not None and variable is not None:
            before, arrays = self.scope.moment(), {*self.scope.declared, *self.scope.locals}
            whole = self._in_parts(node, variable, bounds, span) if trips is None else None
            if isinstance(whole, Unrolled):
                return (whole,)
            made = whole or self._counting(node, variable, bounds, trips, span)
            if trips is None:
                whole = self._within_guards(node, variable, bounds, before, arrays, made)
                if whole is not None:
                    return (whole,)
            if is_prange(node.iter, self.scope):
                made = replace(made, threads=self.threads(span.start_line))
            return (scattered_at_once(made) if trips is None else _stated_trips(made),)
        if trips is None:
            ahead: list[Statement] = []
            each = self._each(node, ahead)
            if each is not None:
                counter, extent, named = each
                made = self._counting(node, counter, (num(0), extent, 1), None, span, named)
                return (*ahead, scattered_at_once(made))
        work, found = work_of(node.iter, self.scope), self._effects(node.iter)
        self.scope.relate({*target_names(node.target)} | self.reading.roots(node.iter))
        needed = [self._computed(value, span) for value in work.values]
        changes = self._changes(found)
        self._related(found)
        reason = f"what this goes through {NO_PRICE}"
        # each iteration may change that
        ahead = [Opaque(reason, changes, span, changes=changes)] if changes else []
        return (*needed, *self._untold(node, trips, span, ahead, variable if counts else None))

    def _in_parts(
        self, node: cst.For, variable: str, bounds: Bounds, span: Span
    ) -> Unrolled | Loop | None:
        """Read a loop over parts of its range in turn, as conditions on its index come out there.

        Of one part where no condition tells them apart; None where nothing is known of them.
        """
        scope, (low, high, _) = self.scope, bounds
        if len(scope.splits) == MOST_SPLITS or not self._may_be_parted(node, variable, bounds):
            return None
        before, symbol = scope.moment(), scope.index(variable, span.start_line)
        scope.bind_scalar(variable, sym(symbol))
        ends = tuple(ends_of_parts(node, symbol, low, high, scope))
        scope.restore(before)
        parts: list[Loop] = []
        for at, (first, end) in enumerate(pairwise(ends)):
            scope.splits[symbol] = Split(ends, at)
            parts.append(self._counting(node, variable, (first, end, 1), None, span))
            del scope.splits[symbol]
        if len(parts) == 1:
            return parts[0]
        made = [
            one for one in parts if not all(isinstance(p, Loop | Unrolled) for p in walk((one,)))
        ]
        open_ = any(isinstance(one, Choice | Unknown | Opaque) for one in walk(tuple(made)))
        if open_ or not _in_order(parts, made) or (len(made) > 1 and _guards_loops(node.body)):
            scope.restore(before)
            return None
        # no rule may rewrite a loop within one whose range is not what the source says
        return Unrolled(tuple(made), span)

    def _within_guards(
        self,
        node: cst.For,
        variable: str,
        bounds: Bounds,
        before: Moment,
        arrays: Collection[str],
        made: Loop,
    ) -> Unrolled | None:
        """Read a loop over the part of its range in which it does anything.

        None where no condition tells that, or it is not understood there either, or all of it is,
        as `made`, and the part surely within. `before` it, these `arrays` were known.
        """
        scope, after, span = self.scope, self.scope.moment(), made.span
        if not self._may_be_parted(node, variable, bounds):
            return None
        scope.restore(before)
        symbol = scope.index(variable, span.start_line)
        scope.bind_scalar(variable, sym(symbol))
        low, high, holding = guarded(node, symbol, *bounds[:2], scope)
        within = non_negative_within(high - low, scope.minima, scope.maxima, scope.starts)
        if holding and (_unread(made) or not within):
            scope.restore(before)
            declared, made_here = dict(scope.declared), dict(scope.locals)
            for name in (declared.keys() | made_here.keys()) - set(arrays):
                scope.declared.pop(name, None)
                scope.locals.pop(name, None)
            scope.holding |= holding
            kept, self.kept = self.kept, []
            part = self._counting(node, variable, (low, high, 1), None, span)
            scope.holding = {one: out for one, out in scope.holding.items() if one not in holding}
            if not _unread(part):
                # no rule may rewrite a loop within one whose range is not what the source says
                return Unrolled((part,), span)
            self.kept = kept
            scope.declared.update(declared)
            scope.locals.update(made_here)
        scope.restore(after)
        return None

    def _may_be_parted(self, node: cst.For, variable: str, bounds: Bounds) -> bool:
        """Return whether all iterations of a loop come, one by one, whatever it does."""
        scope = self.scope
        changed = variable in assigned_names(node.body) or _may_be_left(node.body)
        changed = changed or is_prange(node.iter, scope)
        return bounds[2] == 1 and not changed and not scope.has_array(variable)

    def _untold(
        self,
        node: cst.For | cst.While,
        trips: Expr | None,
        span: Span,
        each: Sequence[Statement] = (),
        variable: str | None = None,
    ) -> Sequence[Statement]:
        """Read a loop of which the source does not show how often it runs."""
        times = number_of_trips(span.start_line) if trips is None else trips
        looped = self._looped(node, variable, num(0), times, 1, span)
        loop = _stated_trips(replace(looped, body=(*each, *looped.body)))
        return (loop,) if trips is not None else (Opaque(UNTOLD, frozenset(), span), loop)

    def _each(
        self, node: cst.For, ahead: list[Statement]
    ) -> tuple[str | None, Expr, Sequence[Item]] | None:
        """Read ``for x in a[1:]``, ``enumerate(a)`` and ``zip(a, b)`` over arrays.

        What computes such is put `ahead` of the loop.

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
        items = self._items(target, given, ahead)
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
        self, target: cst.BaseExpression, given: cst.BaseExpression, ahead: list[Statement]
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
                    self._items(element.value, argument.value, ahead)
                    for element, argument in zip(elements, arguments, strict=True)
                ]
                known = [part for part in parts if part is not None]
                return tuple(chain.from_iterable(known)) if len(known) == len(parts) else None
            case cst.Name(value=numbers), cst.Name(value=name) if numbers in self.scope.listed:
                length, dtype = self.scope.listed[numbers]
                return [(name, Scalar(numbers, dtype), length)]
            case cst.Name() | cst.Subscript(), cst.Tuple(elements=elements):
                return self._columns([one.value for one in elements], given)
            case _, cst.Name(value=name):
                try:
                    value = value_of(given, self.scope)
                    extents = self.scope.type_of(value).extents
                except NotUnderstood:
                    return None
                if extents and not isinstance(value, Read):
                    ahead.append(made := self._computed(value, self.scope.span(given)))
                    assert isinstance(made, Bind)
                    value = Read(made.name, whole(extents))
                if extents and isinstance(value, Read):
                    return [(name, value, extents[0])]
        return None

    def _columns(
        self, targets: Sequence[cst.BaseExpression], given: cst.BaseExpression
    ) -> Sequence[Item] | None:
        """Return the names that go through the columns of an array; None where anything else is."""
        try:
            value = value_of(given, self.scope)
        except NotUnderstood:
            return None
        extents = self.scope.type_of(value).extents
        plain = [one.value for one in targets if isinstance(one, cst.Name)]
        if not isinstance(value, Read) or len(extents) < 2 or len(plain) < len(targets):
            return None
        if isinstance(extents[1], Num) and extents[1] != num(len(plain)):
            return None
        rows, rest = whole(extents[:1]), whole(extents[2:])
        return [
            (name, part_of(value, (*rows, Point(num(place)), *rest)), extents[0])
            for place, name in enumerate(plain)
        ]

    def _through_rows(self, node: cst.For, rows: cst.For, span: Span) -> Sequence[Statement]:
        """Read a loop over all elements of an array, given as loops over rows."""
        through = self.scope.behind(names_in(node.iter))
        made = self._for_each(rows, None, span)
        changed = {one.array for one in walk(tuple(made)) if isinstance(one, Store | Scatter)}
        if through & changed:
            # which of its elements are copies depends on how it is stored
            raise NotUnderstood("a loop that changes what it goes through")
        return made

    def _row_by_row(self, node: cst.For) -> cst.For:
        """Return a loop over all elements of an array as loops over rows and what is in them."""
        match node.iter:
            case cst.Call(cst.Attribute(given, cst.Name("ravel" | "flatten")), []) | cst.Attribute(
                given, cst.Name("flat")
            ) if isinstance(given, cst.Name | cst.Subscript):
                pass
            case _:
                return node
        try:
            rank = len(self.scope.type_of(value_of(given, self.scope)).extents)
        except NotUnderstood:
            return node
        if not rank or (rank > 1 and _may_be_left(node.body)):
            return node
        around = [name_node(f"<rows {n}>") for n in range(rank - 1)]
        return self._nested(node, [*around, node.target], [given, *around], node.body)

    def _index_by_index(self, node: cst.For) -> cst.For:
        """Return a loop over ``np.ndindex`` or ``np.ndenumerate`` as loops over ranges."""
        if not isinstance(node.iter, cst.Call) or not isinstance(node.target, cst.Tuple):
            return node
        called, target, body = resolve(node.iter.func, self.scope.imports), node.target, node.body
        match called, [one.value for one in target.elements], node.iter.args:
            case "numpy.ndindex", _, [cst.Arg(shape, None)]:
                lengths = shape
            case "numpy.ndindex", _, [*args] if not any(one.star or one.keyword for one in args):
                lengths = cst.Tuple([cst.Element(one.value) for one in args])
            case (
                "numpy.ndenumerate",
                [cst.Tuple() as target, cst.Name() as part],
                [cst.Arg(cst.Name() as array, None, star="")],
            ) if isinstance(body, cst.IndentedBlock):
                lengths = cst.Attribute(array, cst.Name("shape"))
                element = _item(array, [one.value for one in target.elements])
                bind = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(part)], element)])
                body = body.with_changes(body=[bind, *body.body])
                self.bodies.originals |= {body: node.body, **dict.fromkeys(nodes_in(bind), part)}
            case _:
                return node
        targets = [one.value for one in target.elements if isinstance(one.value, cst.Name)]
        own = names_in(node.iter) | {*target_names(node.target)}
        plain = len(targets) == len(target.elements) > 1 and not self.scope.not_builtin("range")
        if not plain or own & assigned_names(node.body) or _may_be_left(node.body):
            return node
        axes = [_item(lengths, [cst.Integer(str(k))]) for k in range(len(targets))]
        ranges = [cst.Call(cst.Name("range"), [cst.Arg(one)]) for one in axes]
        for one in ranges:
            self.bodies.originals |= dict.fromkeys({*nodes_in(one)} - {*nodes_in(node)}, node.iter)
        return self._nested(node, targets, ranges, body)

    def _nested(
        self,
        node: cst.For,
        targets: Sequence[cst.BaseAssignTargetExpression],
        iters: Sequence[cst.BaseExpression],
        body: cst.BaseSuite,
    ) -> cst.For:
        """Return loops within one another in the place of one, where all of them stand."""
        made: cst.For | None = None
        for target, given in zip(reversed(targets), reversed(iters), strict=True):
            inner = body if made is None else cst.IndentedBlock([made])
            made = cst.For(target, given, inner)
            self.bodies.originals |= {made: node.iter, target: node.target}
            if inner is not body and isinstance(inner, cst.IndentedBlock):
                self.bodies.originals |= {inner: node.iter, inner.header: node.iter}
        assert made is not None
        self.bodies.originals[made] = node
        return made

    def _written_out(self, node: cst.For, bounds: Bounds | None) -> tuple[Known, ...] | None:
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
        bounds: Bounds,
        trips: Expr | None,
        span: Span,
        items: Sequence[Item] = (),
    ) -> Loop:
        """Read a loop over a range; one that counts down, or by a size, as one over its rounds."""
        scope = self.scope
        symbol = scope.index(variable, span.start_line)
        low, high, step = bounds
        index: Expr | None = None
        if isinstance(step, Expr):
            low, high, step, index = num(0), ceil_div(high - low, step), 1, low + step * sym(symbol)
        elif step < 0:
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
        self.rounds += bool(self.copies)
        if self.rounds > MOST_ROUNDS:
            raise NotUnderstood("too many loops within written-out ones")
        scope = self.scope
        symbol = scope.index(variable, span.start_line)
        # what any function may change, one that is called may
        others = bool(scope.seen.around)
        foreign = self._foreign(self._effects(node)) if others else frozenset[str]()
        foreign -= scope.arrays_among(scope.seen.around - scope.seen.unsettled)
        renewed = (foreign & scope.seen.assumed.keys()) - assigned_names(node)
        changed = (assigned_names(node) | foreign) - renewed
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

        carrying, scope.carried = scope.carried, scope.carried | _carried(node)
        carried |= {
            n: scope.type_of(v).dtype
            for n, v in scope.elements.items()
            if n in scope.carried - totals.keys() - scope.passed_on and n in changed
        }
        known = symbol in scope.maxima
        scope.running.append((symbol, low, high, step) if known else None)

        def once_around() -> tuple[Statement, ...]:
            scope.renew(sorted(renewed), span.start_line)
            return self._once_around(
                node, variable, symbol, low, changed, {**carried, **totals}, index, items, passed
            )

        kin, kept = dict(scope.kin), set(scope.kept)
        # what only the loop makes arrays of is none when it begins
        unknown = {name for name in changed if not scope.has_array(name)}

        def settled() -> bool:
            types = {**dict.fromkeys(scope.scalars, PYTHON_INTEGER), **scope.numbers}
            same = all(types.get(name) == dtype for name, dtype in carried.items())
            same = same and scope.kin == kin and scope.kept == kept
            return same and scope.lost <= before.lost | unknown and scope.strided == strided

        def again() -> tuple[Statement, ...]:
            scope.restore(before)
            scope.lost |= unknown
            kin.update(scope.kin)
            kept.update(scope.kept)
            strided.update(scope.strided)
            return once_around()

        body = once_around()
        held = self._overwritten(node, before, changed)
        if held:
            # a later iteration finds them as they were, and not what they were computed from
            scope.restore(before)
            for name, value in held.items():
                scope.bind_number(name, strong(scope.type_of(value).dtype))
            before = scope.moment()
            body = once_around()
        self.kept += [ScalarBind(name, value, span) for name, value in held.items()]
        lost = scope.lost - before.lost - unknown
        if not settled() and lost <= scope.renamed and scope.strided == strided:
            # names that were handed over are bound anew, or a later iteration does not know them;
            # a number has the type that iterations give it
            found = scope.numbers.keys() | scope.scalars.keys()
            carried = {n: scope.numbers.get(n, carried[n]) for n in carried if n in found}
            unknown |= lost
            body = again()
        if not settled():
            # a later iteration does not know what an earlier one lost
            unknown |= scope.lost
            body = again()
        if not settled():
            # a later iteration may find names otherwise than the first one did
            carried = {}
            unknown |= scope.lost | scope.arrays_among(changed)
            body = again()
        totals = {**{n: t for n, t in carried.items() if n not in counted}, **totals, **passed}
        scope.running.pop()
        scope.varying, scope.carried = varying, carrying
        self.loops_around -= 1
        totals = {name: scope.numbers.get(name, dtype) for name, dtype in totals.items()}
        totals |= {name: scope.totals[name].dtype for name in passed}
        scope.passed_on = passing
        scope.either(before, scope.moment())
        scope.unsettle(changed)
        scope.renew(sorted(renewed), span.end_line)
        scope.accumulating, scope.by_element = around, by_element
        scope.started = {n: value for n, value in started.items() if n not in changed}
        for name, dtype in totals.items():
            scope.bind_number(name, dtype)
        if variable is not None and variable not in assigned_names(node.body):
            scope.loop_texts[symbol] = variable
        return Loop(symbol, low, high, step, body, span, starts=starts)

    def _overwritten(
        self, node: cst.For | cst.While, before: Moment, changed: frozenset[str]
    ) -> dict[str, Value]:
        """Return numbers from before a loop that it uses, computed from what it changes."""
        lost = before.elements.keys() - self.scope.elements.keys() - changed
        known = ((name, before.elements[name]) for name in sorted(lost & names_in(node)))
        return {name: value for name, value in known if value != Read(name, ())}

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


def _item(value: cst.BaseExpression, indices: Sequence[cst.BaseExpression]) -> cst.Subscript:
    return cst.Subscript(value, [cst.SubscriptElement(cst.Index(one)) for one in indices])


@lru_cache(MOST_NODES)
def _carried(node: cst.For | cst.While) -> frozenset[str]:
    """Return the names of a loop that an iteration needs as the one before it left them."""
    # what is read as loops may be none in the source
    found = as_python(node)
    return frozenset(carried_by(found) if isinstance(found, ast.For | ast.While) else ())


def _variables(node: cst.For | cst.While) -> frozenset[str]:
    """Return the names that a loop itself binds."""
    return frozenset(target_names(node.target)) if isinstance(node, cst.For) else frozenset()


def _stated_trips(loop: Loop) -> Loop:
    """Return a loop whose bounds are what a pragma says, not what the source does."""
    return replace(loop, stated=True)


def _in_order(parts: Sequence[Loop], stay: Sequence[Loop]) -> bool:
    """Return whether parts of a range that stay tell whether all of them are in order."""
    stays = [any(part is one for one in stay) for part in parts]
    told = [False, *(one and other for one, other in zip(stays, stays[2:], strict=False)), False]
    known = zip(parts, stays, told, strict=True)
    return all(here or beside or isinstance(p.high - p.low, Num) for p, here, beside in known)


def _guards_loops(body: cst.CSTNode) -> bool:
    """Return whether a condition decides about loops."""
    return any(
        isinstance(part, cst.For | cst.While)
        for one in nodes_in(body)
        if isinstance(one, cst.If)
        for part in nodes_in(one)
    )


def _unread(loop: Loop) -> bool:
    return any(isinstance(one, Unknown) for one in walk((loop,)))


@lru_cache(MOST_NODES)
def _may_be_left(body: cst.CSTNode) -> bool:
    """Return whether a loop's body leaves the loop, or the function, before its last iteration."""
    match body:
        case cst.Break() | cst.Return():
            return True
        case cst.For() | cst.While():
            # its own breaks leave that one
            return any(isinstance(part, cst.Return) for part in nodes_in(body))
    return any(map(_may_be_left, parts_of(body)))
