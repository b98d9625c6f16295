"""Predictions of one-sided programs held against runs: histogram, matrix product, Sobel.

A prediction is the sum of the program's groups of remote references, priced by the profile, and of
its private computation, which is timed alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.validation.ranks import RANKS, Job, Times, left_out, run_in_rounds
from costdb.estimate import Estimate, Missing
from costdb.evaluate import evaluate_price
from costdb.expr import num
from costdb.machines import Machine, load_machine
from costdb.pgas.model import price_groups
from costdb.published import UPC
from costdb.validation.results import CannotValidateError, Row, Section, Verdict, percent
from costdb.work import Pattern, RemoteGroup, Then

if TYPE_CHECKING:
    from advisor.validation.sections import Context

TITLE = "remote access: three one-sided programs on 2 ranks"
GOAL = 0.15
_PLATFORMS = ("mupc", "mupc-cache", "bupc", "gupc-t3e")
_NOTE = (
    "Predicted: groups of references by their patterns' rates, what resuming one's own work takes "
    "after each, and the private part as measured alone; an interval has the ends of all three. "
    "Judged by the 15 % that the paper states; its greatest error is printed beside."
)


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    program: str
    sizes: dict[str, int]
    groups: tuple[RemoteGroup, ...]


def remote(context: Context) -> Section:
    """Return the section.

    Raises
    ------
    CannotValidateError
        MPI is missing, or the profile has no rates of remote references.
    """
    cases = [*_histograms(), *_products(), *_edges()]
    prices = [_price(case, context.machine) for case in cases]
    jobs = [Job((case.program, f"{case.program} alone"), case.sizes) for case in cases]
    found = run_in_rounds(jobs, lambda share: context.progress("one-sided programs", share))
    rows = [
        _row(case, price, whole, alone)
        for case, price, (whole, alone) in zip(cases, prices, found, strict=True)
    ]
    every = (times for ways in found for times in ways)
    return Section("pgas", TITLE, tuple(rows), (_NOTE, *left_out(every)))


def _price(case: _Case, machine: Machine) -> Estimate:
    price = price_groups(case.groups, machine)
    if isinstance(price, Missing):
        raise CannotValidateError(f"{price.what}; {price.remedy}")
    return evaluate_price(price, {})


def _row(case: _Case, price: Estimate, whole: Times, alone: Times) -> Row:
    predicted_us = price.mid * 1e6 + alone.median_us
    low_us = price.low * 1e6 + alone.usual_us[0]
    high_us = price.high * 1e6 + alone.usual_us[1]
    error, inside = predicted_us / whole.median_us - 1, low_us <= whole.median_us <= high_us
    ours = (
        f"{error:+.1%}, measured {whole.median_us / 1000:.2f} ms, "
        f"{'inside' if inside else 'outside'} {low_us / 1000:.2f} to {high_us / 1000:.2f}"
    )
    held = abs(error) <= GOAL
    values = {
        "error": error,
        "predicted_us": predicted_us,
        "low_us": low_us,
        "high_us": high_us,
        "measured_us": whole.median_us,
        "least_us": whole.low_us,
        "private_us": alone.median_us,
    }
    least = (
        "" if held else f"against the least measured time {predicted_us / whole.low_us - 1:+.1%}"
    )
    figure, paper = "predicted over measured", _printed(case.program)
    return Row("pgas", case.name, figure, paper, UPC, ours, Verdict.of(held), values, least)


def _printed(program: str) -> str:
    """Return the greatest error that the paper prints, over its platforms."""
    errors = []
    for platform in _PLATFORMS:
        stated = load_machine(platform).section("pgas", "published_precision_percent")
        name = program.removeprefix("one-sided ")
        found = stated.get("histogram_12_threads" if name == "histogram" else f"{name}_greatest")
        several = found if isinstance(found, list) else [found]
        errors += [abs(one) for one in several if isinstance(one, int | float)]
    return f"up to {percent(max(errors) / 100)}"


def _histograms() -> Iterator[_Case]:
    """Yield increments of random elements, of which the slowest rank has the fewest of its own."""
    for count, increments in ((1000, 1000), (20_000, 4000), (100_000, 10_000)):
        far = round(most_of_others(increments, RANKS))
        groups = tuple(
            RemoteGroup(num(amount), num(RANKS), pattern, store, then=Then.INTERPRETED)
            for store in (False, True)
            for amount, pattern in ((far, Pattern.BASELINE), (increments - far, Pattern.LOCAL))
        )
        name = f"histogram, {increments} of {RANKS * count}"
        sizes = {"count": count, "increments": increments}
        yield _Case(name, "one-sided histogram", sizes, groups)


def most_of_others(drawn: int, ranks: int) -> float:
    """Return how many of so many random elements the rank with the most has of others, expected.

    Every rank draws for itself, and an element lies on each rank with the same chance.
    """
    far = 1 - 1 / ranks
    expected, at_most = 0.0, 0.0
    for count in range(drawn):
        logarithm = (
            math.lgamma(drawn + 1)
            - math.lgamma(count + 1)
            - math.lgamma(drawn - count + 1)
            + count * math.log(far)
            + (drawn - count) * math.log1p(-far)
        )
        at_most += math.exp(logarithm)
        expected += 1 - min(at_most, 1.0) ** ranks
    return expected


def _products() -> Iterator[_Case]:
    """Yield products: columns of others are fetched again for every row; own ones are private."""
    for order in (40, 80, 160):
        fetched = order // RANKS * (order - order // RANKS)
        # each column that is fetched is multiplied by a row
        calls = RemoteGroup(
            num(fetched * order),
            num(RANKS),
            Pattern.VECTOR,
            calls=num(fetched),
            then=Then.LIBRARY,
        )
        yield _Case(f"matrix product, {order}", "one-sided matmul", {"N": order}, (calls,))


def _edges() -> Iterator[_Case]:
    """Yield Sobel's detector: eight neighbours of each pixel, three remote at a block's rim."""
    for width in (20, 60, 120):
        rows = width // RANKS
        # with two ranks every block has one neighbour and one rim, which is not computed
        inner, far = width - 2, 3 * (width - 2)
        groups = (
            RemoteGroup(num(8 * (rows - 1) * inner - far), num(RANKS), Pattern.LOCAL),
            RemoteGroup(num(far), num(RANKS), Pattern.BASELINE, then=Then.INTERPRETED),
        )
        yield _Case(f"Sobel, {width} x {width}", "one-sided sobel", {"N": width}, groups)
