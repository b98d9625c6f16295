"""Ranking: prices compared, findings ordered, rivals named."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine import Options, check_source
from advisor.finding import Applicability, Finding
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.statements import Unknown
from advisor.ranking.compare import time_s
from advisor.ranking.rank import Ranked, rank
from advisor.ranking.sizes import bind_sizes
from advisor.report.model import Report, renderer
from advisor.report.style import Style
from advisor.transform_registry import transforms
from costdb.machines import load_machine
from costdb.machines.machine import machine_of
from tests.advisor.ranking.priced_kernels import (
    BOX,
    HALO,
    MACHINE,
    PROFILE,
    kernel_of,
    priced,
    sizes_of,
)
from transforms.sweeps.shifts_to_scan import TRANSFORM as SCANS

CALIBRATED = Path(__file__).parents[2] / "data" / "decisions" / "calibrated.json"


def ranked(source: str, rules: Sequence[Any] | None = None, **given: int) -> Ranked:
    kernel = kernel_of(source)
    chosen = transforms() if rules is None else rules
    return rank("program.py", kernel, MACHINE, sizes_of(kernel, **given), chosen)


@dataclass(frozen=True)
class Rule:
    """A rule that proposes given variants."""

    code: str
    variants: Sequence[tuple[str, Callable[[Kernel], Kernel]]]
    name: str = "made-up"
    documentation: str = ""

    def propose(self, kernel: Kernel) -> Iterable[Proposal]:
        for title, change in self.variants:
            yield Proposal(
                title,
                "because",
                kernel.span,
                change(kernel),
                Legality(Applicability.DISPLAY, "it is a test"),
                tuple,
            )


def shortened(count: int) -> Callable[[Kernel], Kernel]:
    """Return the kernel without its last `count` statements."""
    return lambda kernel: kernel.with_body(kernel.body[: len(kernel.body) - count])


def doubled(kernel: Kernel) -> Kernel:
    return kernel.with_body(kernel.body * 2)


def unknown(kernel: Kernel) -> Kernel:
    span = kernel.body[-1].span
    return kernel.with_body((*kernel.body, Unknown("it is a riddle", frozenset(), span)))


# findings


def test_findings_are_in_the_order_of_their_gain_whatever_the_order_of_the_rules() -> None:
    rules = [
        Rule("ADV901", [("drop one", shortened(1))]),
        Rule("ADV902", [("drop two", shortened(2))]),
        Rule("ADV903", [("drop two as well", shortened(2))]),
        Rule("ADV904", [("do it twice", doubled)]),
    ]
    source = HALO.format(
        dtype="f8", dims="block(x), none", order="C", region="1:, :w", shifted=":-1, :w"
    )
    source += "    v[:, :] = u\n    u[:, :] = v\n"
    first = ranked(source, rules).findings
    assert [f.code for f in first] == ["ADV902", "ADV903", "ADV901"]
    assert ranked(source, rules[::-1]).findings == first
    assert ranked(source, rules).findings == first
    gains = [f.prediction.speedup for f in first]
    assert gains == sorted(gains, reverse=True)


def test_rivals_are_named_with_the_reason_why_they_lost() -> None:
    rule = Rule(
        "ADV901",
        [
            ("do it twice", doubled),
            ("drop one", shortened(1)),
            ("guess", unknown),
            ("drop two", shortened(2)),
            ("drop two otherwise", shortened(2)),
            ("leave it", lambda kernel: kernel),
        ],
    )
    source = HALO.format(
        dtype="f8", dims="block(x), none", order="C", region="1:, :w", shifted=":-1, :w"
    )
    (finding,) = ranked(source + "    v[:, :] = u\n    u[:, :] = v\n", [rule]).findings
    assert finding.message.endswith("drop two")
    rivals = {a.title: a for a in finding.alternatives}
    assert rivals["drop two otherwise"].reason == "as fast as the suggestion"
    assert "times the time of the suggestion" in rivals["drop one"].reason
    assert rivals["leave it"].reason == "as slow as the kernel as written"
    assert rivals["do it twice"].reason == "slower than the kernel as written"
    assert rivals["guess"].reason == "no prediction: it is a riddle"
    assert rivals["guess"].time_s is None
    assert list(rivals)[-1] == "guess"
    times = [a.time_s for a in finding.alternatives if a.time_s is not None]
    assert times == sorted(times)


def test_what_is_no_gain_is_no_finding() -> None:
    rules = [Rule("ADV901", [("do it twice", doubled), ("leave it", lambda kernel: kernel)])]
    found = ranked(BOX, rules)
    assert not found.judged
    assert found.coverage.fine == found.coverage.analysed == ("box",)


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


def test_the_scan_is_found_with_its_crossovers() -> None:
    findings = ranked(BOX).findings
    scan = next(f for f in findings if f.code == "ADV201")
    assert {c.variable for c in scan.crossovers} <= {"N", "b"}
    before = priced(kernel_of(BOX))
    assert scan.prediction.before_s == pytest.approx(time_s(before, {"N": 1000, "b": 6}))


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


@pytest.mark.parametrize(
    "shifts", ["range(b)", "range(-b, b + 1)", "range(-9, 10)", "range(-4, 9)"]
)
@pytest.mark.parametrize("amount", ["k", "-k"])
@pytest.mark.parametrize("axis", [0, 1])
def test_windows_that_wrap_around_are_priced_as_scans(shifts: str, amount: str, axis: int) -> None:
    """The scan does the same work whichever side its windows reach to."""
    source = ROLLED.format(shifts=shifts, amount=amount, axis=axis)
    (judged,) = ranked(source, [SCANS]).judged
    assert judged.finding.code == "ADV201"
    one_sided = ROLLED.format(shifts="range(b)", amount="k", axis=axis)
    (other,) = ranked(one_sided, [SCANS]).judged
    assert judged.finding.prediction.after_s == pytest.approx(
        other.finding.prediction.after_s, rel=0.05
    )


def test_what_a_rule_could_write_but_nobody_prices_is_told_of() -> None:
    source = BOX.replace("block(x)", "cyclic(x)")
    found = ranked(source, [SCANS])
    assert not found.judged
    (said,) = [remark for remark in found.remarks if "ADV201" in remark.message]
    assert said.span.start_line == 7
    assert "no prediction: " in said.message


def test_only_what_is_worth_telling_becomes_a_finding() -> None:
    kernel = kernel_of(BOX)
    asked: list[tuple[str, float, float]] = []

    def worth(code: str, speedup: float) -> bool:
        asked.append(code)
        return speedup > 1e9

    told = rank("program.py", kernel, MACHINE, sizes_of(kernel), transforms(), worth)
    assert not told.judged
    assert "ADV201" in asked


@pytest.mark.parametrize(
    ("speedup", "least", "told"),
    [
        (1.05, None, True),
        (1.049, None, False),
        (1.02, 1.05, False),
        (1.06, 1.05, True),
        (1.001, 1.0, True),
    ],
)
def test_which_gains_are_reported(speedup: float, least: float | None, told: bool) -> None:
    assert Options("m", {}, (), (), least).reports("ADV201", speedup) is told
    single = Options("m", {}, (), (), None, rule_min_speedup={} if least is None else {"A": least})
    assert single.reports("A", speedup) is told


# what is not known


RIDDLE = BOX.replace("    return total\n", "    riddle(total)\n    return total\n")


def test_an_unknown_statement_gives_a_remark_with_its_line() -> None:
    told = ranked(RIDDLE)
    assert not told.findings
    (remark,) = told.remarks
    assert remark.span.start_line == 11
    assert remark.message == ("no advice for kernel `box`: the call of `riddle` is not understood")


def test_a_machine_without_a_number_gives_a_remark() -> None:
    document = json.loads(PROFILE.read_text())
    del document["lines"]["message"]["beta_us_per_byte"]
    kernel = kernel_of(BOX)
    told = rank("program.py", kernel, machine_of(document, "test"), sizes_of(kernel), transforms())
    assert not told.findings
    (remark,) = told.remarks
    assert "lines.message.beta_us_per_byte" in remark.message
    assert remark.span == kernel.span


@pytest.mark.parametrize("output", ["full", "concise", "json", "json-lines"])
def test_remarks_are_shown(output: str) -> None:
    result = check_source("program.py", RIDDLE, Options(str(PROFILE), {}, (), (), None))
    report = Report("plain", result.findings, result.remarks, {"program.py": RIDDLE})
    shown = renderer(output)(report, Style())
    # a line of the full report ends where the terminal does
    assert "the call of `riddle` is not understood" in " ".join(shown.split())
    if output.startswith("json"):
        document = json.loads(shown.splitlines()[-2] if output == "json-lines" else shown)
        remark = document["remarks"][0] if output == "json" else document
        assert remark["path"] == "program.py"
        assert remark["location"]["row"] == 11
    else:
        assert "program.py:11:5:" in shown


def test_beside_the_fastest_that_nobody_writes_stands_the_fastest_with_an_edit() -> None:
    source = """
# advise: kernel N=300
# advise: img: f4[N, N] over (none, block(rank)) on mesh(rank=16)
def blur(img):
    out = img.copy()
    out[1:-1, 1:-1] = (img[:-2, 1:-1] + img[1:-1, 2:] + img[2:, 1:-1]) / 3
    return out
"""
    (kernel,) = read_kernels("k.py", source)
    machine = load_machine("sp2")
    rules = [rule for rule in transforms() if rule.code == "ADV101"]
    found = rank("k.py", kernel, machine, bind_sizes(kernel, {}), rules).findings
    by_hand, written = found
    assert by_hand.fix is None
    assert written.fix is not None
    assert by_hand.speedup > written.speedup > 1
    (other,) = (a for a in written.alternatives if a.title in by_hand.message)
    assert "by hand" in other.reason
    assert {a.title for a in by_hand.alternatives} == {written.message.partition(": ")[2]}


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
    # with the number in its place more rules have something to propose
    known = {finding.message: finding.prediction for finding in with_number.findings}
    for finding in found.findings:
        assert finding.prediction == known[finding.message]
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


@pytest.mark.parametrize("source", [WINDOW, CALLS], ids=["steps", "calls"])
@pytest.mark.parametrize(("n", "fine"), [(400, False), (5, True)])
def test_loops_of_small_steps_and_calls_are_not_fine(source: str, n: int, fine: bool) -> None:
    """That no rule found more is not that there is no more; where it hardly matters, it is."""
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
