"""The functions of a file: their definition, what their parameters are, and entering them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Many
from dataclasses import replace

import libcst as cst

from advisor.frontend.bindings import dotted
from advisor.frontend.spmd.builtin_calls import click_options
from advisor.frontend.spmd.joining import join_all, meet
from advisor.frontend.spmd.run import Defined, Frame, Run
from advisor.frontend.spmd.values import (
    Argument,
    Arguments,
    Array,
    Class,
    Comm,
    External,
    Function,
    Nothing,
    Number,
    Opaque,
    Sequence,
    Text,
    Value,
)
from advisor.ir.spmd.program import RANK, CallSite
from advisor.ir.spmd.steps import (
    Branch,
    Call,
    CommKind,
    Communicate,
    Loop,
    LoopKind,
    Step,
    Unknown,
    walk,
)
from advisor.source import Span
from costdb.expr import sym

MOST_FRAMES = 12
"""Calls within calls that are followed."""


def define(node: cst.FunctionDef, run: Run, name: str = "") -> Function:
    """Return a function of the file; a name that is defined again stands for the later one."""
    name = name or node.name.value
    defined, module = run.file.defined, run.file.module
    shared = run.frame.names if len(run.frames) > 1 else run.frames[0].names
    key = name if name not in defined else f"{name}:{run.span(node.name).start_line}"
    function = Function(key, node, None, len(defined), module)
    known = defined.get(key)
    if known is None or known.function.node is not node:
        defined[key] = Defined(replace(function, name=name), None, shared)
    else:
        known.shared = shared
    return function


# Entering functions.


def enter(run: Run, function: Function, given: Arguments, span: Span) -> Value:
    """Follow a function with the arguments of a call; return what it gives."""
    if function.module != run.file.module:
        return _elsewhere(run, function.module, span, lambda: enter(run, function, given, span))
    defined = run.file.defined.get(function.name)
    here = (function.name, run.file.module)
    within_itself = any((frame.function, frame.module) == here for frame in run.frames)
    if defined is None or len(run.frames) > MOST_FRAMES or within_itself:
        what = "`{}` calls itself" if within_itself else "the call of `{}` is not followed"
        run.unknown(what.format(function.name), span)
        return Opaque(f"the result of `{function.name}`", varies=True)
    names = parameters(function, given, run)
    depth = run.frame.outer + run.frame.depth
    site = CallSite(span, depth)
    if site not in defined.sites:
        defined.sites.append(site)
    returned, steps = follow(run, defined, names, depth)
    if steps:
        run.emit(Call(function.name, steps, span))
    return join_all(returned, run.target or function.name, run) or Nothing()


def follow(
    run: Run, defined: Defined, names: dict[str, Value], outer: int = 0
) -> tuple[Many[Value], tuple[Step, ...]]:
    """Follow a function's body with values for its parameters.

    Returns
    -------
    returned : sequence of Value
        What its ``return`` statements give.
    steps : tuple of Step
    """
    name, node = defined.function.name, defined.function.node
    frame = Frame(dict(names), name, defined.shared, outer=outer, module=run.file.module)
    frame.of_all_ranks = next((n for n, value in names.items() if _is_of_all(value)), "")
    saved, around = run.statement, run.state()
    around = [around[0][0], dict(defined.shared)], around[1]
    run.frames.append(frame)
    try:
        with run.named(), run.block() as body:
            run.follow_block(node.body, run)
            steps = _compiled(defined, tuple(body), run)
    finally:
        run.frames.pop()
        run.statement = saved
    for _, state in frame.left:
        meet(state, run)
    run.frame.missed |= frame.missed
    defined.entered.append(frame.entered(dict(names), steps, around))
    return frame.returned, steps


def _is_of_all(value: Value) -> bool:
    """Return whether a communicator is, or is taken for, that of all ranks."""
    return isinstance(value, Comm) and value.communicator.rank == sym(RANK)


def instantiate(run: Run, cls: Class, given: Arguments, span: Span) -> Value:
    """Return a new instance of a class of the file."""
    if cls.module != run.file.module:
        return _elsewhere(run, cls.module, span, lambda: instantiate(run, cls, given, span))
    made = run.record(cls)
    initialiser = cls.method("__init__")
    if initialiser is not None:
        enter(run, replace(initialiser, owner=made), given, span)
        return made
    # of a dataclass
    stated = given.named(name for name, _ in cls.constants)
    for name, value in (*cls.constants, *((name, one.value) for name, one in stated.items())):
        run.keep(made.number, name, value)
    completing = cls.method("__post_init__")
    if completing is not None:
        enter(run, replace(completing, owner=made), Arguments(), span)
    return made


def _elsewhere(run: Run, module: str, span: Span, entering: Callable[[], Value]) -> Value:
    """Return what something of another file gives; what it does counts at the call.

    Its steps are told at the call, because only that is in this file, and without the places of
    their arguments, because these cannot be changed from here.
    """
    context = run.context(module)
    if context is None:
        run.unknown(f"a function of `{module}` is not followed", span)
        return Opaque(f"what a function of `{module}` gives", varies=True)
    with run.block() as body:
        with run.within(context):
            found = entering()
        steps = tuple(body)
    for step in _moved(steps, span, run.statement):
        run.emit(step)
    return found


def _moved(steps: tuple[Step, ...], span: Span, statement: Span) -> Iterator[Step]:
    """Yield steps with those within them at another place."""
    for step in steps:
        match step:
            case Communicate():
                yield replace(step, span=span, statement=statement, places={})
            case Loop(body=body) | Call(body=body):
                yield replace(step, span=span, body=tuple(_moved(body, span, statement)))
            case Branch(condition=condition, then=then, orelse=orelse):
                first, second = (tuple(_moved(part, span, statement)) for part in (then, orelse))
                yield Branch(replace(condition, span=span), first, second, span)
            case _:
                yield replace(step, span=span)


# What parameters are bound to.


def parameters(function: Function, given: Arguments | None, run: Run) -> dict[str, Value]:
    """Return values for the parameters of a function by the arguments of a call.

    Parameters
    ----------
    function : Function
    given : Arguments or None
        None: nothing in the file calls it.
    run : Run
    """
    node = function.node
    params = [*node.params.posonly_params, *node.params.params]
    positional, keywords = ([], {}) if given is None else (given.values(), given.by_keyword())
    if function.owner is not None and params and not has_decorator(node, "staticmethod"):
        positional.insert(0, function.owner)
    names = {p.name.value: value for p, value in zip(params, positional, strict=False)}
    options = _options(node, run)
    if given is None:
        run.frame.of_all_ranks = ""  # each function is given its own
    for parameter in (*params, *node.params.kwonly_params):
        name = parameter.name.value
        if name in keywords:
            names[name] = keywords[name]
        elif name not in names:
            names[name] = options.get(name) or _left_out(parameter, given, run)
    if isinstance(node.params.star_arg, cst.Param):
        rest = tuple(positional[len(params) :])
        names[node.params.star_arg.name.value] = Sequence(rest, is_list=False)
    if node.params.star_kwarg is not None:
        names[node.params.star_kwarg.name.value] = Opaque("keyword arguments")
    return names


def _options(node: cst.FunctionDef, run: Run) -> dict[str, Value]:
    """Return the parameters that click gives a function."""
    calls = [d.decorator for d in node.decorators if isinstance(d.decorator, cst.Call)]
    of_click = [call for call in calls if (dotted(call.func) or "").startswith("click.")]
    return click_options(node, [arguments(call, run) for call in of_click], run)


def arguments(node: cst.Call, run: Run) -> Arguments:
    """Return the evaluated arguments of a call, left to right."""
    found: list[Argument] = []
    with run.named():
        for argument in node.args:
            value = run.evaluate(argument.value, run)
            keyword = None if argument.keyword is None else argument.keyword.value
            span, place = run.span(argument.value), run.span(argument)
            found.append(Argument(value, keyword, span, place, run.text_of(span), argument.star))
    return Arguments(found)


def _left_out(parameter: cst.Param, given: Arguments | None, run: Run) -> Value:
    """Return what a parameter is that a call does not give, or that no call gives."""
    name, annotation = parameter.name.value, parameter.annotation
    if parameter.default is not None and not (given is not None and given.starred):
        found = _default(parameter, parameter.default, run)
        if given is not None or not isinstance(found, Nothing | Text):
            return found
    stated = None if annotation is None else of_annotation(annotation.annotation, name, run)
    why = f"`{name}` is a parameter that nothing in the file gives"
    return stated or Opaque(why, text=name)


def _default(parameter: cst.Param, node: cst.BaseExpression, run: Run) -> Value:
    """Return a parameter's default; whole numbers are sizes that a caller may change."""
    with run.block():
        found = run.evaluate(node, run)
    value = run.integer(found)
    if isinstance(found, Number) and value is not None and value >= 3 and found.dtype == "int":
        span, name = run.span(parameter), parameter.name.value
        origin = f"default of `{name}`, line {span.start_line}{run.place}"
        return Number(run.symbols.known(name, value, origin, span))
    return found


def of_annotation(node: cst.BaseExpression, name: str, run: Run) -> Value | None:
    """Return what an annotation says that a name denotes."""
    text = run.text(node).strip("'\"")
    bare = text.removeprefix("Optional[").partition("[")[0].partition(" |")[0].rstrip("]")
    match bare.rpartition(".")[2]:
        case "Comm" | "Intracomm" | "Cartcomm" | "Intercomm":
            module = run.lookup(bare.partition(".")[0])
            if isinstance(module, External) and module.path.startswith("mpi4py"):
                return Comm(run.communicator(CommKind.GIVEN, name, run.span(node)))
        case "int" if bare == "int":
            why = f"`{name}` is a parameter that nothing in the file gives"
            return Number(run.symbols.unknown(name, why, run.span(node)))
        case "float" | "complex" if "." not in bare:
            return Number(None, bare)
        case "str":
            return Text(None)
        case "ndarray" | "NDArray" | "ArrayLike":
            return Array(run.given_array(name, run.span(node)))
    return None


def has_decorator(node: cst.FunctionDef, *names: str) -> bool:
    """Return whether a function has a decorator of one of some bare names."""
    return any(
        isinstance(d.decorator, cst.Name) and d.decorator.value in names for d in node.decorators
    )


# Functions that a compiler takes from the interpreter.

_COMPILERS = frozenset({"njit", "jit", "vectorize", "guvectorize", "stencil", "cfunc"})


def is_kernel_as_called(node: cst.FunctionDef, run: Run) -> bool:
    """Return whether a function runs with the arguments of its calls as they are.

    Undecorated ones and methods do, and those that numba compiles for the arguments of their calls:
    with signatures of its own they may be converted, and ``vectorize`` hands over elements.
    """
    if len(node.decorators) != 1 or has_decorator(node, "property", "staticmethod"):
        return len(node.decorators) < 2
    decorator = node.decorators[0].decorator
    if _compiler(decorator, run) not in ("njit", "jit"):
        return False
    return not isinstance(decorator, cst.Call) or all(
        argument.keyword is not None and argument.keyword.value != "signature_or_function"
        for argument in decorator.args
    )


def _compiler(node: cst.BaseExpression, run: Run) -> str | None:
    """Return the bare name of a function of numba; None for any other."""
    called = node.func if isinstance(node, cst.Call) else node
    first, _, rest = (dotted(called) or "").partition(".")
    found = run.lookup(first)
    if not isinstance(found, External):
        return None
    path = f"{found.path}.{rest}" if rest else found.path
    return path.rpartition(".")[2] if path.startswith("numba.") else None


def _compiled(defined: Defined, steps: tuple[Step, ...], run: Run) -> tuple[Step, ...]:
    """Return what a function does; of a compiled one parallel loops, and else something unknown.

    No model says how long compiled loops over single elements take, and the interpreter's price
    would be a hundred times too much.
    """
    node = defined.function.node
    compilers = [
        one.decorator for one in node.decorators if _compiler(one.decorator, run) in _COMPILERS
    ]
    if not steps or not compilers:
        return steps
    if all(_may_be_parallel(one) for one in compilers) and any(
        isinstance(visit.step, Loop) and visit.step.kind is LoopKind.THREADS
        for visit in walk(steps, into_calls=True)
    ):
        return steps
    why = f"the time of `{defined.function.name}`, which numba compiles, is not modelled"
    return (Unknown(why, run.span(node.name)),)


def _may_be_parallel(decorator: cst.BaseExpression) -> bool:
    """Return whether a compiler has leave to make loops parallel."""
    return isinstance(decorator, cst.Call) and any(
        a.star or (a.keyword is not None and a.keyword.value == "parallel") for a in decorator.args
    )
