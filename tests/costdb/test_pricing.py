import math

import pytest

from costdb import pricing
from costdb.estimate import Domain, Missing, Priced, Term
from costdb.evaluate import compare, evaluate_price
from costdb.expr import equal, evaluate, less, num, parse, sym
from costdb.machines import MachineError, built_in_names, load_machine, machine_of
from costdb.pricing import price_process, price_work
from costdb.process.terms import (
    NOTHING,
    Branch,
    Delay,
    Leaf,
    Parallel,
    ParLoop,
    Resource,
    SeqLoop,
    Sequential,
    Use,
)
from costdb.work import (
    Access,
    Barrier,
    Collective,
    CollectiveKind,
    Fixed,
    Interpretation,
    Message,
    Pattern,
    PickledCollective,
    PickledMessage,
    PrefixScan,
    Region,
    RemoteElements,
    RemoteGroup,
    Statement,
    Superstep,
    Unknown,
)
from tests.costdb.made_up import HEADING

N = sym("N")
REGION = Region(4, (N, num(3)), (N * 4, num(4)))
T3E = load_machine("t3e")

WORK = {
    "message": Message(REGION),
    "scan": PrefixScan(num(4), REGION, REGION),
    "statement": Statement((Access(REGION), Access(REGION, store=True)), N * 3),
    **{kind: Collective(kind, num(4), REGION) for kind in CollectiveKind},
    "pickled message": PickledMessage(REGION),
    "pickled collective": PickledCollective(CollectiveKind.ALLREDUCE, num(4), REGION),
    "superstep": Superstep(num(4), N, N, 4 * N),
    "remote": RemoteGroup(N, num(4), Pattern.BASELINE),
    "elements": RemoteElements(N, 8, num(4), Pattern.BASELINE),
    "interpretation": Interpretation(N),
    "barrier": Barrier(num(8)),
    "unknown": Unknown(3, "everything.sort()", "nobody timed it"),
    "fixed": Fixed(N * 3),
}
# what only a calibrated profile knows the cost of, and costs nothing elsewhere
UNSTATED = ("interpretation", "unknown")


def bare_machine(**sections):
    quantity = {"unit": "us", "provenance": "published", "source": "s"}
    document = {
        **HEADING,
    }
    for name, stated in sections.items():
        document[name] = {key: {"value": value, **quantity} for key, value in stated.items()}
    return machine_of(document, "bare.json")


@pytest.mark.parametrize("kind", [kind for kind in WORK if kind not in UNSTATED])
@pytest.mark.parametrize("name", built_in_names())
def test_every_work_on_every_machine_is_an_ordered_estimate_or_says_what_is_missing(name, kind):
    price = price_work(WORK[kind], load_machine(name))
    if isinstance(price, Missing):
        assert price.what
        assert price.remedy
    else:
        estimate = evaluate_price(price, {"N": 20_000})
        assert 0 < estimate.low <= estimate.mid <= estimate.high


@pytest.mark.parametrize("name", built_in_names())
def test_programs_of_the_published_machines_were_compiled(name):
    machine = load_machine(name)
    price = price_work(WORK["interpretation"], machine)
    assert isinstance(price, Priced)
    assert (evaluate_price(price, {"N": 20_000}).high == 0) == (not machine.section("python"))


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("t3e", ["message", "scan", "statement", "barrier", *CollectiveKind, "fixed"]),
        ("powerchallenge", ["superstep", "fixed"]),
        ("mupc", ["remote", "fixed"]),
    ],
)
def test_machines_price_what_their_sections_are_for(name, kinds):
    machine = load_machine(name)
    for kind in kinds:
        assert isinstance(price_work(WORK[kind], machine), Priced), kind
    others = {"message", "superstep", "remote"} - set(kinds)
    for kind in others:
        assert isinstance(price_work(WORK[kind], machine), Missing), kind


def test_every_kind_of_work_has_one_model():
    assert {type(work) for work in WORK.values()} == set(pricing._MODELS)


def _with_unknown(*works):
    leaves = tuple(Leaf(work) for work in works)
    priced = price_process(Sequential(leaves), T3E)
    assert isinstance(priced, Priced)
    return priced


def test_a_part_that_nobody_prices_makes_a_lower_bound_that_says_so():
    known = evaluate_price(_with_unknown(WORK["fixed"]), {"N": 100})
    lower = evaluate_price(_with_unknown(WORK["fixed"], WORK["unknown"]), {"N": 100})
    assert (lower.low, lower.mid, lower.high) == (known.low, known.mid, math.inf)
    assert known.complete
    assert not lower.complete
    assert [(o.line, o.text, o.reason) for o in lower.omitted] == [
        (3, "everything.sort()", "nobody timed it")
    ]


def test_the_ratio_of_lower_bounds_claims_nothing_of_what_they_omit():
    slow, fast = Fixed(num(20)), Fixed(num(10))
    whole = compare(_with_unknown(slow), _with_unknown(fast), {})
    both = compare(_with_unknown(slow, WORK["unknown"]), _with_unknown(fast, WORK["unknown"]), {})
    assert (both.low, both.high) == (1, whole.high)
    before = compare(_with_unknown(slow, WORK["unknown"]), _with_unknown(fast), {})
    assert (before.low, before.high) == (whole.low, math.inf)
    after = compare(_with_unknown(slow), _with_unknown(fast, WORK["unknown"]), {})
    assert (after.low, after.high) == (0, whole.high)


def test_a_stated_barrier_wins_over_messages_and_one_rank_waits_for_nobody():
    stated = bare_machine(hardware={"barrier_us": 200})
    price = price_work(Barrier(sym("P")), stated)
    assert evaluate_price(price, {"P": 12}).mid == pytest.approx(200e-6)
    assert evaluate_price(price, {"P": 1}).mid == 0
    missing = price_work(Barrier(num(4)), bare_machine())
    assert isinstance(missing, Missing)
    assert "barrier_us" in missing.what


@pytest.mark.parametrize(("ranks", "rounds"), [(1, 0), (2, 1), (5, 3), (8, 3), (9, 4)])
def test_a_barrier_of_messages_takes_a_start_up_for_each_doubling(ranks, rounds):
    estimate = evaluate_price(price_work(Barrier(num(ranks)), T3E), {})
    alpha = T3E.quantity("lines", "message", "alpha_us")
    assert estimate.mid == pytest.approx(rounds * alpha.value * 1e-6)
    assert estimate.in_range


def microseconds(process, machine=T3E, **sizes):
    price = price_process(process, machine)
    assert isinstance(price, Priced)
    middle = {name: quantity.value for name, quantity in price.coefficients.items()}
    total = float(evaluate(price.microseconds, {**sizes, **middle}))
    terms = {term.label: evaluate(term.microseconds, {**sizes, **middle}) for term in price.terms}
    return total, terms


def test_sequences_and_loops_add_up_with_terms_of_one_label_merged():
    message = WORK["message"]
    once = price_work(message, T3E)
    body = Sequential((Leaf(message), Leaf(message), Delay(num(5)), Leaf(Fixed(num(7), "io"))))
    total, terms = microseconds(SeqLoop("i", num(1), sym("K"), body), N=100, K=6)
    middle = {name: quantity.value for name, quantity in once.coefficients.items()}
    single = float(evaluate(once.microseconds, {"N": 100, **middle}))
    assert total == pytest.approx(6 * (2 * single + 12))
    assert total == pytest.approx(float(sum(terms.values())))
    assert (terms["delay"], terms["io"]) == (30, 42)
    assert set(terms) == {term.label for term in once.terms} | {"delay", "io"}
    assert microseconds(SeqLoop("i", num(1), num(0), body), N=100)[0] == 0


def test_a_loop_whose_body_depends_on_its_index_is_summed():
    process = SeqLoop("i", num(1), sym("K"), Leaf(Fixed(sym("i") * 3)))
    assert microseconds(process, K=10)[0] == 165
    assert microseconds(process, K=0)[0] == 0
    assert microseconds(process, K=-3)[0] == 0


def test_side_by_side_the_longest_counts():
    slow, fast = Leaf(Fixed(num(9), "slow")), Leaf(Fixed(num(4), "fast"))
    total, terms = microseconds(Sequential((Parallel((slow, fast, fast)), slow)))
    assert total == 18
    assert terms == {"slow": 18, "fast": 4}
    spread = ParLoop("p", num(1), sym("P"), Leaf(Fixed(sym("p") * 2)))
    assert microseconds(spread, P=5)[0] == 10


def test_contention_comes_from_the_process_algebra():
    disk = Use(Resource(num(0), num(1)), num(parse("0.1").value))
    process = ParLoop(
        "p", num(1), sym("P"), SeqLoop("i", num(1), N, Sequential((Delay(num(10)), disk)))
    )
    assert microseconds(process, P=1000, N=1_000_000)[0] == 1e8
    assert microseconds(process, P=2, N=10)[0] == pytest.approx(101)


def test_branches_weigh_by_probability_or_choose_by_comparison():
    then, orelse = Leaf(Fixed(num(8), "then")), Leaf(Fixed(num(100) / (N - 3), "orelse"))
    total, terms = microseconds(Branch(parse("0.25"), then, NOTHING))
    assert (total, terms) == (2, {"then": 2})
    exact = Branch(equal(N, 3), then, orelse)
    assert microseconds(exact, N=3)[0] == 8
    assert microseconds(exact, N=5)[0] == 50


def test_what_is_missing_is_listed_once_and_nothing_is_a_number():
    process = Sequential(
        (
            Leaf(WORK["message"]),
            SeqLoop("i", num(1), N, Leaf(WORK["superstep"])),
            Parallel((Leaf(WORK["superstep"]), Leaf(WORK["remote"]))),
            Branch(less(N, 3), Leaf(WORK["remote"]), Leaf(Superstep(num(4), N, N, N, "other"))),
        )
    )
    missing = price_process(process, T3E)
    assert isinstance(missing, Missing)
    for part in ("superstep", "remote"):
        lacking = price_work(WORK[part], T3E).what
        assert missing.what.count(lacking) == 1


def test_equal_work_is_priced_once(monkeypatch):
    priced = []

    def count(work, machine):
        priced.append(work)
        return Priced(num(1))

    monkeypatch.setattr("costdb.common.price_fixed", count)
    machine = bare_machine()
    leaves = [Leaf(Fixed(N + 1, "a")), Leaf(Fixed(1 + N, "a")), Leaf(Fixed(N + 1, "b"))]
    process = Sequential((*leaves, SeqLoop("i", num(1), N, leaves[0])))
    price_process(process, machine)
    price_process(process, machine)
    assert len(priced) == 2


def ranged(monkeypatch, quantity):
    domain = Domain("size", quantity, 10, 20)
    price = Priced(num(1), (Term("t", "m", num(1)),), {}, (domain,))
    monkeypatch.setattr("costdb.common.price_fixed", lambda work, machine: price)
    return bare_machine(), Leaf(Fixed(num(1)))


def test_ranges_are_asked_for_at_both_ends_of_a_loop_and_only_if_it_runs(monkeypatch):
    machine, leaf = ranged(monkeypatch, sym("i"))
    price = price_process(SeqLoop("i", sym("lo"), sym("hi"), leaf), machine)
    for low, high, inside in [(10, 20, True), (9, 20, False), (10, 21, False), (30, 29, True)]:
        assert evaluate_price(price, {"lo": low, "hi": high}).in_range is inside


def test_a_branch_not_taken_is_in_range(monkeypatch):
    machine, leaf = ranged(monkeypatch, N)
    price = price_process(Branch(less(N, 15), leaf, NOTHING), machine)
    for size, inside in [(9, False), (12, True), (30, True)]:
        assert evaluate_price(price, {"N": size}).in_range is inside


def test_a_profile_of_the_wrong_shape_is_refused_with_the_place():
    machine = machine_of(
        {
            **HEADING,
            "hardware": {"barrier_us": 3},
        },
        "odd.json",
    )
    with pytest.raises(MachineError, match=r"odd\.json: /hardware/barrier_us"):
        price_work(Barrier(num(4)), machine)
