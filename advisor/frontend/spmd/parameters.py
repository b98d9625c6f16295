"""What the parameters of a function denote: what a call gives, or what nobody gives."""

from __future__ import annotations

import libcst as cst

from advisor.frontend.naming.names import dotted
from advisor.frontend.spmd.expressions import arguments, evaluate
from advisor.frontend.spmd.frames import Argument
from advisor.frontend.spmd.options import click_options
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    Array,
    Comm,
    External,
    Function,
    Nothing,
    Number,
    Opaque,
    Record,
    Sequence,
    Text,
    Value,
)
from advisor.ir.spmd.ranks import CommKind


def given_parameters(function: Function, given: list[Argument], run: Run) -> dict[str, Value]:
    """Return values for the parameters of a function by the arguments of a call."""
    node = function.node
    params = [*node.params.posonly_params, *node.params.params]
    names: dict[str, Value] = {}
    positional = [a.value for a in given if a.keyword is None and not a.star]
    starred = any(a.star for a in given)
    if function.owner is not None and params and not _is_static(node):
        positional.insert(0, function.owner)
    for parameter, value in zip(params, positional, strict=False):
        names[parameter.name.value] = value
    keywords = {a.keyword: a.value for a in given if a.keyword is not None}
    options = _options(node, run)
    for parameter in (*params, *node.params.kwonly_params):
        name = parameter.name.value
        if name in keywords:
            names[name] = keywords[name]
        elif name not in names and name in options:
            names[name] = options[name]
        elif name not in names and not starred and parameter.default is not None:
            names[name] = _default(parameter, run)
        elif name not in names:
            names[name] = _unknown(parameter, run)
    _rest(node, positional[len(params) :], names)
    return names


def _rest(node: cst.FunctionDef, rest: list[Value], names: dict[str, Value]) -> None:
    star = node.params.star_arg
    if isinstance(star, cst.Param):
        names[star.name.value] = Sequence(tuple(rest), is_list=False)
    if node.params.star_kwarg is not None:
        names[node.params.star_kwarg.name.value] = Opaque("keyword arguments")


def _options(node: cst.FunctionDef, run: Run) -> dict[str, Value]:
    found = []
    for decorator in node.decorators:
        called = decorator.decorator
        if isinstance(called, cst.Call) and (dotted(called.func) or "").startswith("click."):
            found.append(arguments(called, run))
    return click_options(node, found, run) if found else {}


def _default(parameter: cst.Param, run: Run) -> Value:
    """Return a parameter's default; whole numbers are sizes that a caller may change."""
    assert parameter.default is not None
    with run.block():
        found = evaluate(parameter.default, run)
    if isinstance(found, Number):
        value = run.integer(found)
        if value is not None and value >= 3 and found.dtype == "int":
            span = run.span(parameter)
            name = parameter.name.value
            origin = f"default of `{name}`, line {span.start_line}{run.place}"
            return Number(run.symbols.known(name, value, origin, span))
    return found


def unknown_parameters(node: cst.FunctionDef, owner: Record | None, run: Run) -> dict[str, Value]:
    """Return values for the parameters of a function that nothing in the file calls."""
    names: dict[str, Value] = {}
    params = [*node.params.posonly_params, *node.params.params, *node.params.kwonly_params]
    options = _options(node, run)
    run.frame.of_all_ranks = ""  # each function is given its own
    for position, parameter in enumerate(params):
        name = parameter.name.value
        if position == 0 and owner is not None and not _is_static(node):
            names[name] = owner
        elif name in options:
            names[name] = options[name]
        elif parameter.default is not None:
            found = _default(parameter, run)
            stated = _unknown(parameter, run)
            names[name] = stated if isinstance(found, Nothing | Text) else found
        else:
            names[name] = _unknown(parameter, run)
    _rest(node, [], names)
    return names


def _is_static(node: cst.FunctionDef) -> bool:
    return any(
        isinstance(d.decorator, cst.Name) and d.decorator.value == "staticmethod"
        for d in node.decorators
    )


def _unknown(parameter: cst.Param, run: Run) -> Value:
    """Return what a parameter is that no call gives."""
    name = parameter.name.value
    if parameter.annotation is not None:
        found = of_annotation(parameter.annotation.annotation, name, run)
        if found is not None:
            return found
    return Opaque(f"`{name}` is a parameter that nothing in the file gives", text=name)


def of_annotation(node: cst.BaseExpression, name: str, run: Run) -> Value | None:
    """Return what an annotation says that a name denotes."""
    text = run.text(node).strip("'\"")
    bare = text.removeprefix("Optional[").partition("[")[0].partition(" |")[0].rstrip("]")
    last = bare.rpartition(".")[2]
    if last in ("Comm", "Intracomm", "Cartcomm", "Intercomm"):
        module = run.lookup(bare.partition(".")[0])
        if isinstance(module, External) and module.path.startswith("mpi4py"):
            kind = CommKind.GIVEN
            return Comm(run.communicator(kind, name, run.span(node)))
    if bare == "int":
        why = f"`{name}` is a parameter that nothing in the file gives"
        return Number(run.symbols.unknown(name, why, run.span(node)))
    if bare in ("float", "complex"):
        return Number(None, bare)
    if bare == "str":
        return Text(None)
    if last in ("ndarray", "NDArray", "ArrayLike"):
        return Array(run.given_array(name, run.span(node), None, None))
    return None
