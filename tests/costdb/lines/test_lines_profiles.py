"""The historical profiles reproduce the published decisions, over sizes and not at one point."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from costdb.evaluate import Priced
from costdb.expr import Expr, ceil_div, evaluate, num, sym
from costdb.lines.coefficients import region_line_bounds
from costdb.lines.model import price_message, price_scan, price_statement
from costdb.machines import Machine, load_machine
from costdb.quantity import Provenance, Quantity
from costdb.work import Access, Message, PrefixScan, Region, Statement
from tests.costdb.lines.published import column_bounds, enumerate_lines, row_bounds

N, B = sym("N"), sym("b")
D = ceil_div(N, 4)
"""Side of the local block on a 4 x 4 mesh."""

SIDES = (256, 257, 300, 384, 500, 511, 512, 777, 1000, 1024, 1337, 2000, 2047, 2048, 3001, 4096)
THRESHOLDS = {"t3e": 3, "e5000": 7}
LINE_TERMS = ("lines.message.gamma", "lines.scan.line", "lines.statement.line")


def part(rows: Expr, columns: Expr) -> Region:
    """Rows and columns of the local block of int32, in C order."""
    return Region(4, (rows, columns), (4 * D, num(4)))


BLOCK = part(D, D)
ONE = num(1)
ROW, COLUMN = part(ONE, D), part(D, ONE)
COPY = Statement((Access(BLOCK), Access(BLOCK, store=True)), num(0))
COMBINE = Statement((Access(BLOCK), Access(BLOCK), Access(BLOCK, store=True)), D * D)

Piece = Message | PrefixScan | Statement


def shifts() -> Iterable[tuple[Expr | int, Piece]]:
    """A box sum by unit shifts: rows, then columns, each beginning with two copies."""
    for edge in (ROW, COLUMN):
        yield 2, COPY
        for piece in (COPY, COMBINE, Message(edge)):
            yield B - 1, piece


def staged_scans() -> Iterable[tuple[Expr | int, Piece]]:
    """A box sum by a scan, a copy and a difference at distance b in each direction."""
    for edge, moved in ((ROW, part(B, D)), (COLUMN, part(D, B))):
        for piece in (PrefixScan(num(4), edge, BLOCK), COPY, COMBINE, Message(moved)):
            yield 1, piece


def published_scans() -> Iterable[tuple[Expr | int, Piece]]:
    """Both scans first, then three differences: from the north, the west and the northwest."""
    yield 1, PrefixScan(num(4), ROW, BLOCK)
    yield 1, PrefixScan(num(4), COLUMN, BLOCK)
    yield 1, COPY
    yield 3, COMBINE
    yield 2, Message(part(B, D))
    yield 2, Message(part(D, B))
    yield 1, Message(part(B, B))


FORMS = {"shifts": shifts, "staged": staged_scans, "published": published_scans}


@cache
def priced(machine: str, form: str) -> tuple[Expr, dict[str, Quantity]]:
    total = num(0)
    coefficients: dict[str, Quantity] = {}
    for times, piece in FORMS[form]():
        one = price(load_machine(machine), piece)
        total = total + times * one.microseconds
        coefficients.update(one.coefficients)
    return total, coefficients


def price(machine: Machine, piece: Piece) -> Priced:
    match piece:
        case Message():
            found = price_message(piece, machine)
        case PrefixScan():
            found = price_scan(piece, machine)
        case Statement():
            found = price_statement(piece, machine)
    assert isinstance(found, Priced), found
    return found


def microseconds(machine: str, form: str, side: int, box: int, **changed: float) -> float:
    total, coefficients = priced(machine, form)
    values: dict[str, float] = {symbol: q.value for symbol, q in coefficients.items()}
    values |= {symbol.replace("__", "."): value for symbol, value in changed.items()}
    return float(evaluate(total, {**values, "N": side, "b": box}))


def gain(machine: str, form: str, side: int, box: int, **changed: float) -> float:
    """Return the time of shifts over the time of a scan form."""
    by_shifts = microseconds(machine, "shifts", side, box, **changed)
    return by_shifts / microseconds(machine, form, side, box, **changed)


@pytest.mark.parametrize("form", ["staged", "published"])
@pytest.mark.parametrize("machine", list(THRESHOLDS))
def test_the_scan_wins_from_the_published_threshold_on(machine: str, form: str) -> None:
    threshold = THRESHOLDS[machine]
    for side in SIDES:
        for box in range(1, 11):
            assert (gain(machine, form, side, box) > 1) == (box >= threshold), (side, box)


def column_over_row(block_side: int, **changed: float) -> float:
    machine = load_machine("sp2")
    times = []
    for edge in (COLUMN, ROW):
        message = price(machine, Message(edge))
        values: dict[str, float] = {s: q.value for s, q in message.coefficients.items()}
        values |= {symbol.replace("__", "."): value for symbol, value in changed.items()}
        times.append(float(evaluate(message.microseconds, {**values, "N": 4 * block_side})))
    return times[0] / times[1]


@pytest.mark.parametrize("which", ["low", "value", "high"])
def test_a_column_costs_about_eight_rows_on_the_sp2(which: str) -> None:
    message = price(load_machine("sp2"), Message(COLUMN))
    gamma = float(getattr(message.coefficients["lines.message.gamma"], which))
    for side in range(1000, 4001, 97):
        assert 7 <= column_over_row(side, lines__message__gamma=gamma) <= 9


@pytest.mark.parametrize("name", ["t3e", "sp2", "e5000"])
def test_nothing_fitted_or_recalled_is_shown_as_sourced(name: str) -> None:
    machine = load_machine(name)
    found = dict(leaves(machine, ()))
    assert any(q["provenance"] == "published" for q in found.values())
    for path, leaf in found.items():
        quantity = machine.quantity(*path)
        assert quantity is not None
        if leaf.get("fitted_to") or leaf["source"] in ("memory", "clock", "fit"):
            assert quantity.provenance is Provenance.ESTIMATED, path
        if quantity.provenance is Provenance.ESTIMATED:
            assert leaf["source"] in ("memory", "clock", "fit") or leaf["note"], path
        if path[0] == "lines":
            assert quantity.low < quantity.high, path


def leaves(
    machine: Machine, path: tuple[str, ...]
) -> Iterable[tuple[tuple[str, ...], dict[str, str]]]:
    for key, inner in machine.section(*path).items():
        if isinstance(inner, dict) and "value" in inner:
            yield (*path, key), {k: str(v) for k, v in inner.items()}
        elif isinstance(inner, dict) and key != "sources":
            yield from leaves(machine, (*path, key))


def test_the_sp2_claims_no_crossover() -> None:
    machine = load_machine("sp2")
    assert any("unknown" in note and "scan" in note for note in machine.notes)
    fitted = [q for _, q in leaves(machine, ()) if "crossover" in q.get("fitted_to", "")]
    assert fitted == []


TEXT = (Path(__file__).parents[3] / "docs" / "models.md").read_text(encoding="utf-8")


def documented(first_header: str) -> list[list[str]]:
    """Return the cells below the headers of the table in docs/models.md that begins so."""
    _, _, rest = TEXT.partition(f"\n| {first_header} |")
    body = rest.partition("\n\n")[0].splitlines()[2:]
    assert body
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body]


def test_documented_gains_of_scans() -> None:
    table = documented("machine | b")
    assert [(row[0], row[1]) for row in table] == [
        (machine, str(box))
        for machine, threshold in THRESHOLDS.items()
        for box in (threshold - 1, threshold)
    ]
    for machine, box, staged, published, winner in table:
        for form, cell in (("staged", staged), ("published", published)):
            gains = [gain(machine, form, side, int(box)) for side in SIDES]
            assert cell == f"{min(gains):.2f} to {max(gains):.2f}"
        assert winner == ("scan" if int(box) >= THRESHOLDS[machine] else "shifts")


def test_documented_gain_without_line_terms() -> None:
    dropped = {symbol.replace(".", "__"): 0.0 for symbol in LINE_TERMS}
    spans = []
    for form in ("staged", "published"):
        gains = [gain("t3e", form, side, 3, **dropped) for side in SIDES]
        spans.append(f"{min(gains):.2f} to {max(gains):.2f} {form}")
    assert " ".join(TEXT.split()).count(f"(ratio {spans[0]}, {spans[1]})") == 1


def test_documented_spread_of_scan_additions() -> None:
    _, coefficients = priced("t3e", "staged")
    scan, statement = (coefficients[f"lines.{s}.phi"] for s in ("scan", "statement"))
    low, high = scan.low / statement.value, scan.high / statement.value
    assert f"between {low:.1f} and {high:.1f} times a statement's" in TEXT


def test_documented_ratio_of_column_to_row() -> None:
    for side, ratio in documented("side of the local block"):
        assert ratio == f"{column_over_row(int(side)):.2f}"


def test_documented_ratios_of_published_errors() -> None:
    data = Path(__file__).parents[2] / "data" / "lines_published.json"
    table = json.loads(data.read_text(encoding="utf-8"))["R2"]
    assert [row[0] for row in documented("model | SP-2 ZPL")] == list(table)
    for model, *cells in documented("model | SP-2 ZPL"):
        ratios = [error / m1 for error, m1 in zip(table[model], table["M1"], strict=True)]
        assert cells == [f"{ratio:.2f}" for ratio in ratios]


def test_documented_bounds_on_lines() -> None:
    shapes = {"one row": (1, 1000), "one column": (1000, 1), "three columns": (1000, 3)}
    table = documented("`L = 64`, local block of 1000 x 1000 int32")
    assert [row[0] for row in table] == list(shapes)
    bound = {"N": 4000}
    for name, exact, ours, printed in table:
        height, width = shapes[name]
        starts = range(0, 64, 4)
        found = [enumerate_lines(4, (height, width), (4000, 4), start, 64) for start in starts]
        assert exact == f"{min(found)} to {max(found)}"
        region = part(D if height > 1 else ONE, D if width == 1000 else num(width))
        symbolic = [evaluate(limit, bound) for limit in region_line_bounds(region, 64)]
        assert ours == f"{symbolic[0]}, {symbolic[1]}"
        published = (
            row_bounds(4 * width, 64) if height == 1 else column_bounds(height, 4000, 4 * width, 64)
        )
        assert printed == f"{published[0]}, {published[1]}"
