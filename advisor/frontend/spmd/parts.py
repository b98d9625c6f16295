"""Loops of a program that send nothing: what the names in each of them denote where it begins.

Functions whose arguments a file shows are read whole. Of all code that is followed, whatever it
sends before and behind, each outermost loop of this kind is read by itself as well, as a function
of the names that stand in it.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from advisor.finding import MODULE
from advisor.frontend.bindings import dotted
from advisor.frontend.spmd.functions import has_decorator
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import Record, Value
from advisor.frontend.trees import nodes_in, parts_of
from advisor.ir.spmd.steps import Communicate, Step, walk


def note_loop(node: cst.For, run: Run) -> None:
    """Note what names denote where a loop of the program itself begins, in its last round."""
    if run.file is not run.home:
        return
    if node not in run.loops:
        found = (dotted(one) for one in nodes_in(node) if isinstance(one, cst.Name | cst.Attribute))
        run.loops[node] = dict.fromkeys(one for one in found if one and one.count(".") < 2)
    names = run.loops[node]
    for name in names:
        names[name] = _denoted(name, run)


def _denoted(name: str, run: Run) -> Value | None:
    frame = run.frame
    first, _, attribute = name.partition(".")
    known = (frame.names, frame.shared, run.frames[0].names)
    found = next((names[first] for names in known if first in names), None)
    if attribute:
        return run.entry(found.number, attribute) if isinstance(found, Record) else None
    return found


def note_sent(node: cst.For, steps: tuple[Step, ...], run: Run) -> None:
    """Forget a loop that sends something."""
    if any(isinstance(visit.step, Communicate) for visit in walk(steps, into_calls=True)):
        run.loops.pop(node, None)


def loops_alone(run: Run) -> Iterator[tuple[str, cst.For]]:
    """Yield the outermost loops that send nothing, each with the function that it stands in.

    Those of decorated functions are left out.
    """
    waiting: list[tuple[str, cst.CSTNode]] = [("", run.home.tree.module)]
    while waiting:
        function, node = waiting.pop()
        match node:
            case cst.FunctionDef(name=name, decorators=decorators):
                qualified = f"{function}{name.value}"
                plain = has_decorator(node, "property", "staticmethod", "classmethod")
                if len(decorators) > plain:
                    continue
                function = f"{qualified}.<locals>."
            case cst.ClassDef(name=name):
                function = f"{function}{name.value}."
            case cst.For() if node in run.loops:
                yield function.removesuffix(".").removesuffix(".<locals>") or MODULE, node
                continue
        waiting += [(function, part) for part in parts_of(node)]
