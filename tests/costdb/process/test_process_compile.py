"""Compiled closed forms against the rules applied by enumerating every loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.expr import Expr, evaluate, floor_div, less, less_equal, num, parse, sym
from costdb.expr.polynomials import simplify
from costdb.process.model import compile_process, knowing
from costdb.process.servers import largest_element
from costdb.work import (
    Branch,
    Delay,
    Leaf,
    Parallel,
    ParLoop,
    Process,
    Resource,
    SeqLoop,
    Sequential,
    Use,
)
from tests.costdb.expr.brute_force import brute_force

Exact = int | Fraction


@dataclass(frozen=True)
class Enumerated:
    time: Exact
    phi: Exact
    delta: Counter[tuple[str, Exact]]

    @property
    def omega(self) -> Exact:
        return max(self.delta.values(), default=0)


def value(expr: Expr, scope: Mapping[str, int]) -> Exact:
    result = brute_force(expr, scope)
    assert not isinstance(result, float)
    return result


def agrees(expr: Expr, scope: Mapping[str, int], expected: Exact) -> None:
    assert evaluate(expr, scope) == pytest.approx(float(expected), rel=1e-12)


def in_sequence(parts: list[Enumerated]) -> Enumerated:
    delta: Counter[tuple[str, Exact]] = Counter()
    for part in parts:
        delta.update(part.delta)
    return Enumerated(sum(p.time for p in parts), sum(p.phi for p in parts), delta)


def side_by_side(parts: list[Enumerated]) -> Enumerated:
    delta = in_sequence(parts).delta
    time = max([part.time for part in parts] + list(delta.values()), default=0)
    return Enumerated(time, max((part.phi for part in parts), default=0), delta)


def enumerated(term: Process, scope: Mapping[str, int]) -> Enumerated:
    """The printed rules, one loop step after the other."""
    match term:
        case Delay(time):
            t = value(time, scope)
            return Enumerated(t, t, Counter())
        case Use(resource, time):
            t = Fraction(value(time, scope)) / value(resource.multiplicity, scope)
            return Enumerated(t, t, Counter({(resource.array, value(resource.index, scope)): t}))
        case Sequential(parts):
            return in_sequence([enumerated(part, scope) for part in parts])
        case Parallel(parts):
            return side_by_side([enumerated(part, scope) for part in parts])
        case SeqLoop(name, low, high, body) | ParLoop(name, low, high, body):
            steps = range(int(value(low, scope)), int(value(high, scope)) + 1)
            bodies = [enumerated(body, {**scope, name: step}) for step in steps]
            return in_sequence(bodies) if isinstance(term, SeqLoop) else side_by_side(bodies)
        case Branch(condition, then, orelse):
            c = value(condition, scope)
            if c == 1:
                return enumerated(then, scope)
            if c == 0:
                return enumerated(orelse, scope)
            a, b = enumerated(then, scope), enumerated(orelse, scope)
            delta: Counter[tuple[str, Exact]] = Counter()
            for part, weight in ((a, c), (b, 1 - c)):
                delta.update({server: work * weight for server, work in part.delta.items()})
            return Enumerated(c * a.time + (1 - c) * b.time, c * a.phi + (1 - c) * b.phi, delta)
        case Leaf():
            raise AssertionError("leaves are not generated")


def assert_equals_enumeration(term: Process, scope: Mapping[str, int]) -> None:
    cost = compile_process(term, positive=[name for name, size in scope.items() if size > 0])
    expected = enumerated(term, scope)
    agrees(cost.T, scope, expected.time)
    agrees(cost.phi, scope, expected.phi)
    agrees(largest_element(cost.delta), scope, expected.omega)
    for (array, index), work in expected.delta.items():
        agrees(cost.delta.at(array, num(index)), scope, work)
    agrees(cost.delta.total(), scope, sum(expected.delta.values()))


N, P, B = sym("N"), sym("P"), sym("B")
VARIABLES = ("i", "j", "k")


@st.composite
def loop_bounds(draw: st.DrawFn, outer: tuple[str, ...]) -> tuple[Expr, Expr]:
    anchors = [num(0), N, *(sym(name) for name in outer)]
    low = draw(st.sampled_from(anchors)) + draw(st.integers(-2, 2))
    high = draw(st.sampled_from([N, P, N - P, low + 3, *anchors])) + draw(st.integers(-2, 2))
    return low, high


@st.composite
def indices(draw: st.DrawFn, loops: tuple[str, ...]) -> Expr:
    if not loops:
        return draw(st.sampled_from([num(0), num(1), P, P - 1]))
    step = sym(draw(st.sampled_from(loops)))
    line = step * draw(st.sampled_from([1, 1, 1, -1, 2])) + draw(
        st.sampled_from([num(0), num(-1), num(3), N, sym(loops[0])])
    )
    divisor = draw(st.sampled_from([P, P, B, num(3), -floor_div(-N, P) + 1]))
    other = sym(loops[0])
    shapes = ["line", "cyclic", "block", "block-cyclic", "stretched", "fixed", "mesh"]
    shape = draw(st.sampled_from(shapes))
    index = {
        "line": line,
        "cyclic": line % divisor,
        "block": line // divisor,
        "block-cyclic": (line // B) % P,
        "stretched": (step * P) // (N + 2),
        "fixed": num(1),
        "mesh": (line % P) * B + other % B,
    }[shape]
    return index * draw(st.sampled_from([1, 1, -1])) + draw(st.sampled_from([0, 0, 1]))


@st.composite
def amounts(draw: st.DrawFn, loops: tuple[str, ...], index: Expr | None = None) -> Expr:
    choices = [num(1), num(Fraction(1, 3)), N + 4]
    for name in loops:
        step = sym(name)
        choices += [step * step + 1, step * step, 30 + step, 30 - step]
    if index is not None:
        choices.append(index * index + 1)
    return draw(st.sampled_from(choices))


@st.composite
def processes(draw: st.DrawFn, depth: int = 3, loops: tuple[str, ...] = ()) -> Process:
    kinds = ["use", "use", "delay"]
    if depth:
        kinds += ["seq loop", "par loop", "par loop", "sequence", "parallel", "branch"]
    kind = draw(st.sampled_from(kinds))
    if kind == "delay":
        return Delay(draw(amounts(loops)))
    if kind == "use":
        index = draw(indices(loops))
        array = draw(st.sampled_from(["cpu", "cpu", "disk"]))
        multiplicity = draw(st.sampled_from([num(1), num(2), P]))
        return Use(Resource(index, multiplicity, array), draw(amounts(loops, index)))
    if kind in ("seq loop", "par loop") and len(loops) < len(VARIABLES):
        low, high = draw(loop_bounds(loops))
        name = VARIABLES[len(loops)]
        body = draw(processes(depth - 1, (*loops, name)))
        return (SeqLoop if kind == "seq loop" else ParLoop)(name, low, high, body)
    if kind == "branch":
        step = sym(loops[-1]) if loops else N
        condition = draw(
            st.sampled_from([less(step, P), less_equal(N, step), num(Fraction(1, 4)), 1 / P])
        )
        parts = draw(st.tuples(processes(depth - 1, loops), processes(depth - 1, loops)))
        return Branch(condition, *parts)
    parts = tuple(draw(st.lists(processes(depth - 1, loops), max_size=3)))
    return Sequential(parts) if kind == "sequence" else Parallel(parts)


def cyclic(servers: Expr = P) -> Resource:
    return Resource(sym("i") % servers, num(1), "cpu")


@pytest.mark.parametrize(
    ("low", "high", "index", "amount", "omega"),
    [
        # cyclic, from whatever first element
        ("1", "N", "i mod P", "t", "ceil(N/P)*t"),
        ("0", "N - 1", "i mod P", "t", "ceil(N/P)*t"),
        ("1", "N", "(i + 5) mod P", "t", "ceil(N/P)*t"),
        # blocks that begin with the first element
        ("0", "N - 1", "i div ceil(N/P)", "t", "ceil(N/P)*t"),
        ("1", "N", "(i - 1) div ceil(N/P)", "t", "ceil(N/P)*t"),
        ("0", "N - 1", "i div B", "t", "min(N, B)*t"),
        # one server, one server a step
        ("1", "N", "3", "t", "N*t"),
        ("1", "N", "i", "t", "t"),
        ("1", "N", "i", "i*t", "N*t"),
        # the owner of the last element has the most
        ("1", "P*N", "i mod P", "1", "N"),
        ("0", "N*B*P - 1", "(i div B) mod P", "t", "N*B*t"),
    ],
)
def test_usual_distributions_have_their_closed_form(
    low: str, high: str, index: str, amount: str, omega: str
) -> None:
    work = Use(Resource(parse(index), num(1)), parse(amount))
    sizes, times = ["N", "P", "B"], ["t"]
    cost = compile_process(ParLoop("i", parse(low), parse(high), work), sizes, times)
    expected = simplify(parse(omega), positive=sizes, nonnegative=times)
    assert largest_element(cost.delta, knowing(sizes, times)) == expected
    assert expected == cost.T


@pytest.mark.parametrize(
    "index",
    [
        "(i mod P)*Q + j mod Q",
        "(j mod Q)*P + i mod P + 3",
        "((i - 1) div ceil(N/P))*Q + (j - 1) div ceil(M/Q)",
        "((i - 1) div ceil(N/P))*Q + j mod Q",
    ],
)
def test_meshes_have_the_work_of_their_busiest_server(index: str) -> None:
    work = Use(Resource(parse(index), num(1)), sym("t"))
    term = ParLoop("i", num(1), N, ParLoop("j", num(1), sym("M"), work))
    for n, m, p, q in [(5, 7, 2, 3), (1, 1, 2, 2), (6, 4, 3, 2), (2, 9, 4, 4)]:
        assert_equals_enumeration(term, {"N": n, "M": m, "P": p, "Q": q, "t": 2})


def test_blocks_of_no_elements_cost_nothing() -> None:
    # The length of a block, ceil(N/P), is 0 here, and must not be divided by.
    for index in ("i div ceil(N/P)", "(i div ceil(N/P)) mod P", "i mod ceil(N/P)"):
        for amount in ("1", "i + 1", "(i - 3)*(i - 3)"):
            work = Use(Resource(parse(index), num(1)), parse(amount))
            assert_equals_enumeration(ParLoop("i", num(0), N - 1, work), {"N": 0, "P": 4})
            assert_equals_enumeration(ParLoop("i", num(0), N - 1, work), {"N": 9, "P": 4})


def test_a_triangular_nest_over_cyclic_columns_is_not_enumerated_twice() -> None:
    work = Use(Resource(sym("j") % P, num(1)), num(1))
    term = SeqLoop("k", num(1), N, ParLoop("j", sym("k") + 1, N, work))
    for n in range(6):
        for p in range(1, 5):
            assert_equals_enumeration(term, {"N": n, "P": p})


@settings(max_examples=30, deadline=None)
@given(processes(), st.integers(-1, 7), st.integers(1, 4), st.integers(1, 3))
def test_random_processes_equal_enumeration(term: Process, n: int, p: int, b: int) -> None:
    assert_equals_enumeration(term, {"N": n, "P": p, "B": b})
