"""What rewrites of element loops have in common: which nests, and when memory may overlap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from advisor.distribution import NotDistributed
from advisor.finding import Applicability
from advisor.ir.kernel import COMPILERS, Kernel
from advisor.ir.nests import Nest, index_name, nests
from advisor.ir.proposal import Legality
from advisor.ir.statements import Loop, Statement
from advisor.ir.values import reads


def rewritable(kernel: Kernel) -> Iterator[Nest]:
    """Yield the nests over single elements whose indices nothing else needs."""
    for nest in nests(kernel.body):
        names = [index_name(variable) for variable in nest.variables]
        texts = kernel.context.scalar_texts
        known = all(texts.get(v) == name for v, name in zip(nest.variables, names, strict=True))
        if (
            known
            and nest.is_by_element
            and len(set(names)) == len(names)
            and not kernel.observed & set(names)
            and not any(loop.stated for loop in nest.loops)
        ):
            yield nest


def unless_apart(nest: Nest, kernel: Kernel) -> Legality | None:
    """Return why results may change where memory overlaps, None where no two names share any."""
    shared = _overlapping(nest, kernel)
    if shared is None:
        return None
    return Legality(
        Applicability.UNSAFE,
        f"results are equal bit for bit if `{shared[0]}` and `{shared[1]}` do not overlap in"
        " memory, which is up to the caller",
    )


def _overlapping(nest: Nest, kernel: Kernel) -> tuple[str, str] | None:
    """Return two names of a nest that may denote the same memory, of which one is written."""
    named = sorted({read.array for store in nest.body for read in reads(store.value)})
    stored = dict.fromkeys(store.array for store in nest.body)
    for one in stored:
        for other in (*stored, *named):
            given = one in kernel.arrays and other in kernel.arrays
            renamed = one in kernel.aliases or other in kernel.aliases
            if one != other and (given or renamed):
                return one, other
    return None


def compiled(kernel: Kernel) -> Legality | None:
    """Return why a kernel with decorators is left to its author, None where it has none."""
    if not kernel.context.decorators:
        return None
    return Legality(
        Applicability.DISPLAY,
        f"what `{kernel.context.decorators[0]}` makes of the new text is not known",
    )


def is_compiled_alone(kernel: Kernel) -> bool:
    """Return whether a kernel is compiled and all it uses lies in one place.

    No interpreter and no message is then saved by whole arrays, which would need memory of their
    own, and a ``prange`` would be lost.
    """
    parts = {part for name in kernel.context.decorators for part in name.split(".")}
    dims = (dim for array in kernel.arrays.values() for dim in array.spec.dims)
    return not parts.isdisjoint(COMPILERS) and all(isinstance(d, NotDistributed) for d in dims)


def with_statement(
    body: tuple[Statement, ...], old: Statement, new: tuple[Statement, ...]
) -> tuple[Statement, ...]:
    """Return a block in which some statements stand in the place of one, found by identity."""
    made: list[Statement] = []
    for statement in body:
        if statement is old:
            made.extend(new)
        elif isinstance(statement, Loop):
            inner = with_statement(statement.body, old, new)
            same = all(a is b for a, b in zip(inner, statement.body, strict=False))
            unchanged = same and len(inner) == len(statement.body)
            made.append(statement if unchanged else replace(statement, body=inner))
        else:
            made.append(statement)
    return tuple(made)
