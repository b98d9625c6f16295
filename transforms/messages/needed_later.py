"""What every iteration of a loop asks all ranks for, and few need, or only what is behind it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from advisor.ir.changes import Names, root_of
from advisor.ir.functions import names_around
from advisor.ir.kernel import SourceContext
from advisor.ir.needed import Needed
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import (
    Branch,
    Communicate,
    ConditionKind,
    Loop,
    LoopKind,
    Op,
    Step,
    walk,
)
from advisor.source import Edit, Span, assigned_names, every
from costdb.expr import free_symbols
from costdb.records import dataclass, replace
from transforms.kit import rewrite
from transforms.kit.names import reads_clock
from transforms.kit.programs import offer, shortened
from transforms.messages.iterations import REDUCTIONS

_BROUGHT = frozenset({Op.GATHER, Op.ALLGATHER, *REDUCTIONS})
_Loop = ast.For | ast.While


def needed_later(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield what a loop may do behind it, or in the branch that uses it."""
    lines = program.context.lines
    for visit in function.visits():
        loop = visit.step
        if not isinstance(loop, Loop) or loop.timing or loop.kind is LoopKind.THREADS:
            continue
        node = rewrite.statement_at(loop.span, program.context)
        if not isinstance(node, _Loop):
            continue
        names = names_around(program.context.source, node.lineno, reduces=True)
        calls = dict(_calls(loop, program))
        found = _Iteration(node, names, calls, Needed(names, _both, calls=calls))
        for place in (node, *(one for one in node.body if isinstance(one, ast.If))):
            moved = found.needed_in(place)
            spans = [rewrite.span_of(one, lines) for one in moved]
            steps = tuple(s for s in loop.body if any(one.contains(s.span) for one in spans))
            inner = (one.step for one in walk(steps, into_calls=True))
            asked = [one for one in inner if isinstance(one, Communicate)]
            then = steps if place is node else _rarely(place, steps, loop)
            if not asked or not then:
                continue
            last = place is not node and found.is_needed_behind(moved)
            once = "once, behind the loop"
            changes = found.changes_before(place, moved)
            where = once if place is node else f"in the branch of line {place.lineno}"
            where = "in the last iteration only" if changes and place is node else where
            made = ", ".join(dict.fromkeys(name for one in moved for name in assigned_names(one)))
            made = made or shortened(asked[0].receive.text if asked[0].receive else "")
            yield offer(
                function,
                visit.loops,
                asked[0].span if spans[0].contains(asked[0].span) else spans[0],
                f"{'reduce' if asked[0].op in REDUCTIONS else 'gather'} `{made}` {where}"
                + f", and {once}" * last,
                "every iteration asks all ranks for it, and nothing looks at it "
                + ("before the loop has ended" if place is node else "elsewhere"),
                (replace(loop, body=steps),),
                (*then, *(steps if last else ())),
                "what comes last is the same; a loop without any iteration brought nothing"
                if place is node or last
                else "the same is computed of the same where it is used",
                "it is used in two places" if last else found.edits(place, moved, program),
            )


def _calls(loop: Loop, program: Program) -> Iterator[tuple[ast.stmt, frozenset[str]]]:
    """Yield collectives that stand in a loop, and the names of what they bring."""
    for step in loop.body:
        if isinstance(step, Communicate) and step.op in _BROUGHT and step.blocking:
            node = rewrite.statement_at(step.statement, program.context)
            got = step.result if step.pickled else step.receive and step.receive.text
            if node is not None and got and got.isidentifier():
                yield node, frozenset((got,))


def _rarely(place: ast.stmt, steps: tuple[Step, ...], loop: Loop) -> tuple[Step, ...]:
    """Return steps in the branch that a loop takes in some iterations, the same on all ranks."""
    for one in loop.body:
        if isinstance(one, Branch) and one.span.start_line == place.lineno:
            value, branch = one.condition.value, replace(one, then=steps, orelse=())
            alike = one.condition.kind is ConditionKind.UNIFORM and steps
            counted = value is not None and loop.variable in free_symbols(value)
            return (replace(loop, body=(branch,)),) if alike and counted else ()
    return ()


def _both(_: ast.If) -> tuple[bool, bool]:
    return True, True


@dataclass(frozen=True, slots=True)
class _Iteration:
    """A loop, the collectives in it with the names of what they bring, and what all is needed."""

    node: ast.For | ast.While
    names: Names
    calls: Mapping[ast.stmt, frozenset[str]]
    every: Needed

    def needed_in(self, place: ast.stmt) -> list[ast.stmt]:
        """Return statements of an iteration that are needed in a branch only, or behind the loop.

        They need nothing of what an earlier iteration left, and leave nothing to others.
        """
        if any(every(ast.Return | ast.Raise, self.node)):
            return []
        body = self.node.body
        needed = Needed(
            self.names, lambda one: (one is not place, True), until=self.node, calls=self.calls
        )
        ahead = body if place is self.node else body[: body.index(place)]
        group = [o for o in ahead if _is_in(o, self.every.kept) and not _is_in(o, needed.kept)]
        made = {one: self._made(one, needed) for one in body}
        if place is not self.node:
            own = self._read(*place.body) if isinstance(place, ast.If) else frozenset[str]()
            used = [one for one in group if made[one] & own]
            group = group if used else []
        lost = self.names.lost(self.names.changes([self.node]))
        while True:
            others = [one for one in body if one not in group and one is not place]
            taken, whole = self._read(*others), frozenset[str]().union(*(made[o] for o in group))
            kept, known = list[ast.stmt](), set[str]()
            for one in group:
                left = made[one] & taken or self._read(one) & (whole - known)
                tests = (part.test for part in every(ast.If, one))
                # an iteration in which a condition does not hold leaves what another one made
                seldom = {*assigned_names(one)} - known and any(map(lost.has, tests))
                if not left and not seldom:
                    kept.append(one)
                known |= {*assigned_names(one), *self.calls.get(one, ())}
            if kept == group:
                break
            group = kept
        changed = self.names.changes(others)
        changed.bound |= {*map(root_of, changed.wholly | changed.elements)}
        leaving = every(ast.Break | ast.Continue, self.node)
        if place is self.node and any(one.lineno < o.lineno for one in leaving for o in group):
            return []  # nobody knows which iteration is the last that does it
        # otherwise a repetition of the same measures it
        return group if self._read(*group) & changed.bound else []

    def is_needed_behind(self, moved: Sequence[ast.stmt]) -> bool:
        """Return whether something behind the loop uses what statements make."""
        behind = self.every.behind[self.node]
        return any(self._made(one, self.every) & behind for one in moved)

    def _made(self, one: ast.stmt, needed: Needed) -> frozenset[str]:
        parts = every(ast.stmt, one)
        return frozenset[str]().union(*map(needed.made, parts))

    def _read(self, *nodes: ast.stmt) -> frozenset[str]:
        added = (p.target for p in every(ast.AugAssign, *nodes))
        changed = {name.id for name in every(ast.Name, *added)}
        # what a statement binds it may have read; what a call fills it only names
        filled = {name for one in nodes for name in self.calls.get(one, ())}
        filled -= {name for one in nodes for name in assigned_names(one)}
        read = {root_of(path) for one in nodes for path, _ in self.names.reads(one)}
        return frozenset(changed | (read - filled))

    def changes_before(self, place: ast.stmt, moved: Sequence[ast.stmt]) -> bool:
        """Return whether what statements compute would be something else in another place."""
        body = self.node.body
        later = body if place is self.node else body[: body.index(place)]
        for one in moved:
            rest = [each for each in later[later.index(one) + 1 :] if each not in moved]
            if self.names.lost(self.names.changes(rest)).has(one):
                return True
        return False

    def edits(
        self, place: ast.stmt, moved: Sequence[ast.stmt], program: Program
    ) -> rewrite.Edits | str:
        """Return what moves statements, or why they cannot be moved."""
        context = program.context
        spans = [rewrite.span_of(one, context.lines) for one in moved]
        if self.changes_before(place, moved):
            return "what it is made of changes before"
        if reads_clock(self.node, program):
            return "the loop reads a clock, and may measure it"
        if not all(
            one.start_line == one.end_line and rewrite.stands_alone(context, one) for one in spans
        ):
            return "a call does not stand alone on its line"
        if place is self.node:
            return self._behind(spans, context)
        assert isinstance(place, ast.If)
        first = rewrite.span_of(place.body[0], context.lines)
        if not rewrite.starts_line(first, context):
            return "the branch shares its line"
        texts = (context.lines[one.start_line - 1].strip() for one in spans)
        ahead = "".join(f"{one}\n{rewrite.indent_at(first, context)}" for one in texts)
        gone = [Edit(rewrite.line_of(one.start_line), "") for one in spans]
        return lambda: (*gone, Edit(rewrite.before(first), ahead))

    def _behind(self, spans: Sequence[Span], context: SourceContext) -> rewrite.Edits | str:
        node, place = self.node, rewrite.span_of(self.node, context.lines)
        asks = isinstance(node, ast.While) and any(every(ast.Call, node.test))
        inside = len(node.body) > len(spans) and node.body[0].lineno > node.lineno
        if node.orelse or asks or not inside or not context.source.endswith("\n"):
            return "the loop may end elsewhere"
        texts = (context.lines[one.start_line - 1].strip() for one in spans)
        moved = [f"{rewrite.indent_at(place, context)}{one}\n" for one in texts]
        gone = [rewrite.line_of(one.start_line) for one in spans]
        end = rewrite.line_of(place.end_line)
        if end in gone:
            return lambda: (*(Edit(o, "") for o in gone if o != end), Edit(end, "".join(moved)))
        behind = Span(end.end_line, 0, end.end_line, 0)
        return lambda: (*(Edit(one, "") for one in gone), Edit(behind, "".join(moved)))


def _is_in(one: ast.stmt, kept: set[ast.stmt]) -> bool:
    return any(part in kept for part in every(ast.stmt, one))
