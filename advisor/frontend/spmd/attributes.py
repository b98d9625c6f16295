"""What an attribute of a value denotes: a constant, a method, an entry, an unknown."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from advisor.dtypes import dtype_of
from advisor.frontend.spmd import array_members, communicators
from advisor.frontend.spmd.numpy_arguments import dtype_name
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
from costdb.expr import num


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
            return array_members.attribute(view, name, run, run.span(node)) or ArrayMethod(
                view, name
            )
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
