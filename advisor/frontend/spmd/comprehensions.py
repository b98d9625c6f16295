"""Dictionaries, and what comprehensions make of all rounds of their loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Many
from contextlib import contextmanager

import libcst as cst

from advisor.frontend.spmd.entries import MOST_ENTRIES, items_of, key_of
from advisor.frontend.spmd.iteration import iteration, loop_over
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.shown import part_of
from advisor.frontend.spmd.values import Number, Record, Sequence, Value
from advisor.ir.spmd.steps import LoopKind
from costdb.expr import Expr, num

Evaluate = Callable[[cst.BaseExpression, Run], Value]
"""Follows an expression."""


def dictionary(node: cst.Dict, run: Run, evaluate: Evaluate) -> Value:
    """Return a new dictionary."""
    record = run.record()
    for element in node.elements:
        if isinstance(element, cst.DictElement):
            key = key_of(evaluate(element.key, run), run)
            with _named_entry(key, run):
                value = evaluate(element.value, run)
            run.kept[record.number, key] = value
    return record


@contextmanager
def _named_entry(key: object, run: Run) -> Iterator[None]:
    """Let what is made now be called as an entry of the dictionary that is being made."""
    saved = run.targets
    run.targets = tuple(f"{name}[{key!r}]" for name in saved[:1] if key is not None)
    yield
    run.targets = saved


def dictionary_of_rounds(node: cst.DictComp, run: Run, evaluate: Evaluate) -> Value:
    """Return the dictionary of a comprehension: by its keys where they are few and known."""
    saved = dict(run.frame.names)
    record = run.record()
    over = evaluate(node.for_in.iter, run)
    plain = node.for_in.inner_for_in is None and not node.for_in.ifs
    items = items_of(over, run) if plain else None
    if items is not None and len(items) <= MOST_ENTRIES:
        for item in items:
            _assign(node.for_in.target, item, run, evaluate)
            key = key_of(evaluate(node.key, run), run)
            with _named_entry(key, run):
                run.kept[record.number, key] = evaluate(node.value, run)
    else:
        element, _ = _rounds([node.for_in], node.value, run, evaluate)
        run.kept[record.number, None] = element
    run.frame.names = saved
    return record


def comprehension(
    node: cst.ListComp | cst.GeneratorExp | cst.SetComp, run: Run, evaluate: Evaluate
) -> Value:
    """Return the list that a comprehension makes, or the entries that a generator gives."""
    saved = dict(run.frame.names)
    loops = [node.for_in]
    while loops[-1].inner_for_in is not None:
        loops.append(loops[-1].inner_for_in)
    element, length = _rounds(loops, node.elt, run, evaluate)
    index = None
    if len(loops) == 1 and not node.for_in.ifs and isinstance(element, Number):
        index = _index_of(node.for_in, run, evaluate)
    run.frame.names = saved
    return Sequence(None, element, length, index=index)


def _index_of(loop: cst.CompFor, run: Run, evaluate: Evaluate) -> tuple[str, Expr] | None:
    """Return the symbol that counts the entries of a comprehension, and where it begins."""
    made = iteration(evaluate(loop.iter, run), loop.target, run, run.text(loop.iter))
    counted = made.kind is LoopKind.COUNTED and made.step == 1 and made.stride is None
    return (made.variable, made.low) if counted else None


def _rounds(
    loops: Many[cst.CompFor], elt: cst.BaseExpression, run: Run, evaluate: Evaluate
) -> tuple[Value, Expr | None]:
    made = iteration(evaluate(loops[0].iter, run), loops[0].target, run, run.text(loops[0].iter))
    run.frame.depth += 1
    with run.block() as body:
        _assign(loops[0].target, made.element, run, evaluate)
        for condition in loops[0].ifs:
            evaluate(condition.test, run)
        if len(loops) > 1:
            element, inner = _rounds(loops[1:], elt, run, evaluate)
        else:
            element, inner = evaluate(elt, run), num(1)
        steps = tuple(body)
    run.frame.depth -= 1
    if steps:
        run.emit(loop_over(made, steps, run.span(loops[0])))
    filtered = any(loop.ifs for loop in loops)
    length = None if filtered or made.trips is None or inner is None else made.trips * inner
    return element, length


def _assign(target: cst.BaseExpression, value: Value, run: Run, evaluate: Evaluate) -> None:
    """Let a target without side effects (a name, a tuple of names) denote a value."""
    if isinstance(target, cst.Name):
        run.bind(target.value, value)
    elif isinstance(target, cst.Tuple | cst.List):
        for position, element in enumerate(target.elements):
            part = part_of(value, position, len(target.elements), run)
            _assign(element.value, part, run, evaluate)
    elif isinstance(target, cst.Attribute):
        owner = evaluate(target.value, run)
        if isinstance(owner, Record):
            run.kept[owner.number, target.attr.value] = value
