import math

import pytest

from costdb import pricing
from costdb.evaluate import Missing, Priced, compare, evaluate_price
from costdb.expr import evaluate, num, sym
from costdb.machines import MachineError, built_in_names, load_machine, machine_of
from costdb.pricing import price_process, price_work
from costdb.work import (
    Access,
    Barrier,
    Collective,
    CollectiveKind,
    Fixed,
    Interpretation,
    Leaf,
    Message,
    Parallel,
    ParLoop,
    Pattern,
    PickledCollective,
    PickledMessage,
    PrefixScan,
    Region,
    RemoteGroup,
    SeqLoop,
    Sequential,
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
    "elements": RemoteGroup(N, num(4), Pattern.BASELINE, itemsize_bytes=8),
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


def test_every_kind_of_work_has_one_model():
    assert {type(work) for work in WORK.values()} == set(pricing._MODELS)


def _with_unknown(*works, times=None):
    first, *more = (Leaf(work) for work in works)
    if times is not None:
        more = [SeqLoop("i", num(1), num(times), one) for one in more]
    priced = price_process(Sequential((first, *more)), T3E)
    assert isinstance(priced, Priced)
    return priced


def test_the_ratio_of_lower_bounds_claims_nothing_of_what_they_omit():
    slow, fast = Fixed(num(20)), Fixed(num(10))
    whole = compare(_with_unknown(slow), _with_unknown(fast), {})
    # what runs once in both is left out of the ratio, what is repeated may be all of the time
    for times, low in ((None, whole.low), (3, 1)):
        each = (_with_unknown(one, WORK["unknown"], times=times) for one in (slow, fast))
        both = compare(*each, {})
        assert (both.low, both.high) == (low, whole.high)
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
    body = Sequential((Leaf(message), Leaf(message), Leaf(Fixed(num(12), "io"))))
    total, terms = microseconds(SeqLoop("i", num(1), sym("K"), body), N=100, K=6)
    middle = {name: quantity.value for name, quantity in once.coefficients.items()}
    single = float(evaluate(once.microseconds, {"N": 100, **middle}))
    assert total == pytest.approx(6 * (2 * single + 12))
    assert total == pytest.approx(float(sum(terms.values())))
    assert terms["io"] == 72
    assert set(terms) == {term.label for term in once.terms} | {"io"}
    assert microseconds(SeqLoop("i", num(1), num(0), body), N=100)[0] == 0


def test_side_by_side_the_longest_counts():
    slow, fast = Leaf(Fixed(num(9), "slow")), Leaf(Fixed(num(4), "fast"))
    total, terms = microseconds(Sequential((Parallel((slow, fast, fast)), slow)))
    assert total == 18
    assert terms == {"slow": 18, "fast": 4}
    spread = ParLoop("p", num(1), sym("P"), Leaf(Fixed(sym("p") * 2)))
    assert microseconds(spread, P=5)[0] == 10


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
