"""What must hold of every rewrite, whatever program it is made of."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel, Proposal, Transform
from advisor.ir.nests import index_name
from advisor.ir.statements import Loop, Statement
from advisor.source import Span, apply_edits
from costdb.expr import Expr, evaluate, free_symbols, substitute, sym

NOWHERE = Span(1, 0, 1, 0)

Maker = Callable[[Mapping[str, int], np.random.Generator], list[Any]]


@dataclass(frozen=True)
class Rewrite:
    """A program, what is proposed for one of its kernels, and the program that makes."""

    source: str
    kernel: Kernel
    proposal: Proposal
    rewritten: str


def only_kernel(source: str) -> Kernel:
    (found,) = read_kernels("kernel.py", source)
    return found


def first_rewrite(source: str, transform: Transform) -> Rewrite | None:
    """Return what the first proposal with edits makes of a program with one kernel."""
    kernel = only_kernel(source)
    for proposal in transform.propose(kernel):
        edits = proposal.edits()
        if edits:
            return Rewrite(source, kernel, proposal, apply_edits(source, edits))
    return None


def comments(source: str) -> Counter[str]:
    """Return the texts of all comments with how often each occurs."""
    # tokenize knows no bare carriage return, and its line ends differ from Python's elsewhere
    text = source.replace("\r\n", "\n").replace("\r", "\n")
    tokens = tokenize.generate_tokens(io.StringIO(text, newline="\n").readline)
    return Counter(t.string.rstrip() for t in tokens if t.type == tokenize.COMMENT)


def without_places(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Return statements without spans, loop indices named by their order in these."""
    names: dict[str, Expr] = {}
    return tuple(_normal(statement, names) for statement in body)


def _normal(node: Any, names: dict[str, Expr]) -> Any:
    if isinstance(node, Expr):
        known = {name: names[name] for name in free_symbols(node) if name in names}
        return substitute(node, known) if known else node
    if isinstance(node, Span):
        return NOWHERE
    if isinstance(node, tuple):
        return tuple(_normal(part, names) for part in node)
    if isinstance(node, Loop):
        index = f"{index_name(node.variable)}.loop{len(names)}"
        names[node.variable] = sym(index)
        node = replace(node, variable=index)
    if is_dataclass(node) and not isinstance(node, type):
        parts = {f.name: _normal(getattr(node, f.name), names) for f in fields(node)}
        return type(node)(**parts)
    return node


def check_text(found: Rewrite) -> None:
    """The result parses, and every comment is still there."""
    ast.parse(found.rewritten)
    assert comments(found.rewritten) == comments(found.source), found.rewritten


def check_square(found: Rewrite) -> None:
    """Reading the rewritten program gives the proposed variant."""
    again = only_kernel(found.rewritten)
    variant = found.proposal.variant
    assert without_places(again.body) == without_places(variant.body), found.rewritten
    for name, local in again.locals.items():
        assert variant.locals[name] == local, name


def check_idempotent(found: Rewrite, transform: Transform) -> None:
    """Nothing is left to propose."""
    left = list(transform.propose(only_kernel(found.rewritten)))
    assert not left, (left[0].title, found.rewritten)


@dataclass(frozen=True)
class Outcome:
    """What a call gave back, and what it left in its arguments."""

    result: Any
    arguments: list[Any]


def outcome(function: Callable[..., Any], arguments: list[Any]) -> Outcome | None:
    """Call a function; None where it raises."""
    with np.errstate(all="ignore"):
        try:
            result = function(*arguments)
        except (ValueError, IndexError, ZeroDivisionError, TypeError):
            return None
    return Outcome(result, arguments)


def arguments_of(
    kernel: Kernel, sizes: Mapping[str, int], rng: np.random.Generator, order: str = "C"
) -> list[Any]:
    """Return arguments for the parameters of a kernel: its arrays first, then whole numbers."""
    made: list[Any] = []
    for array in kernel.arrays.values():
        shape = tuple(int(evaluate(extent, dict(sizes))) for extent in array.extents)
        made.append(np.asarray(random_array(rng, shape, array.dtype), order=order))
    return [*made, *(sizes[name] for name in sizes if name.islower())]


def random_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        return rng.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    values = rng.uniform(-1, 1, shape)
    if kind.kind == "c":
        return (values + 1j * rng.uniform(-1, 1, shape)).astype(kind)
    return values.astype(kind)


def function_of(source: str, name: str) -> Callable[..., Any]:
    """Return a function of a test's own program; ``entry`` where it defines one."""
    namespace: dict[str, Any] = {"__name__": "program"}
    exec(compile(source, "program", "exec"), namespace)
    return namespace.get("entry", namespace.get(name))


def differences(found: Rewrite, cases: list[list[Any]], slack: float) -> Iterator[str]:
    """Run both programs and yield where they differ.

    Parameters
    ----------
    found : Rewrite
    cases : list of list
        Arguments of calls.
    slack : float
        Rounding errors allowed on floating-point results, in units of the last place of the
        greatest prefix sum; whole numbers must be equal bit for bit.
    """
    name = found.kernel.name
    before, after = function_of(found.source, name), function_of(found.rewritten, name)
    for arguments in cases:
        original = outcome(before, _copies(arguments))
        if original is None:
            continue
        with np.errstate(all="ignore"):
            result = after(*(given := _copies(arguments)))
        changed = Outcome(result, given)
        shown = [a if isinstance(a, int) else (a.shape, a.dtype) for a in arguments]
        pairs = [
            *zip(_flat(original.result), _flat(changed.result), strict=True),
            *zip(original.arguments, changed.arguments, strict=True),
        ]
        for one, other in pairs:
            if not _agree(one, other, arguments, slack):
                yield f"{shown}: {one!r} became {other!r}"


def _copies(arguments: list[Any]) -> list[Any]:
    return [a.copy(order="K") if isinstance(a, np.ndarray) else a for a in arguments]


def _flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def _agree(one: Any, other: Any, arguments: list[Any], slack: float) -> bool:
    if not isinstance(one, np.ndarray | np.generic):
        return bool(one == other)
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind not in "fc":
        return bool(np.array_equal(one, other))
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    longest = max((max(a.shape, default=1) for a in arrays), default=1)
    widths = sum(abs(a) for a in arguments if isinstance(a, int))
    terms = (longest + widths + 1) ** 3
    # sums on the way may have been rounded to the type of an argument, and widened only then
    kinds = [one.dtype, *(a.dtype for a in arrays if a.dtype.kind in "fc")]
    coarsest = max(np.finfo(kind).eps for kind in kinds)
    return bool(np.allclose(one, other, rtol=0, atol=slack * terms * coarsest))
