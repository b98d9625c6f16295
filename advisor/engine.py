"""From source text to ranked findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from advisor.finding import Finding, Remark
from advisor.frontend import prefilter

PLAIN_GAIN = 1.05
"""Predicted speed-up from which on a finding is reported."""

SURE_GAIN = 1.01
"""The same where even the low end of the interval is a gain."""


@dataclass(frozen=True)
class Options:
    """What the user chose.

    Attributes
    ----------
    machine : str or None
        Name of the profile that predictions are for.
    sizes : mapping of str to int or float
        They go over those that the source states.
    select, ignore : tuple of str
        Codes; no code selected means all.
    min_speedup : float or None
        Smaller predicted gains are not reported. None: those of 5 % are, and those of 1 % whose
        whole interval is a gain.
    size_origins : mapping of str to str
        What bound the sizes, where it was not ``-D``.
    rule_min_speedup : mapping of str to float
        Goes over `min_speedup` for single rules, by code.
    """

    machine: str | None
    sizes: Mapping[str, int | float]
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    min_speedup: float | None
    size_origins: Mapping[str, str] = field(default_factory=dict)
    rule_min_speedup: Mapping[str, float] = field(default_factory=dict)

    def reports(self, code: str, speedup: float, low: float) -> bool:
        """Return whether a rule's gain is reported, by its middle and the low end of it."""
        least = self.rule_min_speedup.get(code, self.min_speedup)
        if least is not None:
            return speedup >= least
        return speedup >= PLAIN_GAIN or (speedup >= SURE_GAIN and low > 1)


@dataclass(frozen=True)
class FileResult:
    """What is to be said of one file."""

    path: str
    source: str
    findings: tuple[Finding, ...]
    remarks: tuple[Remark, ...]


def needs_reading(source: str) -> bool:
    """Return whether a file may hold a kernel; imports nothing heavy."""
    return prefilter.needs_reading(source)


def check_source(path: str, source: str, options: Options) -> FileResult:
    """Return the findings of one file, greatest gain first.

    Raises
    ------
    SourceProblem
        The file does not parse, an annotation cannot be right, or a size has no value.
    MachineError
        The machine is unknown or its profile is wrong.
    """
    if not prefilter.needs_reading(source):
        return FileResult(path, source, (), ())
    # after the prefilter: LibCST and the models cost more than reading a file without kernels
    from advisor.frontend.comments import read_comments
    from advisor.frontend.kernels import read_kernels
    from advisor.ranking.rank import rank
    from advisor.ranking.sizes import bind_sizes
    from advisor.suppress import apply_suppressions
    from advisor.transform_registry import transforms
    from costdb.machines import load_machine

    machine = load_machine(options.machine or "")
    wanted = tuple(t for t in transforms() if _is_wanted(t.code, options))
    findings: list[Finding] = []
    remarks: list[Remark] = []
    for kernel in read_kernels(path, source):
        sizes = bind_sizes(kernel, options.sizes, options.size_origins)
        ranked = rank(path, kernel, machine, sizes, wanted, options.reports)
        findings += ranked.findings
        remarks += ranked.remarks
    kept = apply_suppressions(
        path, source, read_comments(source), findings, lambda code: _is_wanted(code, options)
    )
    ordered = sorted(kept.findings, key=lambda f: (-f.prediction.speedup, f.span, f.code))
    return FileResult(path, source, tuple(ordered), (*remarks, *kept.unused))


def _is_wanted(code: str, options: Options) -> bool:
    return (not options.select or code in options.select) and code not in options.ignore
