"""Statements of an SPMD program, followed in order, and their conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Many
from dataclasses import replace
from typing import Any

import libcst as cst

from advisor.frontend.bindings import assigned_names, dotted, names_of_its_own
from advisor.frontend.directives import spoken_of
from advisor.frontend.spmd.assignments import (
    assign,
    assigned,
    augment,
    define_class,
    imported,
    store,
)
from advisor.frontend.spmd.expressions import evaluate
from advisor.frontend.spmd.functions import define
from advisor.frontend.spmd.joining import carry, condition_of, meet
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.subscripts import interpreted, iteration, name_of
from advisor.frontend.spmd.values import Function, Number, Record, Value
from advisor.frontend.trees import is_loop, nodes_in
from advisor.ir.spmd.steps import (
    Branch,
    Communicate,
    Condition,
    Leave,
    Loop,
    LoopKind,
    Step,
    Wait,
    walk,
)
from advisor.source import Span
from costdb.expr import Expr, ExprError, ceil_div, logical_not, num
from costdb.expr.functions import Equal
from costdb.expr.nodes import Num, Sym

# What conditions tell of how many ranks there are.


def _ranks_from(condition: Expr, origin: str, run: Run) -> None:
    """Note the number of ranks that a condition which must hold states."""
    if isinstance(condition, Equal):
        sides = (condition.left, condition.right)
        for one, other in (sides, sides[::-1]):
            value = run.symbols.value(other)
            if one == Sym("P") and value is not None:
                run.symbols.note_ranks(value, origin, run.statement)


def note_ranks_behind(condition: Condition, steps: tuple[Step, ...], run: Run) -> None:
    """Note what must hold behind ``if size != 4: exit``."""
    ends = [s for s in steps if isinstance(s, Leave) and s.how in ("exit", "abort", "raise")]
    value = condition.value
    if ends and value is not None:
        # a negation loses its sign
        match value:
            case Equal(left=otherwise, right=right) if right == num(0):
                pass
            case _:
                otherwise = logical_not(value)
        _ranks_from(otherwise, f"line {condition.span.start_line}", run)


def note_ranks_asserted(node: cst.Assert, run: Run) -> None:
    """Note the number of ranks that an assertion states; what it computes is no work."""
    with run.block():
        found = evaluate(node.test, run)
    if isinstance(found, Number) and found.expr is not None:
        _ranks_from(found.expr, f"assert, line {run.statement.start_line}", run)


def block(body: cst.BaseSuite | cst.Module, run: Run) -> bool:
    """Follow a block; return whether it surely leaves the function or the loop."""
    marks: list[tuple[int, int, int]] = []
    leaves = False
    for statement in body.body:
        before = run.clocks
        _guarded(statement, run)
        marks.append((before, run.clocks, len(run.steps[-1])))
        if _leaves(statement):
            leaves = True
            break
    _timing(marks, run)
    return leaves


def _guarded(statement: cst.BaseStatement | cst.BaseSmallStatement, run: Run) -> None:
    """Follow a statement; sizes that contradict each other make it an unknown."""
    depth, frames, targets = run.frame.depth, len(run.frames), run.targets
    try:
        _statement(statement, run)
    except (ExprError, ArithmeticError) as error:
        del run.frames[frames:]
        run.frame.depth, run.targets = depth, targets
        where = run.span(statement)
        line = Span(where.start_line, where.start_column, where.start_line, where.start_column)
        run.unknown(f"sizes that contradict each other: {error}", line)


def _timing(marks: list[tuple[int, int, int]], run: Run) -> None:
    """Mark loops that only communicate, between two readings of a clock."""
    steps = run.steps[-1]
    if not marks or marks[-1][1] - marks[0][0] < 2:
        return
    begin = 0
    for before, after, end in marks:
        for place in range(begin, end):
            step = steps[place]
            timed = marks[0][0] < before and after < marks[-1][1] and before == after
            if isinstance(step, Loop) and timed and only_communicates(step.body):
                steps[place] = replace(step, timing=True)
        begin = end


def _statement(node: cst.BaseStatement | cst.BaseSmallStatement, run: Run) -> None:
    if isinstance(node, cst.SimpleStatementLine):
        for one in nodes_in(node):
            if isinstance(one, cst.Call) and is_loop(one):
                _note_loop(one.args[0].value, run)
        for small in node.body:
            _statement(small, run)
        return
    run.statement = run.span(node)
    follow = _FOLLOWED.get(type(node))
    if follow is not None:
        follow(node, run)
    if isinstance(node, cst.Assign | cst.AnnAssign | cst.AugAssign) and run.file is run.home:
        run.bound[node] = {name: run.lookup(name) for name in assigned_names(node)}


# simple statements ---------------------------------------------------------------------


def _expression(node: cst.Expr, run: Run) -> None:
    if not isinstance(node.value, cst.SimpleString | cst.ConcatenatedString):
        evaluate(node.value, run)


def _annotated(node: cst.AnnAssign, run: Run) -> None:
    if node.value is not None:
        store(node.target, assigned([node.target], node.value, run), run)


def _import(node: cst.Import | cst.ImportFrom, run: Run) -> None:
    for name, meaning in imported(node, run):
        run.bind(name, meaning)


def _given(node: cst.Global | cst.Nonlocal, run: Run) -> None:
    run.frame.given |= {item.name.value for item in node.names}


def _leaving(how: str) -> Callable[[cst.CSTNode, Run], None]:
    def leave(node: cst.CSTNode, run: Run) -> None:
        run.emit(Leave(how, run.span(node)))
        if how != "raise":
            run.frame.left.append((how, run.state()))

    return leave


def _return(node: cst.Return, run: Run) -> None:
    if node.value is not None:
        run.frame.returned.append(evaluate(node.value, run))
        parts = node.value.elements if isinstance(node.value, cst.Tuple) else ()
        names = {dotted(node.value), *(dotted(element.value) for element in parts)}
        run.frame.returned_names |= {name for name in names if name}
    _leaving("return")(node, run)


# compound statements -------------------------------------------------------------------


def _if(node: cst.If, run: Run) -> None:
    span = run.span(node.test)
    header = run.statement
    condition = condition_of(node.test, range(header.start_line, span.end_line + 1), run)
    if (
        isinstance(node.test, cst.Comparison)
        and isinstance(node.test.left, cst.Name)
        and node.test.left.value == "__name__"
    ):
        if not run.file.module:
            block(node.body, run)
        return
    saved = run.state()
    if condition.value == num(0):
        _else(node.orelse, run)
        return
    with run.block() as then:
        leaves = block(node.body, run)
        first = tuple(then)
    if condition.value == num(1):
        run.steps[-1].extend(first)
        return
    after = run.state()
    run.restore(saved)
    with run.block() as orelse:
        other_leaves = _else(node.orelse, run)
        second = tuple(orelse)
    if leaves and not other_leaves:
        note_ranks_behind(condition, first, run)
    elif other_leaves and not leaves:
        run.restore(after)
    else:
        meet(after, run)
    if first or second:
        run.emit(Branch(condition, first, second, _up_to(span, header)))


def _up_to(last: Span, statement: Span) -> Span:
    """Return the header of a statement."""
    return Span(statement.start_line, statement.start_column, last.end_line, last.end_column)


def _else(node: cst.If | cst.Else | None, run: Run) -> bool:
    if node is None:
        return False
    if isinstance(node, cst.If):
        run.statement = run.span(node)
        _if(node, run)
        return False
    return block(node.body, run)


def _for(node: cst.For, run: Run) -> None:
    name, text = name_of(node.target), run.text(node.iter)
    line = _up_to(run.span(node.iter), run.statement)
    made, given = iteration(run.evaluate(node.iter, run), name, run, text)
    trips = spoken_of(run.file.pragmas.trips, range(line.start_line, line.end_line + 1))
    if trips is not None:
        made = replace(made, trips=trips, why="")
    _note_loop(node, run)
    for _ in _repeated(node.body, run):
        with run.block() as body:
            store(node.target, given, run)
            clocks = run.clocks
            block(node.body, run)
            steps = tuple(body) or interpreted(node.body, line)
        timing = run.clocks - clocks >= 2 and only_communicates(steps)
    _note_sent(node, steps, run)
    if steps:
        run.emit(replace(made, body=steps, span=line, timing=timing))
    if node.orelse is not None:
        block(node.orelse.body, run)


def _note_loop(node: cst.CSTNode, run: Run) -> None:
    """Note what names denote where a loop of the program itself begins, in its last round."""
    if run.file is not run.home:
        return
    if node not in run.loops:
        run.loops[node] = dict.fromkeys(_named_in(node, run, {node}))
    names = run.loops[node]
    for name in names:
        names[name] = _denoted(name, run)


def _named_in(node: cst.CSTNode, run: Run, known: set[cst.CSTNode]) -> Iterator[str]:
    """Yield names in a piece of source, and what the functions of the file that it calls read."""
    found = (dotted(one) for one in nodes_in(node) if isinstance(one, cst.Name | cst.Attribute))
    for name in (one for one in found if one and one.count(".") < 2):
        yield name
        called = _denoted(name, run)
        if not isinstance(called, Function) or called.owner is not None or called.module:
            continue
        if called.node not in known:
            known.add(called.node)
            own = names_of_its_own(called.node)
            inside = _named_in(called.node.body, run, known)
            yield from (one for one in inside if one.partition(".")[0] not in own)


def _denoted(name: str, run: Run) -> Value | None:
    frame = run.frame
    first, _, attribute = name.partition(".")
    known = (frame.names, frame.shared, run.frames[0].names)
    found = next((names[first] for names in known if first in names), None)
    if attribute:
        return run.entry(found.number, attribute) if isinstance(found, Record) else None
    return found


def _note_sent(node: cst.For | cst.While, steps: tuple[Step, ...], run: Run) -> None:
    """Note a loop that sends something."""
    if any(isinstance(visit.step, Communicate) for visit in walk(steps, into_calls=True)):
        run.sending.add(node)


def _while(node: cst.While, run: Run) -> None:
    header = run.statement
    trips = spoken_of(run.file.pragmas.trips, range(header.start_line, header.start_line + 1))
    trips = _counted(node, run) if trips is None else trips
    _note_loop(node, run)
    for _ in _repeated(node.body, run):
        with run.block() as body:
            evaluate(node.test, run)
            block(node.body, run)
            steps = tuple(body) or interpreted(node.body, header)
    line = _up_to(run.span(node.test), header)
    _note_sent(node, steps, run)
    why = f"how often `while {run.text(node.test)}` repeats is not known"
    end = num(0) if trips is None else trips
    run.emit(Loop(LoopKind.WHILE, "", num(0), end, 1, trips, steps, line, why))
    if node.orelse is not None:
        block(node.orelse.body, run)


def _counted(node: cst.While, run: Run) -> Expr | None:
    """Return how often ``while i < n: ...; i += 1`` repeats; None for other loops."""
    match node.test:
        case cst.Comparison(
            cst.Name(value=name), [cst.ComparisonTarget(cst.LessThan(), comparator=bound)]
        ):
            first = run.lookup(name)
        case _:
            return None
    changing = [part for part in node.body.body if name in assigned_names(part)]
    match changing:
        case [cst.SimpleStatementLine([cst.AugAssign(cst.Name(), cst.AddAssign(), value=by)])]:
            with run.block():
                low, high, step = (
                    run.number(one)
                    for one in (first, run.evaluate(bound, run), run.evaluate(by, run))
                )
            if low is not None and high is not None and isinstance(step, Num) and step.value > 0:
                return ceil_div(high - low, step)
    return None


MOST_ROUNDS = 5
"""Times that the body of a loop is followed before what it still changes becomes unknown."""


def _repeated(body: cst.BaseSuite, run: Run) -> Iterator[None]:
    """Follow the body of a loop until what it leaves behind is what it was followed with.

    Numbers that it changes have no known value, before or after.
    """
    frame, header, before = run.frame, run.statement, run.state()
    for name in assigned_names(body) & frame.names.keys():
        found = frame.names[name]
        if isinstance(found, Number):
            why, varies = f"`{name}` changes within a loop", run.varies(found)
            made = run.symbols.unknown(name, why, header, varies=varies)
            frame.names[name] = Number(made, found.dtype, found.nobody, varies)
    around, asked = frame.left, frame.missed
    for rest in reversed(range(MOST_ROUNDS)):
        head = run.state()
        frame.left, frame.missed, run.statement = [], set(), header
        frame.depth += 1
        yield
        frame.depth -= 1
        run.statement, ends = header, run.state()
        for how, state in frame.left:
            if how == "continue":
                meet(state, run)
        if not carry(head, frame.missed, run, last=not rest):
            break
    run.restore(ends)
    for state in (before, *(state for how, state in frame.left if how != "return")):
        meet(state, run)
    frame.left = [*around, *((how, state) for how, state in frame.left if how == "return")]
    frame.missed |= asked


def _with(node: cst.With, run: Run) -> None:
    for item in node.items:
        found = evaluate(item.item, run)
        if item.asname is not None:
            store(item.asname.name, found, run)
    block(node.body, run)


def _try(node: cst.Try | cst.TryStar, run: Run) -> None:
    # what raises may be any of its statements
    first = run.state()
    block(node.body, run)
    for handler in node.handlers:
        before = run.state()
        meet(first, run)
        with run.block() as handled:
            leaves = block(handler.body, run)
            leaves = leaves or any(isinstance(step, Leave) for step in handled)
        if leaves:
            run.restore(before)
        else:
            meet(before, run)
    for last in (node.orelse, node.finalbody):
        if last is not None:
            block(last.body, run)


def _match(node: cst.Match, run: Run) -> None:
    run.unknown("a match statement is not followed", run.span(node.subject))


_FOLLOWED: dict[type[cst.CSTNode], Callable[[Any, Run], object]] = {
    cst.Expr: _expression,
    cst.Assign: assign,
    cst.AnnAssign: _annotated,
    cst.AugAssign: augment,
    cst.Import: _import,
    cst.ImportFrom: _import,
    cst.Return: _return,
    cst.Raise: _leaving("raise"),
    cst.Break: _leaving("break"),
    cst.Continue: _leaving("continue"),
    cst.Assert: note_ranks_asserted,
    cst.Global: _given,
    cst.Nonlocal: _given,
    cst.FunctionDef: lambda node, run: run.bind(node.name.value, define(node, run)),
    cst.ClassDef: lambda node, run: run.bind(node.name.value, define_class(node, run)),
    cst.If: _if,
    cst.For: _for,
    cst.While: _while,
    cst.With: _with,
    cst.Try: _try,
    cst.TryStar: _try,
    cst.Match: _match,
}
"""By kind of statement; others do nothing that is followed."""


def only_communicates(steps: Many[Step]) -> bool:
    """Return whether steps do nothing but communicate, as in benchmarks of a network."""
    return bool(steps) and all(_communicates(step) for step in steps)


def _communicates(step: Step) -> bool:
    match step:
        case Loop(body=body):
            return only_communicates(body)
        case Branch(then=then, orelse=orelse):
            return all(only_communicates(part) for part in (then, orelse) if part)
    return isinstance(step, Communicate | Wait)


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
