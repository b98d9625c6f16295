"""Ranking: prices compared, findings ordered, rivals named."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine import Options, check_source
from advisor.finding import ONE_EACH_CORE, Finding, Ranked, Verdict
from advisor.ranking.rank import rank
from advisor.report.model import Report, summary
from advisor.transform_registry import transforms
from costdb.machines import machine_of
from tests.advisor.ranking.priced_kernels import (
    BOX,
    MACHINE,
    PROFILE,
    kernel_of,
    sizes_of,
)
from transforms.sweeps.shifts_to_scan import TRANSFORM as SCANS

CALIBRATED = Path(__file__).parents[2] / "data" / "decisions" / "calibrated.json"


def ranked(source: str, rules: Sequence[Any] | None = None, **given: int) -> Ranked:
    kernel = kernel_of(source)
    chosen = transforms() if rules is None else rules
    return rank("program.py", kernel, MACHINE, sizes_of(kernel, **given), chosen)


# findings


def check_intervals(finding: Finding) -> None:
    p = finding.prediction
    assert p.low <= p.speedup <= p.high
    assert p.before_low_s <= p.before_s <= p.before_high_s
    assert p.after_low_s <= p.after_s <= p.after_high_s
    assert p.speedup == pytest.approx(p.before_s / p.after_s)
    # what is uncertain about both sides alike cancels
    assert p.low >= p.before_low_s / p.after_high_s - 1e-12
    assert p.high <= p.before_high_s / p.after_low_s + 1e-12
    terms = finding.evidence.terms
    assert sum(t.before_s or 0 for t in terms) == pytest.approx(p.before_s)
    assert sum(t.after_s or 0 for t in terms) == pytest.approx(p.after_s)


@settings(max_examples=8, deadline=None)
@given(st.integers(8, 3000), st.integers(2, 12))
def test_intervals_hold_the_middle_and_terms_add_up(side: int, width: int) -> None:
    for finding in ranked(BOX, N=side, b=width).findings:
        check_intervals(finding)


ROLLED = """\
import numpy as np
# advise: kernel N=2000 b=9
# advise: image: i8[N, N] over (block(x), block(y)) on mesh(x=4, y=4)
def box(image, N: int, b: int):
    total = np.zeros_like(image)
    for k in {shifts}:
        total += np.roll(image, {amount}, axis={axis})
    return total
"""


@cache
def scanned(shifts: str, amount: str, axis: int) -> Finding:
    source = ROLLED.format(shifts=shifts, amount=amount, axis=axis)
    (judged,) = ranked(source, [SCANS]).judged
    return judged.finding


@pytest.mark.parametrize(
    "shifts", ["range(b)", "range(-b, b + 1)", "range(-9, 10)", "range(-4, 9)"]
)
@pytest.mark.parametrize("amount", ["k", "-k"])
@pytest.mark.parametrize("axis", [0, 1])
def test_windows_that_wrap_around_are_priced_as_scans(shifts: str, amount: str, axis: int) -> None:
    """The scan does the same work whichever side its windows reach to."""
    found, one_sided = scanned(shifts, amount, axis), scanned("range(b)", "k", axis)
    assert found.code == "ADV201"
    assert found.prediction.after_s == pytest.approx(one_sided.prediction.after_s, rel=0.05)


def test_what_a_rule_could_write_but_nobody_prices_is_told_of() -> None:
    source = BOX.replace("block(x)", "cyclic(x)")
    found = ranked(source, [SCANS])
    assert not found.judged
    (said,) = [remark for remark in found.remarks if "ADV201" in remark.message]
    assert said.span.start_line == 7
    assert "no prediction: " in said.message


# what is not known


def test_a_machine_without_a_number_gives_a_remark() -> None:
    document = json.loads(PROFILE.read_text())
    del document["lines"]["message"]["beta_us_per_byte"]
    kernel = kernel_of(BOX)
    told = rank("program.py", kernel, machine_of(document, "test"), sizes_of(kernel), transforms())
    assert not told.findings
    (remark,) = told.remarks
    assert "lines.message.beta_us_per_byte" in remark.message
    assert remark.span == kernel.span


def test_a_variant_that_has_no_price_at_its_sizes_only_is_told_of() -> None:
    source = """
import numpy as np

# advise: kernel N=4096 b=5
# advise: values: f8[N] over (block(rank)) on mesh(rank=16)
def window(values, b):
    lag = max(b, 1) * min(values.shape[0], 1)
    wide = np.pad(values, ((2 * lag, 0),), mode="wrap")
    last = values.shape[0] - 1
    return wide[2 * lag : -1] - wide[lag : last + lag] + wide[:last]
"""
    found = ranked(source)
    assert not found.judged
    (remark,) = found.remarks
    assert "no advice for kernel `window` at its sizes" in remark.message


BACK = """
# advise: kernel N=400 b=3
# advise: x: f8[N, N] over (none, block(rank)) on mesh(rank=16)
# advise: y: f8[N, N] over (none, block(rank)) on mesh(rank=16)
def back(x, y, b: int):
    for i in range(x.shape[0]):
        for j in range({b}, x.shape[1]):
            y[i, j] = x[i, j - {b}]
    return y
"""


@pytest.mark.parametrize("details", [True, False])
def test_a_kernel_without_a_formula_over_all_sizes_is_ranked_at_its_own(details: bool) -> None:
    options = Options("t3e", {}, (), (), None, details=details)
    found = check_source("k.py", BACK.format(b="b"), options)
    with_number = check_source("k.py", BACK.format(b="3"), options)
    assert not found.remarks
    assert found.findings
    # with the number in its place more is known to be apart, and whole nests are raised
    known = {finding.message: finding.prediction for finding in with_number.findings}
    assert known.keys() & {finding.message for finding in found.findings}
    for finding in found.findings:
        assert finding.prediction == known.get(finding.message, finding.prediction)
        assert not finding.crossovers
        if details:
            # it says so, and which sizes it holds for
            assert {a.name: a.value for a in finding.assumptions} == {"N": 400, "b": 3}
            reason = "for other sizes there is no prediction: a reference at a distance"
            assert any(remark.startswith(reason) for remark in finding.evidence.remarks)


def test_what_nothing_binds_leaves_a_kernel_without_a_formula_without_advice() -> None:
    source = BACK.format(b="b").replace(" b=3", "")
    found = check_source("k.py", source, Options("t3e", {}, (), (), None))
    assert not found.findings
    (remark,) = found.remarks
    assert "a reference at a distance that depends on sizes" in remark.message


WINDOW = """\
# advise: kernel N={n}
# advise: image: f8[N, N]
# advise: out: f8[N, N]
def blur(image, out):
    for i in range(1, image.shape[0] - 1):
        for j in range(1, image.shape[1] - 1):
            s = 0.0
            for a in range(-1, 2):
                for b in range(-1, 2):
                    s += image[i + a, j + b]
            out[i, j] = s / 9
"""
CALLS = """\
import numpy as np

# advise: kernel N={n}
# advise: image: f8[N, 3]
# advise: out: f8[N, N]
def blur(image, out):
    for i in range(image.shape[0]):
        for j in range(image.shape[0]):
            d = image[i, :] - image[j, :]
            out[i, j] = np.exp(-np.dot(d, d))
"""


ROWS = """\
import numpy as np

# advise: kernel N={n}
# advise: image: f8[N, N]
# advise: out: f8[N, N]
def blur(image, out):
    for i in range(image.shape[0]):
        out[i, :] = np.exp(image[i, :])
"""


@pytest.mark.parametrize(
    ("source", "n", "fine"),
    [(WINDOW, 400, False), (WINDOW, 5, False), (CALLS, 400, False), (CALLS, 5, False)]
    + [(ROWS, 100_000, True)],
)
def test_loops_of_small_steps_and_calls_are_not_fine(source: str, n: int, fine: bool) -> None:
    """That no rule found more is not that there is no more, however short a call is."""
    kernel = kernel_of(source.format(n=n))
    document = json.loads(CALIBRATED.read_text())
    source_of = next(iter(document["sources"]))
    stated = {"value": 0.05, "unit": "us", "provenance": "measured", "source": source_of}
    steps = ("iteration", "getitem", "setitem", "arith", "call")
    machine = machine_of({**document, "python": {f"{step}_us": stated for step in steps}}, "test")
    found = rank("blur.py", kernel, machine, sizes_of(kernel), ())
    assert not found.judged and found.coverage.analysed == ("blur",)
    assert (found.coverage.fine == ("blur",)) == fine
    for gap in () if fine else found.coverage.not_understood:
        assert (
            gap.line == source[: source.index("for i")].count("\n") + 1
            and "no rule rewrites it" in gap.reason
        )
    assert found.coverage.complete == fine


DEPTH = "import numpy as np\n\n\ndef depth(z, x: float):\n    return z[3, 0] * (1 - x) + z[4, 1]\n"
NEAREST = """\
import numpy as np


def nearest(a, b):
    d = np.empty(len(a))
    for i in range(len(a)):
        d[i] = np.sqrt(((b - a[i]) ** 2).sum(axis=1)).min()
    return d
"""


@pytest.mark.parametrize("size", ["", "9", "int(input())"])
@pytest.mark.parametrize(
    ("source", "call"), [(DEPTH, "depth({}, 0.5)"), (NEAREST, "nearest({0}, {0})")]
)
def test_only_what_is_known_is_fine(source: str, call: str, size: str) -> None:
    """Sizes and dimensions, and that what takes the time is not what calls it again and again."""
    source += "\n\n" + call.format(f"np.ones(({size}, 2))") if size else ""
    result = check_source("f.py", source, Options("node2026", {}, (), (), None))
    known = {one.kernel for one in result.findings}.union(result.coverage.analysed)
    assert not result.coverage.fine and (not size or call.partition("(")[0] in known)
    report = Report("node2026", result.findings, (), {}, looked_into=1, coverage=result.coverage)
    assert "Nothing to gain" not in summary(report)


SMOOTHED = """\
import numpy as np
from mpi4py import MPI


def smoothed(u, n):
    for step in range(n):
        u[1:-1] = (u[2:] + u[:-2]) * 0.5
    return MPI.COMM_WORLD.allreduce(u[0])


print(smoothed(np.ones({size}), 10))
"""


@pytest.mark.parametrize(("size", "fine"), [("100", True), ("int(input())", False)])
def test_of_programs_only_what_is_known_is_fine(size: str, fine: bool) -> None:
    source = SMOOTHED.format(size=size)
    coverage = check_source("f.py", source, Options("node2026", {}, (), (), None)).coverage
    assert "smoothed" in coverage.analysed
    assert ("smoothed" in coverage.fine) == fine


PARTLY = """\
import numpy as np


# advise: kernel
# advise: x: f8[N]
def stats(x):
    n = x.shape[0]
    out = np.empty(n)
    for i in range(n):
        out[i] = x[i] * 2.0 + 1.0
{unknown}    return out
"""


def test_what_is_not_understood_hides_nothing_of_the_rest() -> None:
    whole, once, again = (
        check_source(
            "f.py", PARTLY.format(unknown=line), Options("node2026", {"N": 200_000}, (), (), 1.05)
        )
        for line in (
            "",
            "    m = np.unwrap(x)\n",
            "    for _ in range(9):\n        m = np.unwrap(x)\n",
        )
    )
    (gain,) = whole.findings
    # nobody knows how long it takes: what is saved is saved, if it runs once;
    # where it is repeated, the ratio is anything between that of the rest and none
    known = gain.prediction.low
    for part, verdict, low in ((once, Verdict.GAIN, known), (again, Verdict.UNCERTAIN, 1.0)):
        # what repeats it computes it again, which has no price
        others = {"ADV506"} if part is again else set[str]()
        assert {one.code for one in part.findings} == {gain.code, *others}
        (found,) = (one for one in part.findings if one.code == gain.code)
        assert gain.verdict is Verdict.GAIN and found.verdict is verdict
        assert found.saves_s == pytest.approx(gain.saves_s)
        # of what is not understood a call of Python's is known
        assert 0.97 < found.prediction.high / gain.prediction.high <= 1
        assert 0.97 < found.prediction.low / low <= 1
        assert found.share is None
        assert [gap.line for gap in part.coverage.not_understood] == [11 + (part is again)]
        assert not part.coverage.fine and not part.coverage.analysed


MESSAGES = """\
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
field = np.zeros(200_000)
for _ in range(100):
    total = comm.allreduce(field)
    field = 0.5 * (field + total)
"""


def test_where_nothing_says_how_many_ranks_times_are_told_for_one_on_each_core() -> None:
    def found(machine: str, **sizes: int) -> Finding:
        (one,) = check_source("p.py", MESSAGES, Options(machine, sizes, (), (), 1.05)).findings
        return one

    assumed, given_ = found("node2026"), found("node2026", P=2)
    assert assumed.prediction == given_.prediction and assumed.verdict is Verdict.GAIN
    assert [(one.value, one.origin) for one in assumed.assumptions if one.name == "P"] == [
        (2, ONE_EACH_CORE)
    ]
    assert found("node2026", P=8).prediction != assumed.prediction
