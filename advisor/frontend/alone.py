"""Statements as a function of the names in them, for who reads functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import libcst as cst

from advisor.frontend.bindings import (
    NameScope,
    ScopeKind,
    ScopeVisitor,
    assigned_names,
    counted_names,
    names_in,
    target_names,
)
from advisor.frontend.declarations import FoundKernel, LoopAlone
from advisor.frontend.seen_names import name_node
from advisor.frontend.trees import nodes_in, parts_of
from advisor.observed import SeenArray, SeenNumber
from advisor.source import Span

SpanOf = Callable[[cst.CSTNode], Span]


def as_function(
    name: str,
    body: Sequence[cst.BaseStatement | cst.SimpleStatementLine],
    span_of: SpanOf,
    head: Span,
    parameters: Sequence[str] = (),
    returned: Sequence[str] = (),
) -> tuple[cst.FunctionDef, SpanOf]:
    """Return statements as a function with some parameters that returns some names.

    The place of its head is stated; the other result tells where each node stands.
    """
    first, last = span_of(body[0]), span_of(body[-1])
    whole = replace(first, end_line=last.end_line, end_column=last.end_column)
    end = replace(whole, start_line=last.end_line, start_column=last.end_column)
    given = [cst.Param(cst.Name(one)) for one in parameters]
    own: dict[cst.CSTNode, Span] = {one.name: head for one in given}
    if returned:
        parts = [cst.Name(one) for one in returned]
        value = cst.Tuple([cst.Element(one) for one in parts]) if parts[1:] else parts[0]
        gives = cst.Return(value)
        body = [*body, cst.SimpleStatementLine([gives])]
        own |= dict.fromkeys((*parts, value, gives, body[-1]), end)
    node = cst.FunctionDef(name_node(name), cst.Parameters(given), cst.IndentedBlock(body))
    own |= {node: whole, node.body: whole, node.name: head}
    return node, lambda one: own[one] if one in own else span_of(one)


def loop_alone(found: LoopAlone, module: cst.Module, span_of: SpanOf) -> tuple[FoundKernel, SpanOf]:
    """Return a loop as a function of the names that it reads before it binds them.

    What it binds that stands anywhere else in the function around it is what it gives back.
    """
    loop, within, scopes, seen = found
    shown: tuple[SeenArray | SeenNumber, ...] = (*seen.arrays, *seen.numbers)
    known = {one.name.partition(".")[0] for one in shown}
    outside = counted_names(within[0] if within else module) - counted_names(loop)
    for other in _others(within[0] if within else module, loop):
        bound = _own_names(other)
        outside -= Counter({n: count for n, count in counted_names(other).items() if n in bound})
    later = assigned_names(loop) & {*outside, *scopes[-1].elsewhere}
    read = sorted(known & names_in(loop))
    span = span_of(loop)
    head = Span(span.start_line, span.start_column, span.start_line, span.start_column)
    node, places = as_function(seen.function, [loop], span_of, head, read, sorted(later))
    own = ScopeVisitor()
    own.scopes = [*scopes, NameScope(ScopeKind.FUNCTION)]
    for part in parts_of(node):
        own.visit(part)
    line = span.start_line
    kernel = FoundKernel(node, {}, line, tuple(own.scopes), (), marked=False, seen=seen, line=line)
    return kernel, places


def _others(node: cst.CSTNode, loop: cst.For | cst.While) -> Iterator[cst.CSTNode]:
    """Yield the outermost loops and comprehensions that are not around a loop, and functions."""
    if node is loop:
        return
    around = any(one is loop for one in nodes_in(node))
    if not around and isinstance(node, cst.For | cst.BaseComp | cst.FunctionDef):
        yield node
        return
    for part in parts_of(node):
        yield from _others(part, loop)


def _own_names(node: cst.CSTNode) -> frozenset[str]:
    """Return the names that are bound in a node before they are read there, whatever was before."""
    bound: set[str] = set()
    read: set[str] = set()

    def look(*parts: cst.CSTNode) -> None:
        for part in parts:
            match part:
                case cst.Name(value=name):
                    read.update({name} - bound)
                case cst.Attribute(value=value) | cst.Arg(value=value):
                    look(value)
                case cst.Assign(targets=targets, value=value):
                    look(value)
                    for stored in targets:
                        bound.update(target_names(stored.target))
                        look(stored.target)
                case cst.For(target=target, iter=source, body=body):
                    look(source)
                    perhaps(body, *target_names(target))
                case cst.If() | cst.While() | cst.Try():
                    for one in parts_of(part):
                        perhaps(one)
                case _:
                    look(*parts_of(part))

    def perhaps(body: cst.CSTNode, *names: str) -> None:
        saved = set(bound)
        bound.update(names)
        look(body)
        bound.intersection_update(saved)

    if isinstance(node, cst.For):
        look(node)
    parameters = (one.name.value for one in nodes_in(node) if isinstance(one, cst.Param))
    return assigned_names(node).union(parameters) - read
