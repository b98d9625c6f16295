"""The functions of a file: their definition, and entering them."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Many
from dataclasses import replace

import libcst as cst

from advisor.frontend.naming.names import dotted
from advisor.frontend.spmd.frames import Argument, Defined, Entered, Frame, FunctionTable
from advisor.frontend.spmd.joining import join
from advisor.frontend.spmd.parameters import given_parameters
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    Class,
    Comm,
    External,
    Function,
    Nothing,
    Opaque,
    Value,
)
from advisor.frontend.syntax.trees import parts_of
from advisor.ir.spmd.program import RANK, CallSite
from advisor.ir.spmd.steps import (
    Branch,
    Call,
    Communicate,
    Compute,
    Loop,
    LoopKind,
    Step,
    Unknown,
    walk,
)
from advisor.source import Span
from costdb.expr import num, sym

# Steps of another file, as they are told in the one that calls it.


def moved(step: Step, span: Span, statement: Span) -> Step:
    """Return a step with those within it at another place."""
    match step:
        case Communicate():
            return replace(step, span=span, statement=statement, places={})
        case Loop(body=body):
            return replace(step, span=span, body=_all(body, span, statement))
        case Branch(condition=condition, then=then, orelse=orelse):
            return Branch(
                replace(condition, span=span),
                _all(then, span, statement),
                _all(orelse, span, statement),
                span,
            )
        case Call(body=body):
            return replace(step, span=span, body=_all(body, span, statement))
    return replace(step, span=span)


def _all(steps: tuple[Step, ...], span: Span, statement: Span) -> tuple[Step, ...]:
    return tuple(moved(step, span, statement) for step in steps)


# The interpreter's own work: loops over numbers, and functions that a compiler takes from it.

_STEPS = (cst.BinaryOperation, cst.BooleanOperation, cst.ComparisonTarget, cst.Call, cst.AugAssign)
_COMPILERS = frozenset({"njit", "jit", "vectorize", "guvectorize", "stencil", "cfunc"})


def interpreted(body: cst.BaseSuite, span: Span) -> tuple[Step, ...]:
    """Return the work of an iteration that touches no array and sends nothing.

    Operators, comparisons and calls count alike, as one operation of the interpreter each.
    """
    count = _count(body)
    return (Compute(None, (), num(count), "interpreted", span),) if count else ()


def _count(node: cst.CSTNode) -> int:
    return isinstance(node, _STEPS) + sum(map(_count, parts_of(node)))


def is_compiled(node: cst.FunctionDef, run: Run) -> bool:
    """Return whether a decorator has numba compile a function."""
    return any(_is_compiler(decorator.decorator, run) for decorator in node.decorators)


def is_compiled_as_called(node: cst.FunctionDef, run: Run) -> bool:
    """Return whether numba compiles a function for the arguments of its calls.

    With signatures of its own they may be converted, and ``vectorize`` hands over elements.
    """
    if len(node.decorators) != 1:
        return False
    decorator = node.decorators[0].decorator
    if _compiler(decorator, run) not in ("njit", "jit"):
        return False
    return not isinstance(decorator, cst.Call) or all(
        argument.keyword is not None and argument.keyword.value != "signature_or_function"
        for argument in decorator.args
    )


def _is_compiler(node: cst.BaseExpression, run: Run) -> bool:
    return _compiler(node, run) in _COMPILERS


def _compiler(node: cst.BaseExpression, run: Run) -> str | None:
    """Return the bare name of a function of numba; None for any other."""
    called = node.func if isinstance(node, cst.Call) else node
    first, _, rest = (dotted(called) or "").partition(".")
    found = run.lookup(first)
    if not isinstance(found, External):
        return None
    path = f"{found.path}.{rest}" if rest else found.path
    return path.rpartition(".")[2] if path.startswith("numba.") else None


def is_sequential(node: cst.FunctionDef, run: Run) -> bool:
    """Return whether a function is compiled without leave to make its loops parallel."""
    return any(
        _is_compiler(one.decorator, run)
        and not (
            isinstance(one.decorator, cst.Call)
            and any(
                a.star or (a.keyword is not None and a.keyword.value == "parallel")
                for a in one.decorator.args
            )
        )
        for one in node.decorators
    )


def compiled(
    name: str, steps: tuple[Step, ...], span: Span, *, sequential: bool
) -> tuple[Step, ...]:
    """Return what a compiled function does: its parallel loops, and else something unknown.

    No model says how long compiled loops over single elements take, and the interpreter's price
    would be a hundred times too much.
    """
    if not steps or (not sequential and _has_parallel_loops(steps)):
        return steps
    return (Unknown(f"the time of `{name}`, which numba compiles, is not modelled", span),)


def _has_parallel_loops(steps: tuple[Step, ...]) -> bool:
    return any(
        isinstance(visit.step, Loop) and visit.step.kind is LoopKind.THREADS
        for visit in walk(steps, into_calls=True)
    )


MOST_FRAMES = 12
"""Calls within calls that are followed."""


class Functions:
    """All functions of a file, by name."""

    def __init__(self, block: Callable[[cst.BaseSuite], bool], module: str = "") -> None:
        self.block = block
        self.module = module
        self.defined: dict[str, Defined] = {}
        self.classes: dict[str, Class] = {}

    def end(self) -> None:
        """Let go of what follows bodies, which knows this table.

        All that a reading made goes at once then. The collector of cycles would find it after
        many readings, and an editor would wait for that several times as long as for one.
        """
        self.block = _ended

    def add(self, name: str, node: cst.FunctionDef, run: Run) -> Function:
        """Note a definition; a name that is defined again stands for the later one."""
        number = len(self.defined)
        nested = len(run.frames) > 1
        shared = run.frame.names if nested else run.frames[0].names
        key = name if name not in self.defined else f"{name}:{run.span(node.name).start_line}"
        known = self.defined.get(key)
        if known is None or known.function.node is not node:
            function = Function(name, node, None, number, self.module)
            self.defined[key] = Defined(function, None, shared, nested=nested)
        else:
            known.shared = shared
        return Function(key, node, None, number, self.module)

    def own(self, cls: Class, names: list[str], run: Run) -> None:
        """Note the class whose methods some functions are."""
        self.classes[cls.name] = cls
        for name in names:
            self.defined[name].owner = cls

    def enter(self, run: Run, function: Function, given: list[Argument], span: Span) -> Value:
        """Follow a function with the arguments of a call; return what it gives."""
        if function.module != self.module:
            return elsewhere(
                run, function.module, span, lambda table: table.enter(run, function, given, span)
            )
        defined = self.defined.get(function.name)
        if defined is None or len(run.frames) > MOST_FRAMES:
            run.unknown(f"the call of `{function.name}` is not followed", span)
            return Opaque(f"the result of `{function.name}`", varies=True)
        here = (function.name, self.module)
        if any((frame.function, frame.module) == here for frame in run.frames):
            run.unknown(f"`{function.name}` calls itself", span)
            return Opaque(f"the result of `{function.name}`", varies=True)
        names = given_parameters(function, given, run)
        depth = run.frame.outer + run.frame.depth
        site = CallSite(run.frame.function, span, depth)
        if site not in defined.sites:
            defined.sites.append(site)
        returned, steps = self.follow(run, defined, names, depth)
        if steps:
            run.emit(Call(function.name, steps, span))
        if not returned:
            return Nothing()
        found = returned[0]
        for other in returned[1:]:
            found = join(found, other, run.targets[0] if run.targets else function.name, run)
        return found

    def follow(
        self, run: Run, defined: Defined, names: dict[str, Value], outer: int
    ) -> tuple[Many[Value], tuple[Step, ...]]:
        """Follow a function's body with values for its parameters.

        Returns
        -------
        returned : sequence of Value
            What its ``return`` statements give.
        steps : tuple of Step
        """
        name = defined.function.name
        frame = Frame(dict(names), name, defined.shared, outer=outer, module=self.module)
        frame.nested = defined.nested
        frame.of_all_ranks = next((n for n, value in names.items() if _is_of_all(value)), "")
        saved = run.statement, run.targets
        run.frames.append(frame)
        run.targets = ()
        try:
            with run.block() as body:
                self.block(defined.function.node.body)
                steps = tuple(body)
            if is_compiled(defined.function.node, run):
                node = defined.function.node
                sequential = is_sequential(node, run)
                steps = compiled(name, steps, run.span(node.name), sequential=sequential)
        finally:
            run.frames.pop()
            run.statement, run.targets = saved
        way = Entered(
            dict(names),
            steps,
            tuple(frame.buffers.values()),
            tuple(frame.communicators),
            frozenset(frame.returned_names),
        )
        defined.entered.append(way)
        return frame.returned, steps

    def instantiate(self, run: Run, cls: Class, given: list[Argument], span: Span) -> Value:
        """Return a new instance of a class of the file."""
        if cls.module != self.module:
            return elsewhere(
                run, cls.module, span, lambda table: table.instantiate(run, cls, given, span)
            )
        made = run.record(cls)
        initialiser = cls.method("__init__")
        if initialiser is not None:
            bound = replace(initialiser, owner=made)
            self.enter(run, bound, given, span)
            return made
        fields = [name for name, _ in cls.constants]
        for name, value in cls.constants:
            run.kept[made.number, name] = value
        positional = [a for a in given if a.keyword is None]
        for name, argument in zip(fields, positional, strict=False):
            run.kept[made.number, name] = argument.value
        for argument in given:
            if argument.keyword is not None:
                run.kept[made.number, argument.keyword] = argument.value
        return made


def _ended(body: cst.BaseSuite) -> bool:
    raise AssertionError("the file has been read")


def elsewhere(run: Run, module: str, span: Span, enter: Callable[[FunctionTable], Value]) -> Value:
    """Return what something of another file gives; what it does counts at the call.

    Its steps are told at the call, because only that is in this file, and without the places of
    their arguments, because these cannot be changed from here.
    """
    context = run.context(module)
    if context is None:
        run.unknown(f"a function of `{module}` is not followed", span)
        return Opaque(f"what a function of `{module}` gives", varies=True)
    statement = run.statement
    with run.block() as body:
        with run.within(context):
            found = enter(context.functions)
        steps = tuple(body)
    for step in steps:
        run.emit(moved(step, span, statement))
    return found


def _is_of_all(value: Value) -> bool:
    """Return whether a communicator is, or is taken for, that of all ranks."""
    return isinstance(value, Comm) and value.communicator.rank == sym(RANK)


def define(node: cst.FunctionDef, run: Run) -> Value:
    """Return a function of the file."""
    return run.functions.add(node.name.value, node, run)
