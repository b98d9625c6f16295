"""Runs the variants of a kernel in processes of their own, in turn, and compares their results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

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
from costdb.launch.processes import ONE_THREAD, run
from costdb.machines import Machine
from costdb.typical import typical

# What is run to verify a kernel: itself and its rewrites, on one process, with predictions.

ORIGINAL = "as written"
NOT_CALIBRATED = "this machine is not calibrated"


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
    machine: Machine | None,
    transforms: Sequence[Transform],
) -> Case:
    """Return a kernel with all rewrites that change what one process does.

    Without a machine nothing is predicted.

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
    return Case(path, kernel.name, sizes, tuple(inputs_of(kernel, sizes)), tuple(variants))


def _prediction(
    kernel: Kernel, sizes: Mapping[str, int | float], machine: Machine | None
) -> tuple[Costed | None, Estimate | None, str]:
    if machine is None:
        return None, None, NOT_CALIBRATED
    try:
        found = cost(at_sizes(alone(kernel), sizes), machine)
    except Unpriced as unpriced:
        return None, None, unpriced.reason
    if isinstance(found, Missing):
        return None, None, found.what
    return found, evaluate_price(found.priced, sizes), ""


def inputs_of(kernel: Kernel, sizes: Mapping[str, int | float]) -> Iterator[ArrayInput]:
    """Yield what arrays to make for a kernel at given sizes."""
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


_TOLERANCE = 1e-6
_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Effort:
    """How often to run: launches of each variant, repetitions and seconds in each."""

    launches: int = 5
    repetitions: int = 7
    seconds: float = 0.7


@dataclass(frozen=True, slots=True)
class Measured:
    """What a variant took, and whether its results are those of the kernel as written.

    Attributes
    ----------
    seconds, low_s, high_s : float
        What is typical of launches; fastest and slowest sample.
    equal : bool
    failure : str
        Why it did not run; empty where it did.
    """

    seconds: float = 0.0
    low_s: float = 0.0
    high_s: float = 0.0
    equal: bool = False
    failure: str = ""

    @property
    def times_s(self) -> tuple[float, float, float]:
        """The fastest sample, what is typical, the slowest."""
        return self.low_s, self.seconds, self.high_s


def measure(case: Case, effort: Effort) -> list[Measured]:
    """Run every variant of a case, taking turns, so that drift falls on all alike."""
    with TemporaryDirectory() as folder:
        samples: list[list[list[float]]] = [[] for _ in case.variants]
        failures = [""] * len(case.variants)
        for _ in range(effort.launches):
            for number, variant in enumerate(case.variants):
                if failures[number]:
                    continue
                taken = _launch(case, variant, number, Path(folder), effort)
                if isinstance(taken, str):
                    failures[number] = taken
                else:
                    samples[number].append(taken)
        return [
            _judged(Path(folder), number, variant, samples[number], failures)
            for number, variant in enumerate(case.variants)
        ]


def _launch(
    case: Case, variant: Variant, number: int, folder: Path, effort: Effort
) -> list[float] | str:
    file, job = folder / f"variant{number}.py", folder / f"job{number}.json"
    output = folder / f"output{number}.json"
    file.write_text(variant.source, "utf-8")
    stated = {
        "file": str(file),
        "folder": str(Path(case.path).resolve().parent),
        "kernel": case.kernel,
        "sizes": dict(case.sizes),
        "arrays": [asdict(one) for one in case.arrays],
        "repetitions": effort.repetitions,
        "seconds": effort.seconds,
        "results": str(folder / f"results{number}.npz"),
        "output": str(output),
    }
    job.write_text(json.dumps(stated), "utf-8")
    said = run("advisor.verify.worker", job, _PATIENCE_S, more=ONE_THREAD)
    if said:
        return said
    found = json.loads(output.read_text("utf-8"))
    return [float(sample) for sample in found["samples_s"]]


def _judged(
    folder: Path,
    number: int,
    variant: Variant,
    launches: Sequence[list[float]],
    failures: Sequence[str],
) -> Measured:
    if failures[number] or failures[0]:
        return Measured(failure=failures[number] or failures[0])
    every = [sample for launch in launches for sample in launch]
    equal = _equal(folder / "results0.npz", folder / f"results{number}.npz", variant.exact)
    return Measured(typical(launches), min(every), max(every), equal)


def _equal(one: Path, other: Path, exact: bool) -> bool:
    import numpy as np

    with np.load(one) as left, np.load(other) as right:
        if left.files != right.files:
            return False
        pairs = [(left[name], right[name]) for name in left.files]
    if exact:
        return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs)
    return all(
        a.shape == b.shape and np.allclose(a, b, _TOLERANCE, _TOLERANCE, equal_nan=True)
        for a, b in pairs
    )
