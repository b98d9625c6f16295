"""What is run to verify a kernel: itself and its rewrites, on one process, with predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from advisor.analysis.lower import Unpriced
from advisor.distribution import MeshSpec, StorageOrder
from advisor.edits import EditError, apply_edits
from advisor.finding import Applicability
from advisor.ir.concrete import at_sizes
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Transform
from advisor.ir.statements import Bind, ScalarBind, Scatter, Store, walk
from advisor.ir.values import Gather, Read, Value, operands
from advisor.ranking.compare import Costed, cost
from costdb.estimate import Estimate, Missing
from costdb.evaluate import evaluate_price
from costdb.expr import ExprError, evaluate
from costdb.machines import Machine

ORIGINAL = "as written"


@dataclass(frozen=True, slots=True)
class ArrayInput:
    """An argument to make: shape and element type, below what whole numbers stay, storage order."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    below: int
    order: StorageOrder = "C"


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to write a kernel.

    Attributes
    ----------
    code, title : str
        The rule and what it does; the title of the kernel as written is `ORIGINAL`.
    source : str
    exact : bool
        Whether results must be equal to the last bit.
    costed : Costed or None
        Its price on one process; None where there is none, for the reason in `unknown`.
    predicted : Estimate or None
    unknown : str
    """

    code: str
    title: str
    source: str
    exact: bool
    costed: Costed | None
    predicted: Estimate | None
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel to verify: its arguments, and the ways to write it, as written first."""

    path: str
    kernel: str
    sizes: Mapping[str, int | float]
    arrays: tuple[ArrayInput, ...]
    variants: tuple[Variant, ...]


def alone(kernel: Kernel) -> Kernel:
    """Return a kernel on one process: every axis of its meshes has one rank."""
    arrays = {
        name: replace(
            array,
            spec=replace(
                array.spec, mesh=MeshSpec(tuple((axis, 1) for axis, _ in array.spec.mesh.axes))
            ),
        )
        for name, array in kernel.arrays.items()
    }
    return kernel.with_arrays(arrays)


def case_of(
    path: str,
    source: str,
    kernel: Kernel,
    sizes: Mapping[str, int | float],
    machine: Machine,
    transforms: Sequence[Transform],
) -> Case:
    """Return a kernel with all rewrites that change what one process does.

    Raises
    ------
    ExprError
        A size has no value.
    """
    costed, predicted, unknown = _prediction(kernel, sizes, machine)
    variants = [Variant("", ORIGINAL, source, True, costed, predicted, unknown)]
    seen = {source}
    for transform in transforms:
        for proposal in transform.propose(kernel):
            if proposal.variant.body == kernel.body:
                # where data lives is all that differs, which one process does not notice
                continue
            try:
                rewritten = apply_edits(source, proposal.edits())
            except EditError:
                continue
            if rewritten in seen:
                continue
            seen.add(rewritten)
            costed, predicted, unknown = _prediction(proposal.variant, sizes, machine)
            exact = proposal.legality.applicability is Applicability.SAFE
            title = proposal.title
            variants.append(
                Variant(transform.code, title, rewritten, exact, costed, predicted, unknown)
            )
    return Case(path, kernel.name, sizes, tuple(_inputs(kernel, sizes)), tuple(variants))


def _prediction(
    kernel: Kernel, sizes: Mapping[str, int | float], machine: Machine
) -> tuple[Costed | None, Estimate | None, str]:
    try:
        found = cost(at_sizes(alone(kernel), sizes), machine)
    except Unpriced as unpriced:
        return None, None, unpriced.reason
    if isinstance(found, Missing):
        return None, None, found.what
    return found, evaluate_price(found.priced, sizes), ""


def _inputs(kernel: Kernel, sizes: Mapping[str, int | float]) -> Iterator[ArrayInput]:
    limits = dict(_limits(kernel, sizes))
    for name, array in kernel.arrays.items():
        shape = tuple(int(evaluate(extent, sizes)) for extent in array.extents)
        yield ArrayInput(name, shape, array.dtype, limits.get(name, 1000), array.spec.order)


def _limits(kernel: Kernel, sizes: Mapping[str, int | float]) -> Iterator[tuple[str, int]]:
    """Yield the arrays whose elements are places in another one, and how many places it has."""
    for statement in walk(kernel.body):
        if isinstance(statement, Scatter):
            yield from _places(statement.places, kernel, statement.array, sizes)
        if isinstance(statement, Bind | Store | ScalarBind | Scatter):
            yield from _gathered(statement.value, kernel, sizes)


def _gathered(
    value: Value, kernel: Kernel, sizes: Mapping[str, int | float]
) -> Iterator[tuple[str, int]]:
    if isinstance(value, Gather) and isinstance(value.operand, Read):
        yield from _places(value.places, kernel, value.operand.array, sizes)
    for part in operands(value):
        yield from _gathered(part, kernel, sizes)


def _places(
    value: Value, kernel: Kernel, table: str, sizes: Mapping[str, int | float]
) -> Iterator[tuple[str, int]]:
    if isinstance(value, Read):
        try:
            yield value.array, int(evaluate(kernel.extents(table)[0], sizes))
        except ExprError:
            return
