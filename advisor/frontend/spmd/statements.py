"""Statements of an SPMD program, followed in order."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Many
from contextlib import contextmanager
from dataclasses import replace

import libcst as cst

from advisor.frontend.bindings import assigned_names
from advisor.frontend.names import dotted
from advisor.frontend.pragmas import Pragmas, spoken_of
from advisor.frontend.spmd import elementwise
from advisor.frontend.spmd.arithmetic import combine
from advisor.frontend.spmd.expressions import evaluate, part_of, promoted, slices
from advisor.frontend.spmd.functions import define, define_class
from advisor.frontend.spmd.imports import imported
from advisor.frontend.spmd.indexing import part_of_view
from advisor.frontend.spmd.iteration import iteration, loop_over
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    Array,
    External,
    Number,
    Opaque,
    Record,
    Sequence,
    Text,
    Value,
)
from advisor.ir.spmd.memory import View
from advisor.ir.spmd.steps import (
    Branch,
    Communicate,
    Compute,
    Condition,
    ConditionKind,
    Copy,
    Leave,
    Loop,
    LoopKind,
    Step,
    Wait,
)
from advisor.source import Span
from costdb.expr import Expr, ExprError, logical_not, num
from costdb.expr.functions import Equal
from costdb.expr.nodes import Num, Sym

SIZE_FROM = 3
"""Numbers from here on that a name is given are sizes, which a user may want to change."""


class Statements:
    """Follows blocks of statements."""

    def __init__(self, run: Run, pragmas: Pragmas) -> None:
        self.run = run
        self.pragmas = pragmas

    def block(self, body: cst.BaseSuite | cst.Module) -> bool:
        """Follow a block; return whether it surely leaves the function or the loop."""
        run = self.run
        marks: list[tuple[int, int, int]] = []
        leaves = False
        for statement in body.body:
            before = run.clocks
            self._guarded(statement)
            marks.append((before, run.clocks, len(run.steps[-1])))
            if _leaves(statement):
                leaves = True
                break
        self._timing(marks)
        return leaves

    def _guarded(self, statement: cst.BaseStatement | cst.BaseSmallStatement) -> None:
        """Follow a statement; sizes that contradict each other make it an unknown."""
        run = self.run
        depth, frames, targets = run.frame.depth, len(run.frames), run.targets
        try:
            self._statement(statement)
        except (ExprError, ArithmeticError) as error:
            del run.frames[frames:]
            run.frame.depth, run.targets = depth, targets
            where = run.span(statement)
            line = Span(where.start_line, where.start_column, where.start_line, where.start_column)
            run.unknown(f"sizes that contradict each other: {error}", line)

    def _timing(self, marks: list[tuple[int, int, int]]) -> None:
        """Mark loops that only communicate, between two readings of a clock."""
        steps = self.run.steps[-1]
        if not marks or marks[-1][1] - marks[0][0] < 2:
            return
        begin = 0
        for before, after, end in marks:
            for place in range(begin, end):
                step = steps[place]
                timed = marks[0][0] < before and after < marks[-1][1] and before == after
                if isinstance(step, Loop) and timed and only_communicates(step.body):
                    steps[place] = _timed(step)
            begin = end

    def _statement(self, node: cst.BaseStatement | cst.BaseSmallStatement) -> None:
        run = self.run
        if isinstance(node, cst.SimpleStatementLine):
            for small in node.body:
                run.statement = run.span(small)
                self._small(small)
            return
        run.statement = run.span(node)
        match node:
            case cst.FunctionDef():
                run.bind(node.name.value, define(node, run))
            case cst.ClassDef():
                run.bind(node.name.value, define_class(node, run))
            case cst.If():
                self._if(node)
            case cst.For():
                self._for(node)
            case cst.While():
                self._while(node)
            case cst.With():
                self._with(node)
            case cst.Try() | cst.TryStar():
                self._try(node)
            case cst.Match():
                run.unknown("a match statement is not followed", run.span(node.subject))
            case cst.BaseSmallStatement():
                self._small(node)

    # simple statements ---------------------------------------------------------------------

    def _small(self, node: cst.BaseSmallStatement) -> None:
        run = self.run
        match node:
            case cst.Expr(value=value):
                if not isinstance(value, cst.SimpleString | cst.ConcatenatedString):
                    evaluate(value, run)
            case cst.Assign():
                self._assign(node)
            case cst.AnnAssign(value=cst.BaseExpression() as assigned):
                with self._named(node.target):
                    found = evaluate(assigned, run)
                self.store(node.target, found)
            case cst.AugAssign():
                self._augmented(node)
            case cst.Import() | cst.ImportFrom():
                for name, meaning in imported(node, run):
                    run.bind(name, meaning)
            case cst.Return():
                self._return(node)
            case cst.Raise():
                run.emit(Leave("raise", run.span(node)))
            case cst.Break():
                run.emit(Leave("break", run.span(node)))
            case cst.Continue():
                run.emit(Leave("continue", run.span(node)))
            case cst.Assert():
                self._assert(node)
            case cst.Global(names=names) | cst.Nonlocal(names=names):
                run.frame.given |= {item.name.value for item in names}
            case cst.Del():
                pass
            case _:
                pass

    @contextmanager
    def _named(self, *targets: cst.BaseExpression) -> Iterator[None]:
        """Let what is made now be called as what it is assigned to."""
        saved = self.run.targets
        names = [self._name_of(target) for target in targets]
        self.run.targets = tuple(name for name in names if name)
        yield
        self.run.targets = saved

    def _name_of(self, target: cst.BaseExpression) -> str:
        if isinstance(target, cst.Subscript):
            # an entry of a dictionary or list is called by its text, a part of an array is not
            value = self.run.plain(target.value)
            return self.run.text(target) if isinstance(value, Record | Sequence) else ""
        return dotted(target) or ""

    def _assign(self, node: cst.Assign) -> None:
        run = self.run
        with self._named(*(target.target for target in node.targets)):
            found = evaluate(node.value, run)
        found = self._size(node, found)
        for target in node.targets:
            self.store(target.target, found)

    def _size(self, node: cst.Assign, found: Value) -> Value:
        """Give a name's literal a symbol, so that it can be changed and is told of."""
        target = node.targets[0].target
        if not isinstance(found, Number) or found.expr is None:
            return found
        name = dotted(target) or ""
        line = self.run.statement.start_line
        if isinstance(found.expr, Num) and name and found.dtype in ("int", "float"):
            value = found.expr.value
            if value == int(value) and value >= SIZE_FROM:
                known = self.run.symbols.known(name, int(value), f"line {line}", self.run.statement)
                return Number(known, found.dtype)
        return found

    def store(self, target: cst.BaseExpression, value: Value) -> None:
        """Let a target denote or hold a value."""
        run = self.run
        match target:
            case cst.Name(value=name):
                if isinstance(value, Number) and value.expr is None and value.dtype == "int":
                    why = f"`{name}` is not known"
                    made = run.symbols.unknown(name, why, run.statement, varies=value.varies)
                    value = Number(made, "int", value.nobody, value.varies)
                run.bind(name, value)
            case cst.Attribute():
                owner = evaluate(target.value, run)
                if isinstance(owner, Record):
                    run.heap[owner.number, target.attr.value] = value
                elif isinstance(owner, Array) and target.attr.value == "shape":
                    run.rebind(target.value, Opaque("an array whose shape was changed"))
            case cst.Subscript():
                self._store_part(target, value)
            case cst.Tuple() | cst.List():
                count = len(target.elements)
                if self._unpacked_shape(target, value):
                    return
                for position, element in enumerate(target.elements):
                    if isinstance(element, cst.StarredElement):
                        self.store(element.value, Opaque("the rest of a sequence"))
                    else:
                        self.store(element.value, part_of(value, position, count, run))
            case cst.StarredElement():
                self.store(target.value, value)

    def _unpacked_shape(self, target: cst.Tuple | cst.List, value: Value) -> bool:
        """Name the extents of an array of unknown shape after what they are unpacked to."""
        if not isinstance(value, Opaque) or not value.text.endswith(".shape"):
            return False
        owner = value.text.removesuffix(".shape")
        names = [e.value.value for e in target.elements if isinstance(e.value, cst.Name)]
        if len(names) != len(target.elements):
            return False
        run = self.run
        view = run.given_array(owner, run.statement, len(names), None)
        for name, extent in zip(names, view.buffer.extents or (), strict=True):
            run.bind(name, Number(extent))
        found = run.lookup(owner) if "." not in owner else None
        if isinstance(found, Opaque):
            run.bind(owner, Array(view))
        return True

    def _store_part(self, target: cst.Subscript, value: Value) -> None:
        run = self.run
        span = run.statement
        owner = evaluate(target.value, run)
        index = slices(target.slice, run)
        if isinstance(owner, Opaque) and not owner.foreign:
            owner = promoted(owner, index, target.value, run)
        match owner:
            case Array(view):
                place = part_of_view(view, index, run, run.span(target), run.text(target))
                self._store_elements(place, view, value, span)
            case Record(number=number):
                key: object = None
                if isinstance(index, Text):
                    key = index.value
                elif isinstance(index, Number):
                    key = run.integer(index)
                run.heap[number, key] = value
            case Sequence():
                run.rebind(target.value, self._replaced(owner, index, value))
            case _:
                pass

    def _replaced(self, owner: Sequence, index: Value, value: Value) -> Value:
        position = self.run.integer(index)
        inside = owner.items is not None and position is not None
        if inside and -len(owner.items or ()) <= (position or 0) < len(owner.items or ()):
            items = list(owner.items or ())
            items[position or 0] = value
            return Sequence(tuple(items), is_list=owner.is_list)
        known = owner.items or ((owner.element,) if owner.element is not None else ())
        element = value
        for item in known:
            if item is not None:
                element = self.run.join(element, item, "element")
        length = owner.length if owner.items is None else num(len(owner.items))
        return Sequence(None, element, length, owner.is_list)

    def _store_elements(self, place: View | None, view: View, value: Value, span: Span) -> None:
        run = self.run
        if place is None:
            place = View(view.buffer, None, run.text_of(span).partition("=")[0].strip(), span)
        if isinstance(value, Array):
            run.emit(Copy(place, value.view, span))
        elif place.shape == ():
            run.emit(Compute(place, (), num(0), "element", span))
        else:
            run.emit(Compute(place, (), num(0), "fill", span))

    def _augmented(self, node: cst.AugAssign) -> None:
        run = self.run
        operator = type(node.operator).__name__.removesuffix("Assign")
        left = evaluate(node.target, run)
        right = evaluate(node.value, run)
        span = run.statement
        if isinstance(left, Array):
            elementwise.elementwise((left, right), run, span, operator, target=left.view)
            return
        found = combine(operator, left, right, run, span)
        if isinstance(node.target, cst.Subscript):
            owner = evaluate(node.target.value, run)
            if isinstance(owner, Array):
                run.emit(Compute(owner.view, (owner.view,), num(1), "element", span))
                return
            self._store_part(node.target, found)
            return
        self.store(node.target, found)

    def _return(self, node: cst.Return) -> None:
        run = self.run
        found: Value = External("none")
        if node.value is not None:
            found = evaluate(node.value, run)
            parts = node.value.elements if isinstance(node.value, cst.Tuple) else ()
            names = {dotted(e.value) or "" for e in parts} | {dotted(node.value) or ""}
            run.frame.returned_names |= names - {""}
            run.frame.returned.append(found)
        run.emit(Leave("return", run.span(node)))

    def _assert(self, node: cst.Assert) -> None:
        run = self.run
        with run.block():
            found = evaluate(node.test, run)
        if isinstance(found, Number) and found.expr is not None:
            self._ranks_from(found.expr, f"assert, line {run.statement.start_line}")

    def _ranks_from(self, condition: Expr, origin: str) -> None:
        """Note the number of ranks that a condition which must hold states."""
        if isinstance(condition, Equal):
            sides = (condition.left, condition.right)
            for one, other in (sides, sides[::-1]):
                value = self.run.symbols.value(other)
                if one == Sym("P") and value is not None:
                    self.run.symbols.note_ranks(value, origin, self.run.statement)

    # compound statements -------------------------------------------------------------------

    def condition(self, test: cst.BaseExpression, header: Span) -> Condition:
        """Return the condition of a branch."""
        run = self.run
        found = evaluate(test, run)
        value = found.expr if isinstance(found, Number | Opaque) else None
        varies = isinstance(found, Number | Opaque) and found.varies
        kind = ConditionKind.UNIFORM
        if varies or run.symbols.varies(value):
            kind = ConditionKind.RANK
        elif not isinstance(found, Number):
            kind = ConditionKind.UNKNOWN
        single = None
        if isinstance(value, Equal):
            for one, other in ((value.left, value.right), (value.right, value.left)):
                if isinstance(one, Sym) and one.name.startswith("rank"):
                    single = other
        lines = range(header.start_line, header.end_line + 1)
        probability = spoken_of(self.pragmas.probabilities, lines)
        if not isinstance(found, Number) or found.dtype != "bool":
            value = (
                None if value is None or not isinstance(value, Num) else num(int(value.value != 0))
            )
        return Condition(kind, run.text(test), run.span(test), value, single, probability)

    def _if(self, node: cst.If) -> None:
        run = self.run
        span = run.span(node.test)
        header = run.statement
        condition = self.condition(node.test, Span(header.start_line, 0, span.end_line, 0))
        if _is_main_guard(node.test):
            self.block(node.body)
            return
        saved = dict(run.frame.names), dict(run.heap)
        if condition.value == num(0):
            self._else(node.orelse)
            return
        with run.block() as then:
            leaves = self.block(node.body)
            first = tuple(then)
        if condition.value == num(1):
            run.steps[-1].extend(first)
            return
        after = run.frame.names, dict(run.heap)
        run.frame.names = dict(saved[0])
        run.heap = dict(saved[1])
        with run.block() as orelse:
            other_leaves = self._else(node.orelse)
            second = tuple(orelse)
        if leaves and not other_leaves:
            self._aborts(condition, first)
        elif other_leaves and not leaves:
            run.frame.names, run.heap = after
        else:
            self._merge(after[0], after[1])
        if first or second:
            whole = Span(header.start_line, header.start_column, span.end_line, span.end_column)
            run.emit(Branch(condition, first, second, whole))

    def _aborts(self, condition: Condition, steps: tuple[Step, ...]) -> None:
        """Note what must hold behind ``if size != 4: exit``."""
        ends = [s for s in steps if isinstance(s, Leave) and s.how in ("exit", "abort", "raise")]
        value = condition.value
        if ends and value is not None:
            self._ranks_from(_negated(value), f"line {condition.span.start_line}")

    def _merge(self, names: dict[str, Value], heap: dict[tuple[int, object], Value]) -> None:
        """Keep what holds on both of two paths: what was given, and what is there now."""
        run = self.run
        now = run.frame.names
        for name in dict.fromkeys((*names, *now)):
            one, other = names.get(name), now.get(name)
            if one is not other:
                now[name] = run.join(one, other, name)
        for key in dict.fromkeys((*heap, *run.heap)):
            one, other = heap.get(key), run.heap.get(key)
            if one is not other:
                run.heap[key] = run.join(one, other, str(key[1]))

    def _else(self, node: cst.If | cst.Else | None) -> bool:
        if node is None:
            return False
        if isinstance(node, cst.If):
            self.run.statement = self.run.span(node)
            self._if(node)
            return False
        return self.block(node.body)

    def _for(self, node: cst.For) -> None:
        run = self.run
        header = run.statement
        made = iteration(evaluate(node.iter, run), node.target, run, run.text(node.iter))
        span = run.span(node.iter)
        line = Span(header.start_line, header.start_column, span.end_line, span.end_column)
        trips = spoken_of(self.pragmas.trips, range(line.start_line, line.end_line + 1))
        with self._repeated(node.body):
            with run.block() as body:
                self.store(node.target, made.element)
                clocks = run.clocks
                self.block(node.body)
                steps = tuple(body)
            timing = run.clocks - clocks >= 2 and only_communicates(steps)
        loop = loop_over(made, steps, line, timing=timing)
        if trips is not None:
            loop = _stated(loop, trips)
        if steps:
            run.emit(loop)
        if node.orelse is not None:
            self.block(node.orelse.body)

    def _while(self, node: cst.While) -> None:
        run = self.run
        header = run.statement
        trips = spoken_of(self.pragmas.trips, range(header.start_line, header.start_line + 1))
        with self._repeated(node.body), run.block() as body:
            evaluate(node.test, run)
            self.block(node.body)
            steps = tuple(body)
        span = run.span(node.test)
        line = Span(header.start_line, header.start_column, span.end_line, span.end_column)
        text = run.text(node.test)
        why = f"how often `while {text}` repeats is not known"
        end = num(0) if trips is None else trips
        run.emit(Loop(LoopKind.WHILE, "", num(0), end, 1, trips, steps, line, why))

    @contextmanager
    def _repeated(self, body: cst.BaseSuite) -> Iterator[None]:
        """Follow the body of a loop once, for all its iterations.

        Numbers that it changes have no known value, before or after; arrays are taken as they
        are at first.
        """
        run = self.run
        before = dict(run.frame.names)
        for name in assigned_names(body) & run.frame.names.keys():
            self._unsettle(name)
        heap = dict(run.heap)
        run.frame.depth += 1
        yield
        run.frame.depth -= 1
        self._merge(before, heap)

    def _unsettle(self, name: str) -> None:
        found = self.run.frame.names[name]
        if isinstance(found, Number):
            varies = found.varies or self.run.symbols.varies(found.expr)
            why = f"`{name}` changes within a loop"
            made = self.run.symbols.unknown(name, why, self.run.statement, varies=varies)
            self.run.frame.names[name] = Number(made, found.dtype, found.nobody, varies)

    def _with(self, node: cst.With) -> None:
        for item in node.items:
            found = evaluate(item.item, self.run)
            if item.asname is not None:
                self.store(item.asname.name, found)
        self.block(node.body)

    def _try(self, node: cst.Try | cst.TryStar) -> None:
        run = self.run
        self.block(node.body)
        for handler in node.handlers:
            names, heap = dict(run.frame.names), dict(run.heap)
            with run.block() as handled:
                leaves = self.block(handler.body)
                ends = [s for s in handled if isinstance(s, Leave)]
            if leaves or ends:
                run.frame.names, run.heap = names, heap
            else:
                self._merge(names, heap)
        if node.orelse is not None:
            self.block(node.orelse.body)
        if node.finalbody is not None:
            self.block(node.finalbody.body)


def _negated(condition: Expr) -> Expr:
    """Return what holds where a condition does not; a negation loses its sign."""
    if isinstance(condition, Equal) and condition.right == num(0):
        return condition.left
    return logical_not(condition)


def _stated(loop: Loop, trips: Expr) -> Loop:
    return replace(loop, trips=trips, why="")


def _timed(loop: Loop) -> Loop:
    return replace(loop, timing=True)


def only_communicates(steps: Many[Step]) -> bool:
    """Return whether steps do nothing but communicate, as in benchmarks of a network."""
    found = False
    for step in steps:
        match step:
            case Communicate() | Wait():
                found = True
            case Loop(body=body):
                if not only_communicates(body):
                    return False
                found = True
            case Branch(then=then, orelse=orelse):
                parts = [part for part in (then, orelse) if part]
                if not all(only_communicates(part) for part in parts):
                    return False
                found = True
            case _:
                return False
    return found


def _leaves(node: cst.BaseStatement | cst.BaseSmallStatement) -> bool:
    if isinstance(node, cst.SimpleStatementLine):
        return any(
            isinstance(small, cst.Return | cst.Raise | cst.Break | cst.Continue) or _is_exit(small)
            for small in node.body
        )
    return False


def _is_exit(node: cst.BaseSmallStatement) -> bool:
    if not isinstance(node, cst.Expr) or not isinstance(node.value, cst.Call):
        return False
    called = dotted(node.value.func) or ""
    return called in ("exit", "quit", "sys.exit", "os._exit") or called.endswith(".Abort")


def _is_main_guard(test: cst.BaseExpression) -> bool:
    return (
        isinstance(test, cst.Comparison)
        and isinstance(test.left, cst.Name)
        and test.left.value == "__name__"
    )
