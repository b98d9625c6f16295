"""Distributions chosen by prediction and by the clock: MATMUL, ADI, GAUSS and PSRS on 2 ranks.

A prediction is that of the example's kernel, distributed one way or the other; what runs is a
program over ranks that does the same (:mod:`advisor.validation.programs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING

from advisor.ir.kernel import Kernel
from advisor.ranking.compare import Costed
from advisor.report.units import duration
from advisor.validation.evidence import Compared, keep
from advisor.validation.predicted import Changes, costed, kernel_of
from advisor.validation.ranks import (
    RANKS,
    Job,
    Times,
    examples_folder,
    left_out,
    run_in_rounds,
)
from costdb.estimate import Ratio
from costdb.evaluate import compare, evaluate_price
from costdb.machines import Machine
from costdb.published import ALGEBRA, CHOICE_MEAN_ERROR
from costdb.validation.results import Row, Section, Verdict, percent

if TYPE_CHECKING:
    from advisor.validation.sections import Context

TITLE = "distributions: which of two is faster on 2 ranks, and how well run times are predicted"
TIE = 1.1
"""How many times apart measured times are before their order counts."""

_MESH = ("rank=16", f"rank={RANKS}")
_NOTE = (
    "Predicted for the kernels of the examples with their annotations changed, measured on "
    "programs over ranks that lay the same data out alike; an error is the mean of |predicted - "
    "measured| / measured over sizes and ways. The paper predicted the best way in every case."
)


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to distribute: its name, the annotation's changes, and the program that runs it."""

    name: str
    changes: Changes
    program: str


@dataclass(frozen=True, slots=True)
class _Choice:
    """A choice of the paper: which example's kernel, which rule tells of it, two ways, sizes."""

    program: str
    file: str
    kernel: str
    code: str
    first: _Way
    second: _Way
    sizes: tuple[dict[str, int], ...]

    @property
    def ways(self) -> tuple[_Way, _Way]:
        return self.first, self.second


_SPREAD = 'Dist("N", "N", None, Block("rank"), on=mesh)'
_ROWS = 'Dist("N", "N", Block("rank"), None, on=mesh)'
_EVERYWHERE = 'Dist("P", "M", None, None, on=mesh)'
_SQUARES = tuple({"N": order} for order in (300, 1000, 2000))

CHOICES = (
    _Choice(
        "MATMUL",
        "matmul.py",
        "matmul",
        "ADV104",
        _Way("columns of B gathered", (_MESH,), "matmul gathered"),
        _Way("all of B held", (_MESH, (_SPREAD, 'Dist("N", "N", None, None, on=mesh)')),
             "matmul held"),
        tuple({"N": order} for order in (200, 500, 1000)),
    ),
    _Choice(
        "ADI",
        "adi.py",
        "sweep_rows",
        "ADV101",
        _Way("rows swept across ranks", (_MESH,), "sweep_rows swept"),
        _Way("rows whole", (_MESH, (_SPREAD, _ROWS)), "sweep_rows other"),
        _SQUARES,
    ),
    _Choice(
        "ADI",
        "adi.py",
        "sweep_columns",
        "ADV101",
        _Way("columns swept across ranks", (_MESH, (_SPREAD, _ROWS)), "sweep_columns swept"),
        _Way("columns whole", (_MESH,), "sweep_columns other"),
        _SQUARES,
    ),
    _Choice(
        "GAUSS",
        "gauss.py",
        "eliminate",
        "ADV102",
        _Way("columns in blocks", (), "eliminate block"),
        _Way(
            "columns cyclic",
            (("import Block,", "import Block, Cyclic,"), ('Block("rank")', 'Cyclic("rank")')),
            "eliminate cyclic",
        ),
        tuple({"N": order, "P": RANKS} for order in (200, 500, 1000)),
    ),
    _Choice(
        "PSRS",
        "sample_sort.py",
        "find_buckets",
        "ADV104",
        _Way("index vector replicated", (), "buckets replicated"),
        _Way(
            "index vector partitioned",
            ((_EVERYWHERE, 'Dist("P", "M", Block("rank"), None, on=mesh)'),),
            "buckets partitioned",
        ),
        tuple({"M": count, "P": RANKS} for count in (10_000, 100_000, 1_000_000)),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Predicted:
    choice: _Choice
    sizes: dict[str, int]
    costed: tuple[Costed, Costed]
    title: str

    @property
    def mids_us(self) -> tuple[float, float]:
        one, other = (evaluate_price(c.priced, self.sizes).mid * 1e6 for c in self.costed)
        return one, other


@dataclass(frozen=True, slots=True)
class _Run:
    """One way at one size: how far its prediction is off, and what it took."""

    error: float
    predicted_us: float
    measured_us: float
    way: _Way
    case: _Predicted


def choices(context: Context) -> Section:
    """Return the section.

    Raises
    ------
    CannotValidateError
        MPI is missing, the profile lacks a part, or the examples are others.
    """
    context.progress("pricing distributions", 0.0)
    cases = [
        _Predicted(choice, sizes, _costed(kernels, sizes, context.machine), title)
        for choice in CHOICES
        for kernels in [_kernels(choice)]
        for title in [_title(choice.code, *kernels)]
        for sizes in choice.sizes
    ]
    jobs = [Job(tuple(way.program for way in case.choice.ways), case.sizes) for case in cases]
    rows: list[Row] = []
    compared: list[Compared] = []
    errors: dict[str, list[_Run]] = {}
    every: list[Times] = []
    found = run_in_rounds(jobs, lambda share: context.progress("distributions on ranks", share))
    for case, (first, second) in zip(cases, found, strict=True):
        every += (first, second)
        rows.append(_row(case, first, second))
        compared.append(_compared(case, first, second))
        errors.setdefault(case.choice.program, []).extend(
            _Run(abs(predicted / measured.median_us - 1), predicted, measured.median_us, way, case)
            for predicted, measured, way in zip(
                case.mids_us, (first, second), case.choice.ways, strict=True
            )
        )
    keep(context.machine, RANKS, (one for one in compared if one.title))
    rows += [_error_row(program, found) for program, found in errors.items()]
    return Section("choices", TITLE, tuple(rows), (_NOTE, *left_out(every)))


def _kernels(choice: _Choice) -> tuple[Kernel, Kernel]:
    path = examples_folder() / choice.file
    one, other = (kernel_of(path, choice.kernel, way.changes)[0] for way in choice.ways)
    return one, other


def _title(code: str, one: Kernel, other: Kernel) -> str:
    """Return what a rule calls the step from one distribution to another; empty where it has none.

    Evidence is found again by it.
    """
    from advisor.transform_registry import transforms

    for rule in transforms():
        for proposal in rule.propose(one) if rule.code == code else ():
            arrays = proposal.variant.arrays
            if all(arrays[name].spec == array.spec for name, array in other.arrays.items()):
                return proposal.title
    return ""


def _costed(
    kernels: tuple[Kernel, Kernel], sizes: dict[str, int], machine: Machine
) -> tuple[Costed, Costed]:
    one, other = (costed(kernel, sizes, machine) for kernel in kernels)
    return one, other


def _row(case: _Predicted, first: Times, second: Times) -> Row:
    choice, predicted = case.choice, case.mids_us
    measured = first.median_us, second.median_us
    expected, found = (pair.index(min(pair)) for pair in (predicted, measured))
    tie = max(measured) < TIE * min(measured)
    verdict = Verdict.UNJUDGED if tie else Verdict.of(expected == found)
    ours = (
        f"{choice.ways[found].name}, {max(measured) / min(measured):.2f}x"
        f" (predicted {predicted[1 - found] / predicted[found]:.2f}x)"
    )
    values = {
        "predicted_first_us": predicted[0],
        "predicted_second_us": predicted[1],
        "measured_first_us": measured[0],
        "measured_second_us": measured[1],
    }
    return Row(
        "algebra",
        f"{choice.program}, {choice.kernel}, {_sizes(case)}",
        "faster way",
        "best way predicted",
        ALGEBRA,
        ours,
        verdict,
        values,
        _times(case, measured, verdict),
    )


def _times(case: _Predicted, measured: tuple[float, float], verdict: Verdict) -> str:
    """Return predicted and measured times of both ways where the order is wrong."""
    if verdict is not Verdict.MISSES:
        return ""
    return "; ".join(
        f"{way.name}: predicted {duration(predicted * 1e-6)}, measured {duration(taken * 1e-6)}"
        for way, predicted, taken in zip(case.choice.ways, case.mids_us, measured, strict=True)
    )


def _error_row(program: str, runs: Sequence[_Run]) -> Row:
    printed, found = CHOICE_MEAN_ERROR[program], mean(run.error for run in runs)
    worst = max(runs, key=lambda run: run.error)
    remark = (
        f"worst for {worst.way.name}, {_sizes(worst.case)}: predicted "
        f"{duration(worst.predicted_us * 1e-6)}, measured {duration(worst.measured_us * 1e-6)}"
    )
    return Row(
        "algebra",
        program,
        "mean error of run times",
        percent(printed),
        ALGEBRA,
        f"{percent(found)} over {len(runs)} runs",
        Verdict.of(found <= printed),
        {"mean_error": found, "worst_error": worst.error},
        remark if found > printed else "",
    )


def _sizes(case: _Predicted) -> str:
    return ", ".join(f"{name} = {value}" for name, value in case.sizes.items() if name != "P")


def _compared(case: _Predicted, first: Times, second: Times) -> Compared:
    measured = Ratio(
        first.low_us / second.high_us,
        first.median_us / second.median_us,
        first.high_us / second.low_us,
    )
    before, after = (one.priced for one in case.costed)
    predicted = compare(before, after, case.sizes)
    choice = case.choice
    return Compared(
        choice.file, choice.kernel, choice.code, case.title, case.sizes, predicted, measured
    )
