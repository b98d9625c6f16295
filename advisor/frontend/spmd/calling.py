"""Calls and attributes of an SPMD program, by what is called or owns them."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from advisor.dtypes import dtype_of
from advisor.frontend.naming.names import dotted
from advisor.frontend.spmd import (
    builtin_calls,
    communicators,
    numpy_calls,
    operations,
)
from advisor.frontend.spmd.frames import Argument
from advisor.frontend.spmd.numpy_created import dtype_name
from advisor.frontend.spmd.options import PARSER
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    Array,
    ArrayMethod,
    Class,
    Comm,
    CommMethod,
    Datatype,
    External,
    Function,
    Method,
    NeighbourRank,
    Nothing,
    Number,
    Opaque,
    Record,
    Request,
    Sequence,
    Sibling,
    Text,
    Value,
    Window,
)
from advisor.source import Span
from costdb.expr import num

# What an attribute of a value denotes: a constant, a method, an entry, an unknown.


def attribute(owner: Value, name: str, spelled: str, run: Run, node: cst.Attribute) -> Value:
    """Return what an attribute of a value denotes."""
    match owner:
        case External(path=path) if name == "itemsize" and path.startswith("numpy."):
            dtype = dtype_name(owner)
            return Number(None if dtype is None else num(dtype_of(dtype).itemsize_bytes))
        case Datatype(basic=str() as basic) if name in ("size", "extent"):
            return Number(num(dtype_of(basic).itemsize_bytes))
        case External(path=path):
            full = f"{path}.{name}"
            return communicators.constant(full, run) or External(full)
        case Comm(communicator):
            return communicators.attribute(communicator, name, run) or CommMethod(
                communicator, name
            )
        case Sibling(name=module):
            found = run.context(module)
            member = None if found is None else found.frame.names.get(name)
            return member or Opaque(f"`{spelled}` is not followed", text=spelled)
        case Array(view):
            return numpy_calls.attribute(view, name, run, run.span(node)) or ArrayMethod(view, name)
        case Record(number=number, cls=cls):
            known = run.entry(number, name)
            if known is not None:
                return known
            method = None if cls is None else cls.method(name)
            if method is not None:
                bound = replace(method, owner=owner)
                if _is_property(method.node):
                    return run.functions.enter(run, bound, [], run.span(node))
                return bound
            if cls is None or cls.name == PARSER:
                return Method(owner, name)
            return dict(cls.constants).get(name) or Opaque(f"`{spelled}`", text=spelled)
        case Class():
            method = owner.method(name)
            return method or dict(owner.constants).get(name) or Opaque(spelled, text=spelled)
        case Opaque():
            text = f"{owner.text}.{name}" if owner.text else spelled
            return Opaque(
                owner.why, text=text or spelled, foreign=owner.foreign, varies=owner.varies
            )
        case Number() | NeighbourRank() | Nothing():
            return Opaque(f"`{spelled}` of a number", foreign=True)
        case Text() | Sequence() | Request() | Window() | Datatype():
            return Method(owner, name)
    return Opaque(f"`{spelled}` is not followed", text=spelled, foreign=True)


def _is_property(node: cst.FunctionDef) -> bool:
    return any(
        isinstance(d.decorator, cst.Name) and d.decorator.value in ("property", "cached_property")
        for d in node.decorators
    )


_STATUS_METHODS = frozenset(
    {"Get_source", "Get_tag", "Get_count", "Get_elements", "Get_error", "Is_cancelled"}
)
"""Methods of a status, which take no time to speak of."""


def called(function: Value, node: cst.Call, given: list[Argument], run: Run) -> Value:
    """Return what a call gives; what it does is added to the block."""
    span = run.span(node)
    match function:
        case CommMethod(communicator, name):
            place = (
                (run.span(node.func.value), run.span(node.func.attr))
                if isinstance(node.func, cst.Attribute)
                else (span, span)
            )
            return operations.communicate(communicator, name, given, run, span, place)
        case Function():
            return run.functions.enter(run, function, given, span)
        case Class():
            return run.functions.instantiate(run, function, given, span)
        case Record() if (called := own_method("__call__", function)) is not None:
            return run.functions.enter(run, called, given, span)
        case ArrayMethod(view, name):
            return numpy_calls.method(view, name, given, run, span)
        case Method(owner, name):
            target = node.func.value if isinstance(node.func, cst.Attribute) else node.func
            return builtin_calls.method(owner, name, given, run, span, target)
        case External(path=path):
            return _external(path, given, run, span)
    return _foreign_call(function, node, given, run)


def _external(path: str, given: list[Argument], run: Run, span: Span) -> Value:
    if path.startswith("numpy."):
        return numpy_calls.call(path.removeprefix("numpy."), given, run, span)
    if path.startswith("mpi4py."):
        return communicators.construct(path, given, run, span)
    return builtin_calls.call(path, given, run, span)


def _foreign_call(function: Value, node: cst.Call, given: list[Argument], run: Run) -> Value:
    called = dotted(node.func) or "an expression"
    if called.rpartition(".")[2] in _STATUS_METHODS:
        return Opaque(f"the result of `{called}` is not known", foreign=True, varies=True)
    mentions = frozenset(a.text for a in given if isinstance(a.value, Array))
    run.unknown(f"the call of `{called}` is not followed", run.span(node), mentions)
    for argument in given:
        builtin_calls.forget(argument.value, run)
    foreign = not isinstance(function, Opaque) or function.foreign
    varies = any(_varies(a.value, run) for a in given)
    return Opaque(f"the result of `{called}` is not known", foreign=foreign, varies=varies)


def _varies(value: Value, run: Run) -> bool:
    match value:
        case Number():
            return value.varies or run.symbols.varies(value.expr)
        case Opaque():
            return value.varies
        case Sequence(items=tuple() as items):
            return any(_varies(item, run) for item in items)
    return False


def own_method(name: str, owner: Value) -> Function | None:
    """Return a method of an instance of a class of the file, for that instance."""
    if not isinstance(owner, Record) or owner.cls is None:
        return None
    method = owner.cls.method(name)
    return None if method is None else replace(method, owner=owner)
