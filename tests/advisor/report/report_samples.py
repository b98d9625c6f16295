"""Findings made up for the tests of reports, and strategies that make up many more."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

from hypothesis import strategies as st

from advisor.finding import (
    Alternative,
    Applicability,
    Assumption,
    Condition,
    Coverage,
    Crossover,
    Evidence,
    EvidenceTerm,
    Finding,
    Fix,
    NotUnderstood,
    Prediction,
    Remark,
    Verdict,
)
from advisor.report.model import Report
from advisor.source import Edit, Span
from costdb.quantity import Omission

SOURCE = """\
import numpy as np


def box_sum(image, b):
    total = image.copy()
    for k in range(1, b):
        total += np.roll(image, k, axis=0)
    rows = total.copy()
    for k in range(1, b): rows += np.roll(total, k, axis=1)
    return rows
"""

SHIFTS = Finding(
    code="ADV201",
    name="repeated-shifts",
    path="kernels/box.py",
    kernel="box_sum",
    span=Span(6, 4, 8, 0),
    message="1.72x faster (1.41x to 2.05x): replace 8 shifted additions by two prefix sums",
    reason="Every shift sends a message and passes over the block again; a prefix sum takes "
    "log2 P messages whatever b is.",
    prediction=Prediction(
        before_s=3.1234e-3,
        after_s=1.8159e-3,
        speedup=1.72,
        low=1.41,
        high=2.05,
        before_low_s=2.8e-3,
        before_high_s=3.5e-3,
        after_low_s=1.6e-3,
        after_high_s=2.1e-3,
        in_range=True,
    ),
    assumptions=(
        Assumption("N", 1000, "annotation"),
        Assumption("b", 5, "-D"),
        Assumption("P", 16, "mesh(row=4, col=4)"),
    ),
    evidence=Evidence(
        machine="t3e",
        calibration="published figures, 1999",
        provenance="estimated",
        terms=(
            EvidenceTerm("start-up of messages", "lines M1", 0.41e-3, 0.62e-3),
            EvidenceTerm("bytes", "lines M1", 0.09e-3, 0.05e-3),
            EvidenceTerm("cache lines marshalled", "lines M1", 0.12e-3, None),
            EvidenceTerm("local additions", "lines", 2.5034e-3, 1.1459e-3),
        ),
        facts=("8 messages before, 10 after", "2000 lines touched before, none after"),
        coefficients=("message.alpha = 51 us (estimated)",),
        remarks=("alpha was fitted to the published crossover",),
    ),
    alternatives=(
        Alternative("distribute rows only", 2.2e-3, "longer rows to send outweigh fewer messages"),
        Alternative("cyclic columns", None, "the machine has no gather rate"),
    ),
    crossovers=(Crossover("b", (3,), "pays from b = 3"),),
    fix=Fix(
        Applicability.SAFE,
        "integer sums may be regrouped",
        (Edit(Span(6, 4, 7, 42), "total = windowed(image, b, axis=0)"),),
    ),
    fingerprint="6f1d2a90c3b4",
    verdict=Verdict.GAIN,
    saves_s=1.3075e-3,
    share=0.4186,
    priced_as="as 16 ranks of t3e",
)

COLUMN = replace(
    SHIFTS,
    code="ADV101",
    name="strided-column",
    span=Span(9, 26, 9, 59),
    message="1.10x faster (0.92x to 1.31x): distribute rows instead of columns",
    reason="A column touches a cache line for each element.",
    prediction=Prediction(
        before_s=9.9996e-4,
        after_s=9.0909e-4,
        speedup=1.1,
        low=0.92,
        high=1.31,
        before_low_s=8e-4,
        before_high_s=1.2e-3,
        after_low_s=7e-4,
        after_high_s=1.1e-3,
        in_range=False,
    ),
    evidence=replace(SHIFTS.evidence, terms=(), facts=(), remarks=()),
    alternatives=(),
    crossovers=(),
    fix=None,
    fingerprint="0b77aa01",
    verdict=Verdict.UNCERTAIN,
    saves_s=9.087e-5,
    share=0.0909,
)

UNKNOWN = Remark(
    "kernels/box.py", "box_sum", Span(10, 4, 10, 15), "the trip count is not known: taken as 1"
)

COVERAGE = Coverage(
    analysed=("box_sum", "hist"),
    fine=("hist",),
    not_understood=(
        NotUnderstood("kernels/box.py", 32, "out = np.append(out, x)", "an append in a loop"),
    ),
    unsupported=("cupy",),
    unpriced=("3 parallel loops: t3e describes no threads",),
    incomplete=("grow",),
)

SAMPLE = Report(
    "t3e",
    (SHIFTS, COLUMN),
    (UNKNOWN,),
    {"kernels/box.py": SOURCE},
    looked_into=1,
    coverage=COVERAGE,
)
EMPTY = Report("t3e", (), (), {})
CALM = replace(EMPTY, looked_into=1, coverage=Coverage(("hist",), ("hist",)))


def _spans() -> st.SearchStrategy[Span]:
    small = st.integers(0, 12)
    return st.builds(
        lambda line, column, lines, columns: Span(
            line + 1, column, line + 1 + lines, columns if lines else column + columns
        ),
        small,
        st.integers(0, 80),
        small,
        st.integers(0, 80),
    )


# Text with everything that has broken a report somewhere: newlines, markup, escapes, surrogates.
TEXT = st.text(st.characters() | st.sampled_from("\n\r\t\x1b%:,<>&\"']\u2028\ud800"), max_size=12)

_BY_TYPE: dict[str, st.SearchStrategy[Any]] = {
    **{"str": TEXT, "int": st.integers(1, 99), "bool": st.booleans(), "Span": _spans()},
    "float": st.floats(),
    "int | float | str": st.integers() | st.floats() | TEXT,
    **{kind.__name__: st.sampled_from(kind) for kind in (Applicability, Verdict)},
}


def _of_type(kind: str) -> st.SearchStrategy[Any]:
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]
    if kind.endswith(" | None"):
        return st.none() | _of_type(kind.removesuffix(" | None"))
    inner = kind.removeprefix("tuple[").removesuffix(", ...]")
    return st.lists(_of_type(inner), max_size=2).map(tuple)


def _made(kind: Any, **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return what makes up values of a class: of what is not given, by the types of its fields."""
    made = {
        one.name: given[one.name] if one.name in given else _of_type(one.type)
        for one in fields(kind)
    }
    _BY_TYPE[kind.__name__] = st.builds(kind, **made)
    return _BY_TYPE[kind.__name__]


for _kind in (Edit, Omission, Fix, Assumption, EvidenceTerm, Crossover):
    _made(_kind)
_made(Alternative, time_s=st.none() | st.floats(0))
_made(Evidence)
_times, _ratios = st.floats(1e-12, 1e6), st.floats(0, math.inf)
_made(
    Prediction,
    **{
        one.name: _times if one.name.endswith("_s") else _ratios
        for one in fields(Prediction)
        if one.type == "float"
    },
)
_CONDITIONS = _made(
    Condition,
    text=st.text("N >=12", min_size=1, max_size=12),
    open_sizes=st.lists(st.sampled_from(("N", "b", "P")), min_size=1, max_size=2).map(tuple),
    pays_from=st.none() | st.integers(1, 9999),
)


def _open(finding: Finding, condition: Condition | None) -> Finding:
    """Return a finding that predicts, or one that says where it pays."""
    if condition is None:
        return finding
    evidence = replace(finding.evidence, terms=())
    return replace(finding, prediction=None, condition=condition, evidence=evidence)


_PREDICTED = _made(
    Finding,
    code=st.sampled_from(("ADV101", "ADV201", "ADV999")),
    name=st.sampled_from(("repeated-shifts", "strided-column")),
    path=st.sampled_from(("a.py", "dir/b c.py", "\udcff.py", "ä,b:c.py")),
    prediction=_BY_TYPE["Prediction"],
    fingerprint=st.sampled_from(("aa", "bb")),
    condition=st.none(),
    saves_s=st.none() | st.floats(-1e3, 1e6),
    share=st.none() | st.floats(0, 1),
)
FINDINGS = st.builds(_open, _PREDICTED, st.none() | _CONDITIONS)
_PATHS = st.sampled_from(("a.py", "b.py"))
REMARKS = _made(Remark, path=_PATHS)
_made(NotUnderstood, path=_PATHS)
COVERAGES = _made(Coverage)
REPORTS = st.builds(
    lambda findings, remarks, source, coverage, failed: Report(
        "t3e",
        tuple(findings),
        tuple(remarks),
        {finding.path: source for finding in findings},
        failed=failed,
        looked_into=len({finding.path for finding in findings}),
        coverage=coverage,
    ),
    st.lists(FINDINGS, max_size=5),
    st.lists(REMARKS, max_size=2),
    TEXT,
    COVERAGES,
    st.booleans(),
)
