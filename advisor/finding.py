"""A finding: one ranked suggestion, complete enough for every report format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from advisor.source import Edit, SourceProblem, Span
from costdb.quantity import Omission
from costdb.records import dataclass

UNUSED_SUPPRESSION = "ADV901"
"""Code of the remark that a comment suppresses nothing."""


REPORTED_FROM = 1.05
"""Predicted speed-up from which on a finding is reported, and a size is said to make it pay."""

SMALL_SHARE = 0.01
"""Part of a kernel's or program's time below which a finding is not shown."""

NOISE_S = 1e-6
"""Time saved in a call below which no clock of a user shows it."""

SEEN_S = 1e-2
"""Time saved in one run from which on a finding is a gain of whatever share: 1 % of a second."""

GAIN_FROM = 1.05
"""Low end of the speed-up from which on a finding is a gain."""

ONE_PROCESS = "this file, one process"
"""How the subject of a price begins that is the file as it runs by itself."""

MEASURED = "measured"
INTERPOLATED = "between measured sizes"
"""The provenance of times that runs of both sides took."""

MODULE = "<module>"
"""The name of the function that the statements at the top of a file make up."""

ONE_EACH_CORE = "one for each core"
"""The origin of a number of ranks that nobody gave."""

OBSERVED = "observed"
"""How the origin of a size begins that a run of the program showed."""


ALSO = "another remedy for this place"
"""Why a suggestion is told with another: both are about the same."""


class Applicability(StrEnum):
    """Who may apply an edit: ``--fix``, ``--unsafe-fixes``, or only the reader."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


class Verdict(StrEnum):
    """What a finding is worth to who runs this file.

    GAIN: the low end is a gain, and it is a part of the program that is worth the change.
    UNCERTAIN: it may also be slower. PLAN: it changes a distribution that nothing here executes.
    """

    GAIN = "gain"
    UNCERTAIN = "uncertain"
    PLAN = "plan"


Times = tuple[float, float, float]
"""The least, the typical and the greatest seconds, or a ratio's ends."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted kernel times in seconds, and their ratio.

    Attributes
    ----------
    before_s, after_s : float
        Time of the kernel as written, and as proposed.
    before_low_s, before_high_s, after_low_s, after_high_s : float
        Their intervals, each on its own.
    speedup : float
        ``before_s / after_s``.
    low, high : float
        Interval of the speed-up; coefficients shared by both sides move together.
    in_range : bool
        False when a coefficient is used outside the range that calibrated it.
    omitted : tuple of Omission
        Parts of either side that have no price: times are lower bounds, and have no upper end.
    """

    before_s: float
    after_s: float
    speedup: float
    low: float
    high: float
    before_low_s: float
    before_high_s: float
    after_low_s: float
    after_high_s: float
    in_range: bool
    omitted: tuple[Omission, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every part of both sides has a price."""
        return not self.omitted

    @property
    def of_known(self) -> bool:
        """Whether parts without a price run again and again in both: of them nothing is told."""
        return not all(one.once for one in self.omitted) and self.high < float("inf")

    @property
    def confidence(self) -> str:
        """``"high"`` where the interval of the speed-up excludes a loss, else ``"low"``."""
        return "high" if self.low > 1 else "low"

    @staticmethod
    def of(
        before: Times,
        after: Times,
        ratio: Times,
        *,
        in_range: bool = True,
        omitted: tuple[Omission, ...] = (),
    ) -> Prediction:
        """Return a prediction from the lows, middles and highs of both sides and their ratio."""
        (low, speedup, high), (before_low, before_s, before_high) = ratio, before
        after_low, after_s, after_high = after
        ends = before_low, before_high, after_low, after_high
        return Prediction(before_s, after_s, speedup, low, high, *ends, in_range, omitted)


@dataclass(frozen=True, slots=True)
class Assumption:
    """A size or fact that the prediction rests on, and what bound it (``-D``, annotation ...)."""

    name: str
    value: int | float | str
    origin: str


@dataclass(frozen=True, slots=True)
class EvidenceTerm:
    """One named part of the cost, before and after, in seconds; None: absent on that side."""

    label: str
    model: str
    before_s: float | None
    after_s: float | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where the numbers come from.

    Attributes
    ----------
    machine, calibration : str
        Profile name, and what is known of its library and date.
    provenance : str
        The least trustworthy provenance among the coefficients used.
    terms : tuple of EvidenceTerm
    facts : tuple of str
        Counted facts, such as the cache lines touched on both sides.
    coefficients : tuple of str
        One line for each machine number used: value, unit, provenance, source.
    remarks : tuple of str
        Extrapolations and other limits.
    measured : tuple of str
        What runs of this kernel and its rewrite took, one line each, where some were made.
    """

    machine: str
    calibration: str
    provenance: str
    terms: tuple[EvidenceTerm, ...]
    facts: tuple[str, ...] = ()
    coefficients: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another way of writing it, and why it lost."""

    title: str
    time_s: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Crossover:
    """Where the choice flips: the suggestion pays for `variable` in `pays` (text), others fixed."""

    variable: str
    values: tuple[int, ...]
    pays: str


@dataclass(frozen=True, slots=True)
class Condition:
    """Where a suggestion pays, when sizes that nothing binds leave no time to predict.

    Attributes
    ----------
    text : str
        Such as ``N >= 412, tried to 4096``; for several open sizes one part for each, with the
        values that the others had.
    open_sizes : tuple of str
        The sizes that nothing binds.
    pays_from : int or None
        The value from which on it pays, of each open size, up to the end of what was looked at.
        None where it does not last.
    always : bool
        Whether it pays for all that was looked at.
    """

    text: str
    open_sizes: tuple[str, ...]
    pays_from: int | None
    always: bool


@dataclass(frozen=True, slots=True)
class Fix:
    """The edits that carry a suggestion out, and why they keep the results."""

    applicability: Applicability
    legality: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One suggestion at one place.

    Attributes
    ----------
    code, name : str
        ``ADV201`` and ``repeated-shifts``.
    path : str
        As given on the command line, with forward slashes.
    kernel : str
        Name of the kernel.
    span : Span
        The statement the suggestion is about.
    message : str
        One sentence, starting with the gain.
    reason : str
        Why it is faster, in a sentence or two.
    prediction : Prediction or None
        None where some size has no value; `condition` then says where it pays.
    condition : Condition or None
        None where there is a prediction.
    fingerprint : str
        Survives the move of its lines: no line number enters it.
    verdict : Verdict
    saves_s : float or None
        Time saved in one run of the kernel or program, in seconds; None without a prediction.
    share : float or None
        That part of the time of the kernel or program; None where that is not known.
    priced_as : str
        Whose time it is: ``as 16 ranks of t3e``, or ``this file, one process``.
    """

    code: str
    name: str
    path: str
    kernel: str
    span: Span
    message: str
    reason: str
    prediction: Prediction | None
    assumptions: tuple[Assumption, ...]
    evidence: Evidence
    alternatives: tuple[Alternative, ...]
    crossovers: tuple[Crossover, ...]
    fix: Fix | None
    fingerprint: str
    condition: Condition | None = None
    verdict: Verdict = Verdict.UNCERTAIN
    saves_s: float | None = None
    share: float | None = None
    priced_as: str = ""

    @property
    def title(self) -> str:
        """What to do: the message without the gain that it starts with."""
        return self.message.partition(": ")[2] or self.message

    @property
    def others(self) -> tuple[str, ...]:
        """What else can be done about the same place."""
        return tuple(one.title for one in self.alternatives if one.reason == ALSO)

    @property
    def speedup(self) -> float:
        """Predicted speed-up; 0 where none is predicted, so that such findings come last."""
        return 0.0 if self.prediction is None else self.prediction.speedup

    @property
    def is_small(self) -> bool:
        """Whether what it saves is not worth a change, or is lost in the noise of any clock."""
        timed = self.evidence.provenance == MEASURED
        if timed and self.prediction is not None and self.prediction.speedup < REPORTED_FROM:
            return True
        if self.share is not None and self.share < SMALL_SHARE:
            return True
        return self.saves_s is not None and self.saves_s < NOISE_S

    @property
    def is_gain(self) -> bool:
        """Whether even the low end is a gain, of a part that is worth the change.

        What is to be written by hand, in words that are nobody's yet, has an estimate for a price.
        """
        written = self.fix is not None or self.evidence.provenance == MEASURED
        sure = written and self.prediction is not None and self.prediction.low > GAIN_FROM
        known = self.share is not None or (self.saves_s or 0.0) >= SEEN_S
        return sure and known and not self.is_small

    @property
    def order(self) -> tuple[float, Span, str]:
        """What findings are sorted by: what saves most comes first."""
        return -(self.saves_s or 0.0), self.span, self.code


@dataclass(frozen=True, slots=True)
class Remark:
    """Something the tool wants known that is not a suggestion: an unknown, an assumption."""

    path: str
    kernel: str
    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class Untold:
    """A gain that is too small to tell of; a comment that suppresses it is of use all the same."""

    code: str
    span: Span


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """Something that was not analysed: where, what is written there, and why."""

    path: str
    line: int
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was looked at and what was not; of one file, or of several together.

    Attributes
    ----------
    analysed : tuple of str
        Names of kernels and functions that were read and priced in full.
    fine : tuple of str
        Those of them that nothing makes faster.
    not_understood : tuple of NotUnderstood
    unsupported : tuple of str
        Array libraries that a file uses and nobody here models, such as ``cupy``.
    unpriced : tuple of str
        Why the machine prices no such thing, as ``3 parallel loops: t3e describes no threads``.
    incomplete : tuple of str
        Names of kernels and functions that were not read or not priced in full.
    """

    analysed: tuple[str, ...] = ()
    fine: tuple[str, ...] = ()
    not_understood: tuple[NotUnderstood, ...] = ()
    unsupported: tuple[str, ...] = ()
    unpriced: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether everything was analysed and priced."""
        parts = (self.not_understood, self.unsupported, self.unpriced, self.incomplete)
        return not any(parts)

    def and_also(self, other: Coverage) -> Coverage:
        """Return what both say."""
        return Coverage(
            self.analysed + other.analysed,
            self.fine + other.fine,
            tuple(dict.fromkeys(self.not_understood + other.not_understood)),
            tuple(dict.fromkeys((*self.unsupported, *other.unsupported))),
            self.unpriced + other.unpriced,
            self.incomplete + other.incomplete,
        )


NOTHING_SEEN = Coverage()


@dataclass(frozen=True, slots=True)
class Failure:
    """A bug of ours that came up with one function, and left the others checked.

    Attributes
    ----------
    name : str
    line : int
    trace : str
        Where it came up.
    """

    name: str
    line: int
    trace: str

    def told(self, path: str) -> str:
        """Return its one line, which follows the trace."""
        what = f"internal error in {path}:{self.line}: {self.name} was left out"
        return f"advise: {what}, please report it with the lines above"


@contextmanager
def sparing_others(
    name: str, line: int, failures: list[Failure] | None, refusals: type[Exception] = SourceProblem
) -> Iterator[None]:
    """Note a bug of ours that comes up with one function; without a list it is raised.

    What says why a file is refused is raised, and running out of stack.
    """
    try:
        yield
    except Exception as error:
        if failures is None or isinstance(error, SourceProblem | RecursionError | refusals):
            raise
        from traceback import format_exc

        failures.append(Failure(name, line, format_exc()))


@dataclass(frozen=True, slots=True)
class Ranked:
    """What is to be said of a kernel, a program or all kernels of a file, before suppressions.

    Attributes
    ----------
    findings : tuple of Finding
    remarks : tuple of Remark
    untold : tuple of Untold
        Gains that are not reported.
    coverage : Coverage
    names : frozenset of str
        Sizes that can be given values.
    judged : tuple of Judged
        The findings with their prices, as ranking made them.
    """

    findings: tuple[Finding, ...] = ()
    remarks: tuple[Remark, ...] = ()
    untold: tuple[Untold, ...] = ()
    coverage: Coverage = NOTHING_SEEN
    names: frozenset[str] = frozenset()
    judged: tuple[Any, ...] = ()

    def and_also(self, other: Ranked) -> Ranked:
        """Return both together."""
        return Ranked(
            self.findings + other.findings,
            self.remarks + other.remarks,
            self.untold + other.untold,
            self.coverage.and_also(other.coverage),
            self.names | other.names,
            self.judged + other.judged,
        )
