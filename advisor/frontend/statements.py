"""Statements of a kernel's body, as statements of the intermediate form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import libcst as cst

from advisor.frontend.accumulations import only_statement, search, smalls_of
from advisor.frontend.bindings import assigned_names, names_in, resolve, target_names
from advisor.frontend.directives import spoken_of
from advisor.frontend.indices import bound_to_number
from advisor.frontend.lists import GROWN, begun, comprehension, growing_in, grown, room, row_of
from advisor.frontend.loops import Loops
from advisor.frontend.simple_statements import LEFT_EARLY
from advisor.frontend.splits import decided
from advisor.frontend.stores import chosen_stores, extreme, mask_of, truth
from advisor.frontend.trees import NotUnderstood, nodes_in
from advisor.ir.kernel import FilledList
from advisor.ir.nests import is_of_elements
from advisor.ir.statements import (
    NO_PRICE,
    Choice,
    Opaque,
    ScalarBind,
    Stated,
    Statement,
    Unknown,
    Unrolled,
    walk,
)
from advisor.ir.values import Elementwise, Read, Scalar, Value, reads
from advisor.numpy_table import strong
from advisor.source import Span
from costdb.expr import Expr, num
from costdb.expr.functions import chance


class Body(Loops):
    """Reads the statements of one kernel in order, keeping what names denote."""

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
            listed = self._listed(part)
            if listed is not None:
                found.extend(listed)
                continue
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
            elif isinstance(part, cst.For | cst.While):
                found.extend(self._growing(part))
            elif isinstance(part, cst.BaseCompoundStatement):
                found.extend(self._guarded(part, self._compound))
        return tuple(found)

    def _growing(self, loop: cst.For | cst.While) -> Sequence[Statement]:
        """Read a loop, after what makes room for arrays that it lets grow."""
        scope, span = self.scope, self.scope.span(loop)
        found = growing_in(loop, scope)
        scope.growing |= found
        made = self._guarded(loop, self._compound)
        for name in found:
            del scope.growing[name]
        rooms = [bind for name in found for bind in room(GROWN.format(name), span, scope)]
        return (*rooms, *made)

    def _listed(self, part: cst.CSTNode) -> Sequence[Statement] | None:
        """Read a statement with a comprehension; None for any other.

        Also where it is not understood as a loop that fills a list, or accumulates a number.
        """
        scope = self.scope
        found = None if scope.calls or self.copies else comprehension(part, scope)
        if found is None:
            return None
        self.bodies.originals.update(found.originals)
        place, span = scope.span(found.after), scope.span(found.call)
        if (
            spoken_of(self.pragmas.costs_us, range(place.start_line, place.end_line + 1))
            is not None
        ):
            return None
        before, arrays, implied = scope.moment(), {*scope.locals}, set(scope.implied)
        filled = FilledList(len(scope.running), found.picked, escapes=False, place=span)
        scope.lists[found.name] = filled
        if found.function in ("any", "all"):
            scope.bind_number(found.name, "bool")
        elif found.function:
            bound_to_number(found.name, cst.Integer("0"), scope)
        if found.function in ("max", "min"):
            # of which the first one is what it begins with
            del scope.started[found.name]
        loop = self._guarded(found.loop, self._compound)
        made = (*room(found.name, span, scope), *loop)
        scope.rename_back(found.own, before)
        known = found.name in scope.locals or found.name in scope.numbers
        if known and not any(map(_is_unread, walk(made))):
            then = self._parts([found.after], of_loop=False)
            if found.function or not any(map(_is_unread, walk(then))):
                return (*made, *then)
        scope.restore(before)
        scope.implied = implied
        del scope.lists[found.name]
        for row in [row for row, of in scope.rows.items() if of == found.name]:
            del scope.rows[row]
        scope.picked.pop(found.name, None)
        scope.totals.pop(found.name, None)
        for name in scope.locals.keys() - arrays:
            del scope.locals[name]
        return None

    def _skipping(self, node: cst.If, rest: Sequence[cst.CSTNode]) -> Sequence[Statement] | None:
        """Read ``if ...: continue`` and what follows it in the loop; None where it is unknown."""
        lines = self._header(node)
        if spoken_of(self.pragmas.costs_us, lines) is not None:
            return None
        try:
            return self._if(node, lines, self.scope.span(node), rest)
        except NotUnderstood:
            return None

    def _stated(self, node: cst.CSTNode, microseconds: Expr) -> Stated:
        mentions = self.scope.behind(names_in(node))
        for name in assigned_names(node):
            self.scope.forget(name)
        return Stated(microseconds, mentions, self.scope.span(node))

    def _accounted(self, node: cst.BaseSmallStatement) -> Sequence[Statement]:
        """Read a simple statement, and note the arrays it needs without saying so."""
        names, span = names_in(node), self.scope.span(node)
        found, known = self._combination(node), dict(self.scope.elements)
        made = self.small(node) if found is None else self.combined(found, span)
        made = self._with_kept(made, known, assigned_names(node), span)
        self._note_implied(names, (*self.scope.pending, *made))
        return made

    def _with_kept(
        self,
        made: Sequence[Statement],
        known: Mapping[str, Value],
        assigned: frozenset[str],
        span: Span,
    ) -> Sequence[Statement]:
        """Return a statement after numbers that are needed later, and that it leaves no element."""
        scope = self.scope
        lost = known.keys() - scope.elements.keys() - assigned
        if not lost or self.source is None:
            return made
        after = {
            one.value
            for one in nodes_in(self.source)
            if isinstance(one, cst.Name) and one.value in lost
            if scope.span(one).start_line > span.end_line
        }
        kept = []
        for name in sorted(after):
            if scope.times_bound(name) and known[name] != Read(name, ()):
                scope.bind_number(name, strong(scope.type_of(known[name]).dtype))
                kept.append(ScalarBind(name, known[name], span))
        return (Unrolled((*kept, *made), span),) if kept else made

    def _compound(self, node: cst.BaseCompoundStatement) -> Sequence[Statement]:
        lines = self._header(node)
        stated = spoken_of(self.pragmas.costs_us, lines)
        if stated is not None:
            return (self._stated(node, stated),)
        span = self.scope.span(node)
        match node:
            case cst.For():
                return self._after_kept(partial(self._for, node, lines, span))
            case cst.While():
                return self._after_kept(partial(self._while, node, lines, span))
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

    def _after_kept(self, read: Callable[[], Sequence[Statement]]) -> Sequence[Statement]:
        """Read a loop; what it needs as it was before comes first."""
        around, self.kept = self.kept, []
        try:
            made = read()
            return (*self.kept, *made)
        finally:
            self.kept = around

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
            entered = node.with_changes(body=cst.SimpleStatementSuite([cst.Pass()]))
            found = self._effects(entered)
            changes = self._changes(found)
            for item in node.items:
                for name in () if item.asname is None else target_names(item.asname.name):
                    self.scope.forget(name)
            self._related(found)
            mentions = self.scope.behind(names_in(entered)) | changes
            entering = Opaque(f"what `with` does {NO_PRICE}", mentions, span, changes=changes)
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

    def _if(
        self, node: cst.If, lines: range, span: Span, rest: Sequence[cst.CSTNode] | None = None
    ) -> Sequence[Statement]:
        """Read a condition; with `rest`, one that leaves out those for one iteration."""
        holds = decided(node.test, self.scope)
        if holds is not None:
            return self._branch(node, rest, holds=holds)
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
        if node.orelse is None and isinstance(only_statement(node.body), cst.Raise):
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
        condition = self._condition(node.test)
        if self.copies and probability in (num(0), num(1)):
            # it comes out otherwise for other values that the loop goes through
            return (*tested, *self._branch(node, rest, holds=probability == num(1)))
        scope = self.scope
        before, started = scope.moment(), dict(scope.started)
        self.branches += 1
        odds, scope.odds = scope.odds, scope.odds * probability
        then = self._branch(node, rest, holds=True)
        after = scope.moment()
        scope.restore(before)
        scope.odds = odds * (1 - probability)
        orelse = self._branch(node, rest, holds=False)
        scope.odds = odds
        self.branches -= 1
        scope.either(after, scope.moment())
        changed = assigned_names(node).union(*map(assigned_names, rest or ()))
        scope.started = {n: v for n, v in started.items() if n not in changed}
        return (*tested, Choice(probability, then, orelse, span, condition))

    def _condition(self, test: cst.BaseExpression) -> Value | None:
        try:
            condition = mask_of(test, self.scope)
        except NotUnderstood:
            return None
        return None if self.scope.type_of(condition).extents else condition

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


def _is_unread(statement: Statement) -> bool:
    return isinstance(statement, Unknown | Opaque)


def _ends(node: cst.If) -> bool:
    """Return whether a condition without else ends with an iteration, the loop or the function."""
    smalls = smalls_of(node.body) if node.orelse is None else []
    return bool(smalls) and isinstance(smalls[-1], cst.Continue | cst.Break | cst.Return)


def _before_continue(body: cst.BaseSuite) -> Sequence[cst.CSTNode]:
    """Return the statements of a suite, without a ``continue`` at its end."""
    *rest, last = body.body
    small = last.body if isinstance(last, cst.SimpleStatementLine) else [last]
    return [*rest, *(one for one in small if not isinstance(one, cst.Continue))]
