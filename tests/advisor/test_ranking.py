"""Ranking: prices compared, findings ordered, rivals named, crossovers exact."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tally import Tally

from advisor.engine import Options, check_source
from advisor.finding import Applicability, Finding
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.statements import Unknown
from advisor.ranking.compare import Costed, cost, crossing, pays_for, time_s, where_it_pays
from advisor.ranking.rank import Ranked, rank
from advisor.ranking.sizes import Sizes, bind_sizes
from advisor.report.model import Report, renderer
from advisor.report.style import Style
from advisor.transform_registry import transforms
from costdb.crossovers import Crossover
from costdb.estimate import Missing, Priced
from costdb.expr import compile_scalar, evaluate, parse
from costdb.machines import Machine, load_machine
from costdb.machines.machine import machine_of
from costdb.process.terms import NOTHING
from transforms.shifts_to_scan import TRANSFORM as SCANS

DATA = Path(__file__).parent.parent / "data"
PROFILE = DATA / "plain_machine.json"
MACHINE = load_machine(str(PROFILE))

BOX = """\
import numpy as np
# advise: kernel N=1000 b=6
# advise: image: i4[N, N] over (block(x), none) on mesh(x=4)
def box(image, N: int, b: int):
    total = image.copy()
    moved = image.copy()
    for _ in range(b - 1):
        moved[1:, :] = moved[:-1, :]
        moved[0, :] = 0
        total += moved
    return total
"""

HALO = """\
import numpy as np
# advise: kernel N=100 M=50 T=3 w=20
# advise: u: {dtype}[N, M] over ({dims}) on mesh(x=4) order={order}
# advise: v: {dtype}[N, M] over ({dims}) on mesh(x=4) order={order}
def halo(u, v, N: int, M: int, T: int, w: int):
    for t in range(T):
        v[{region}] = u[{shifted}]
        u[:, :] = v
"""


def kernel_of(source: str) -> Kernel:
    (kernel,) = read_kernels("program.py", source)
    return kernel


def halo(dtype: str = "f8", axis: int = 0, order: str = "C") -> Kernel:
    """Return a kernel that sends the first `w` elements of one row or column a step."""
    region, shifted = ("1:, :w", ":-1, :w") if axis == 0 else (":w, 1:", ":w, :-1")
    dims = "block(x), none" if axis == 0 else "none, block(x)"
    return kernel_of(
        HALO.format(dtype=dtype, dims=dims, order=order, region=region, shifted=shifted)
    )


def machine_with(*kept: str) -> Machine:
    """Return the machine with all message and statement numbers 0 but those named."""
    document = json.loads(PROFILE.read_text())
    for section in document["lines"].values():
        for key, quantity in section.items():
            if key not in kept:
                quantity.update(value=0, low=0, high=0)
    return machine_of(document, "test")


def priced(kernel: Kernel, machine: Machine = MACHINE) -> Costed:
    found = cost(kernel, machine)
    assert not isinstance(found, Missing)
    return found


def sizes_of(kernel: Kernel, **given: int) -> Sizes:
    return bind_sizes(kernel, given)


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
    assert ranked(BOX, rules) == Ranked((), ())


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

    def worth(code: str, speedup: float, low: float) -> bool:
        asked.append((code, speedup, low))
        return speedup > 1e9

    told = rank("program.py", kernel, MACHINE, sizes_of(kernel), transforms(), worth)
    assert not told.judged
    assert ("ADV201", True) in [(code, low <= speedup) for code, speedup, low in asked]


@pytest.mark.parametrize(
    ("speedup", "low", "least", "told"),
    [
        (1.05, 0.2, None, True),
        (1.049, 0.99, None, False),
        (1.02, 1.001, None, True),
        (1.01, 1.005, None, True),
        (1.02, 1.0, None, False),
        (1.009, 1.005, None, False),
        (1.02, 1.001, 1.05, False),
        (1.06, 0.2, 1.05, True),
        (1.001, 0.2, 1.0, True),
    ],
)
def test_which_gains_are_reported(speedup: float, low: float, least: float, told: bool) -> None:
    assert Options("m", {}, (), (), least).reports("ADV201", speedup, low) is told
    single = Options("m", {}, (), (), None, rule_min_speedup={} if least is None else {"A": least})
    assert single.reports("A", speedup, low) is told


# crossovers


def formula(text: str) -> Costed:
    return Costed(NOTHING, Priced(parse(text)))


@pytest.mark.parametrize(
    ("before", "after", "flips", "pays"),
    [
        ("N", "10", (11,), "N >= 11"),
        ("10", "N", (10,), "N < 10"),
        ("100", "(N - 20)**2", (11, 30), "11 <= N < 30"),
        ("(N - 20)**2", "100", (10, 31), "N < 10 or N >= 31"),
        ("1", "2*(N - 20)**2", (20, 21), "N = 20"),
        ("2*(N - 20)**2", "1", (20, 21), "N < 20 or N >= 21"),
        ("100", "100", None, None),
        ("N", "2*N", None, None),
        ("2*N", "N", None, None),
        ("2*(N - 20)**2*(N - 40)**2", "1", (20, 21, 40, 41), "N < 20 or 21 <= N < 40 or N >= 41"),
        ("N / 3000", "1", (3001,), "N >= 3001"),
    ],
)
def test_where_a_suggestion_pays_in_words(
    before: str, after: str, flips: tuple[int, ...] | None, pays: str | None
) -> None:
    found = where_it_pays(formula(before), formula(after), "N", {"N": 100})
    assert found == (None if flips is None else (flips, pays))


@pytest.mark.parametrize(
    ("first", "flips", "pays"),
    [
        (False, (2,), "2 <= N < 10"),
        (False, (9,), "N = 9"),
        (True, (4,), "N < 4"),
        (True, (4, 6), "N < 4 or 6 <= N < 10"),
    ],
)
def test_nothing_is_said_of_what_lies_beyond_a_search_that_was_cut_short(
    first: bool, flips: tuple[int, ...], pays: str
) -> None:
    assert pays_for(Crossover("N", flips, first, 1, 9, 9), 4096) == pays
    assert "<" not in pays_for(Crossover("N", (2,), False, 1, 9, 9), 9)


def test_ranges_that_change_at_every_value_are_not_spelled_out() -> None:
    found = where_it_pays(formula("N % 2"), formula("if(N < 40, 1/2, 9)"), "N", {"N": 100})
    assert found is not None
    assert found[1] == "some values of N below 40"
    found = where_it_pays(formula("if(N < 40, N % 2, 9)"), formula("1/2"), "N", {"N": 100})
    assert found is not None
    assert found[1] == "N >= 39, and for some values below"


@settings(max_examples=40, deadline=None)
@given(
    st.fractions(-9, 9, max_denominator=7),
    st.fractions(-900, 900, max_denominator=7),
    st.integers(1, 9),
    st.integers(-3, 3),
)
def test_crossovers_equal_a_dense_scan(slope: Any, shift: Any, block: int, curve: int) -> None:
    """Also where two prices are equal: compiled floats and exact fractions agree."""
    before = f"({curve})*N*N + ({slope})*ceil(N/{block})"
    after = f"({shift}) + N*ceil(N/{block})/3"
    found = where_it_pays(formula(before), formula(after), "N", {"N": 1})
    gain = parse(f"({before}) - ({after})")
    wins = [evaluate(gain, {"N": n}) > 0 for n in range(1, 257)]
    flips = tuple(n + 1 for n in range(1, 256) if wins[n] != wins[n - 1])
    assert tuple(f for f in (found[0] if found else ()) if f <= 256) == flips


def test_proved_crossovers_of_kernels_equal_a_scan() -> None:
    """At every value up to 5000 the better of two kernels is the one that the flips tell."""
    proved = []
    for source, sizes in (
        (BOX, {"N": 1000, "b": 4}),
        (
            HALO.format(
                dtype="f8", dims="block(x), none", order="C", region="2:, :", shifted=":-2, :"
            ),
            {"N": 100, "M": 50, "T": 3, "w": 20},
        ),
    ):
        kernel = kernel_of(source)
        before = priced(kernel)
        variants = [one.variant for rule in transforms() for one in rule.propose(kernel)]
        for variant in variants[:4]:
            after = priced(variant)
            coefficients = {
                name: quantity.value
                for costed in (before, after)
                for name, quantity in costed.priced.coefficients.items()
            }
            gain = before.priced.microseconds - after.priced.microseconds
            for variable in sorted(before.sizes | after.sizes):
                found = crossing(before, after, variable, sizes, 1, 5000)
                if not found.proved:
                    continue
                proved.append(variable)
                values = {**sizes, **coefficients}
                names = tuple(values)
                at, of = (
                    compile_scalar(gain, names),
                    compile_scalar(before.priced.microseconds, names),
                )
                after_wins = found.after_wins_first
                for value in range(1, 5001):
                    after_wins ^= value in found.flips
                    point = [value if name == variable else values[name] for name in names]
                    difference = float(at(*point))
                    if abs(difference) > 1e-9 * float(of(*point)):
                        assert (difference > 0) == after_wins, (variable, value)
    assert len(proved) >= 4


def test_crossovers_of_kernels_equal_a_dense_scan() -> None:
    kernel = kernel_of(BOX)
    before = priced(kernel)
    scan = next(rule for rule in transforms() if rule.code == "ADV201")
    after = priced(next(iter(scan.propose(kernel))).variant)
    for variable, fixed in (("b", {"N": 1000}), ("N", {"b": 4})):
        found = where_it_pays(before, after, variable, {"N": 1000, "b": 4})
        coefficients = {
            name: quantity.value
            for costed in (before, after)
            for name, quantity in costed.priced.coefficients.items()
        }
        gain = before.priced.microseconds - after.priced.microseconds
        wins = [
            evaluate(gain, {**coefficients, **fixed, variable: value}) > 0
            for value in range(1, 257)
        ]
        flips = tuple(n + 1 for n in range(1, 256) if wins[n] != wins[n - 1])
        assert tuple(f for f in (found[0] if found else ()) if f <= 256) == flips


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
        document = json.loads(shown.splitlines()[-1] if output == "json-lines" else shown)
        remark = document["remarks"][0] if output == "json" else document
        assert remark["path"] == "program.py"
        assert remark["location"]["row"] == 11
    else:
        assert "program.py:11:5:" in shown


# prices grow with what they count


def test_start_ups_count_messages_and_nothing_else() -> None:
    kernel = halo()
    machine = machine_with("alpha_us")
    sizes = {"N": 100, "M": 50, "T": 7, "w": 20}
    told = Tally(priced(kernel, machine).process, sizes)
    assert told.totals["messages"] == 7
    assert time_s(priced(kernel, machine), sizes) == pytest.approx(7 * 100e-6)


def test_bytes_count_payload_and_nothing_else() -> None:
    machine = machine_with("beta_us_per_byte")
    sizes = {"N": 100, "M": 50, "T": 7, "w": 20}
    for dtype, itemsize in (("f4", 4), ("f8", 8), ("c16", 16)):
        costed = priced(halo(dtype), machine)
        assert Tally(costed.process, sizes).totals["bytes"] == 7 * 20 * itemsize
        assert time_s(costed, sizes) == pytest.approx(7 * 20 * itemsize * 0.01e-6)


def test_lines_tell_a_row_from_a_column() -> None:
    machine = machine_with("gamma_us_per_line")
    sizes = {"N": 1024, "M": 1024, "T": 1, "w": 512}
    row, column = (time_s(priced(halo("f8", axis), machine), sizes) for axis in (0, 1))
    assert column == pytest.approx(512 * 0.1e-6)
    assert row == pytest.approx((64 + 65) / 2 * 0.1e-6)
    turned = time_s(priced(halo("f8", 1, "F"), machine), sizes)
    assert turned == pytest.approx(row)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from((0, 1)),
    st.sampled_from("CF"),
    st.integers(2, 60),
    st.integers(0, 5),
    st.data(),
)
def test_prices_never_fall(
    axis: int, order: str, side: int, trips: int, data: st.DataObject
) -> None:
    """With more elements a message, more messages, wider elements."""
    width = data.draw(st.integers(1, side - 1))
    at: Mapping[str, int] = {"N": side, "M": side, "T": trips, "w": width}
    costed = PRICED[axis, order, "f4"]
    base = time_s(costed, at)
    assert time_s(costed, {**at, "w": width + 1}) >= base
    assert time_s(costed, {**at, "T": trips + 1}) >= base
    assert time_s(PRICED[axis, order, "f8"], at) >= base


PRICED = {
    (axis, order, dtype): priced(halo(dtype, axis, order))
    for axis in (0, 1)
    for order in "CF"
    for dtype in ("f4", "f8")
}


def test_a_variant_without_a_statement_is_never_slower() -> None:
    kernel = kernel_of(BOX)
    for count in range(1, len(kernel.body)):
        shorter = replace(kernel, body=kernel.body[:-count])
        sizes = {"N": 1000, "b": 6}
        assert time_s(priced(shorter), sizes) <= time_s(priced(kernel), sizes)


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
