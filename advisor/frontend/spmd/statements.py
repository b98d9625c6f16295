"""Statements of an SPMD program, followed in order."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Many
from contextlib import contextmanager
from dataclasses import replace

import libcst as cst

from advisor.frontend.advise_comments.directives import Pragmas, spoken_of
from advisor.frontend.naming.bindings import assigned_names
from advisor.frontend.naming.names import dotted
from advisor.frontend.spmd.assignments import assign, augment, named, store
from advisor.frontend.spmd.expressions import evaluate
from advisor.frontend.spmd.functions import define, interpreted
from advisor.frontend.spmd.iteration import iteration, loop_over
from advisor.frontend.spmd.joining import join
from advisor.frontend.spmd.parameters import define_class, imported
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.searches import (
    changed_name,
    condition_of,
    found_by_steps,
    is_main_guard,
    note_found,
    note_ranks_asserted,
    note_ranks_behind,
)
from advisor.frontend.spmd.values import External, Number, Value
from advisor.ir.spmd.steps import Branch, Communicate, Leave, Loop, LoopKind, Step, Wait
from advisor.source import Span
from costdb.expr import Expr, ExprError, num


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
                assign(node, run)
            case cst.AnnAssign(value=cst.BaseExpression() as assigned):
                with named(run, node.target):
                    found = evaluate(assigned, run)
                store(node.target, found, run)
            case cst.AugAssign():
                augment(node, run)
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
                note_ranks_asserted(node, run)
            case cst.Global(names=names) | cst.Nonlocal(names=names):
                run.frame.given |= {item.name.value for item in names}
            case cst.Del():
                pass
            case _:
                pass

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

    # compound statements -------------------------------------------------------------------

    def _if(self, node: cst.If) -> None:
        run = self.run
        span = run.span(node.test)
        header = run.statement
        condition = condition_of(
            node.test, Span(header.start_line, 0, span.end_line, 0), run, self.pragmas
        )
        if is_main_guard(node.test):
            if not run.module:
                self.block(node.body)
            return
        saved = dict(run.frame.names), dict(run.kept)
        if condition.value == num(0):
            self._else(node.orelse)
            return
        with run.block() as then:
            leaves = self.block(node.body)
            first = tuple(then)
        if condition.value == num(1):
            run.steps[-1].extend(first)
            return
        after = run.frame.names, dict(run.kept)
        run.frame.names = dict(saved[0])
        run.kept = dict(saved[1])
        with run.block() as orelse:
            other_leaves = self._else(node.orelse)
            second = tuple(orelse)
        if leaves and not other_leaves:
            note_ranks_behind(condition, first, run)
        elif other_leaves and not leaves:
            run.frame.names, run.kept = after
        else:
            self._merge(after[0], after[1])
        if first or second:
            whole = Span(header.start_line, header.start_column, span.end_line, span.end_column)
            run.emit(Branch(condition, first, second, whole))

    def _merge(self, names: dict[str, Value], heap: dict[tuple[int, object], Value]) -> None:
        """Keep what holds on both of two paths: what was given, and what is there now."""
        run = self.run
        now = run.frame.names
        for name in dict.fromkeys((*names, *now)):
            one, other = names.get(name), now.get(name)
            if one is not other:
                now[name] = join(one, other, name, run)
        for key in dict.fromkeys((*heap, *run.kept)):
            one, other = heap.get(key), run.kept.get(key)
            if one is not other:
                run.kept[key] = join(one, other, str(key[1]), run)

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
                store(node.target, made.element, run)
                clocks = run.clocks
                self.block(node.body)
                steps = tuple(body) or interpreted(node.body, line)
                found = note_found(node, made, run)
            timing = run.clocks - clocks >= 2 and only_communicates(steps)
        for name, value in found.items():
            run.bind(name, value)
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
        before = dict(run.frame.names)
        with self._repeated(node.body), run.block() as body:
            evaluate(node.test, run)
            self.block(node.body)
            steps = tuple(body) or interpreted(node.body, header)
        counted = changed_name(node.body)
        sought = found_by_steps(node, before.get(counted), run) if counted else None
        if sought is not None:
            run.bind(*sought)
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
        heap = dict(run.kept)
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
                store(item.asname.name, found, self.run)
        self.block(node.body)

    def _try(self, node: cst.Try | cst.TryStar) -> None:
        run = self.run
        self.block(node.body)
        for handler in node.handlers:
            names, heap = dict(run.frame.names), dict(run.kept)
            with run.block() as handled:
                leaves = self.block(handler.body)
                ends = [s for s in handled if isinstance(s, Leave)]
            if leaves or ends:
                run.frame.names, run.kept = names, heap
            else:
                self._merge(names, heap)
        if node.orelse is not None:
            self.block(node.orelse.body)
        if node.finalbody is not None:
            self.block(node.finalbody.body)


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
