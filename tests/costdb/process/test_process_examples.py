"""The example models: closed forms, decisions, and a cost of evaluation that does not grow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from costdb.expr import Expr, evaluate, parse, to_text
from costdb.process.model import Model, compile_model, knowing, load_model, price_model
from costdb.process.servers import largest_element

MODELS = Path(__file__).parents[3] / "examples" / "models"
CHOICES = {
    "matmul": "broadcast_rows",
    "adi": "swept_axis",
    "gauss": "cyclic",
    "psrs": "replicated",
}


def on_cluster(name: str) -> Model:
    return load_model([MODELS / f"{name}.pam", MODELS / "cluster.pam"])


@cache
def time_of(name: str) -> Expr:
    return compile_model(on_cluster(name)).T


def seconds(name: str, choice: int, **sizes: int) -> float:
    return float(evaluate(time_of(name), {CHOICES[name]: choice, **sizes}))


def test_machine_repair_is_the_published_closed_form() -> None:
    cost = compile_model(load_model([MODELS / "machine_repair.pam"]))
    assert parse("max(N*10.1, P*N*0.1)") == cost.T
    assert cost.phi == parse("N*10.1")
    busiest = largest_element(cost.delta, knowing(["P", "N"], ()))
    assert busiest == parse("P*N*0.1")
    priced = price_model(load_model([MODELS / "machine_repair.pam"]))
    assert evaluate(priced.microseconds, {"P": 1000, "N": 1_000_000}) == 10**14


def test_gauss_changes_its_mind_as_the_stride_grows() -> None:
    better = {
        nodes: seconds("gauss", 1, N=480, P=nodes) < seconds("gauss", 0, N=480, P=nodes)
        for nodes in (2, 4, 8, 16)
    }
    assert better == {2: True, 4: True, 8: False, 16: False}


def gauss_by_hand(size: int, nodes: int, machine: Mapping[str, Fraction]) -> list[Fraction]:
    """Elimination column by column, for both distributions, with the work of every node."""
    element = machine["t_mult"] + machine["t_add"]
    strides = (1, nodes)
    times = []
    for is_cyclic in (False, True):
        fetch = machine["t_line"] * min(strides[is_cyclic], machine["line"]) / machine["line"]
        total = Fraction(0)
        for k in range(1, size):
            columns = dict.fromkeys(range(nodes + 1), 0)
            for j in range(k + 1, size + 1):
                owner = j % nodes if is_cyclic else (j - 1) // -(-size // nodes)
                columns[owner] += 1
            levels = max(0, nodes - 1).bit_length()
            message = machine["t_startup"] + (size - k) * machine["t_element"]
            total += levels * message + max(columns.values()) * (size - k) * (element + fetch)
        times.append(total)
    return times


@pytest.mark.parametrize(("size", "nodes"), [(1, 1), (1, 3), (2, 5), (13, 4), (30, 7), (32, 8)])
def test_gauss_equals_elimination_by_hand(size: int, nodes: int) -> None:
    text = (MODELS / "cluster.pam").read_text()
    machine = {
        name: Fraction(value)
        for name, value in re.findall(r"^numeric (\w+) = ([0-9.e-]+)", text, re.MULTILINE)
    }
    computed = [
        evaluate(time_of("gauss"), {"cyclic": choice, "N": size, "P": nodes}) for choice in (0, 1)
    ]
    by_hand = [float(time) for time in gauss_by_hand(size, nodes, machine)]
    assert computed == pytest.approx(by_hand, rel=1e-12)


def test_the_page_about_process_models_is_true(tmp_path: Path) -> None:
    page = (MODELS.parents[1] / "docs" / "models.md").read_text()
    (text,) = re.findall(r"```pam\n(.*?)```", page, re.DOTALL)
    path = tmp_path / "page.pam"
    path.write_text(text)
    formula = to_text(compile_model(load_model([path])).T)
    assert f"seconds = {formula}\n" in page
