"""The example models: closed forms, decisions, and a cost of evaluation that does not grow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from costdb.expr import Expr, evaluate, parse, to_text
from costdb.expr.functions import Reduction
from costdb.process.model import Model, compile_model, load_model, price_model

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


def has_reductions(expr: Expr) -> bool:
    return isinstance(expr, Reduction) or any(map(has_reductions, expr.children))


def test_machine_repair_is_the_published_closed_form() -> None:
    cost = compile_model(load_model([MODELS / "machine_repair.pam"]))
    assert parse("max(N*10.1, P*N*0.1)") == cost.T
    assert cost.phi == parse("N*10.1")
    assert cost.omega == parse("P*N*0.1")
    priced = price_model(load_model([MODELS / "machine_repair.pam"]))
    assert evaluate(priced.microseconds, {"P": 1000, "N": 1_000_000}) == 10**14


@pytest.mark.parametrize("name", ["matmul", "psrs"])
def test_evaluation_does_not_depend_on_the_sizes(name: str) -> None:
    assert not has_reductions(time_of(name))


@pytest.mark.parametrize("name", sorted(CHOICES))
def test_one_node_makes_no_difference(name: str) -> None:
    costs = [seconds(name, choice, N=64, P=1) for choice in (0, 1)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-12)


@pytest.mark.parametrize("nodes", [2, 4, 7, 16])
@pytest.mark.parametrize("size", [64, 100, 1000])
def test_matmul_broadcasts_rows(size: int, nodes: int) -> None:
    assert seconds("matmul", 1, N=size, P=nodes) < seconds("matmul", 0, N=size, P=nodes)


@pytest.mark.parametrize("nodes", [2, 4, 7, 16])
@pytest.mark.parametrize("size", [64, 100, 1000])
def test_adi_keeps_the_swept_axis_whole(size: int, nodes: int) -> None:
    whole, swept = (seconds("adi", choice, N=size, P=nodes) for choice in (0, 1))
    assert whole < swept
    # Nodes that wait for each other are as slow as one, and pay for the borders besides.
    assert swept > seconds("adi", 0, N=size, P=1)


@pytest.mark.parametrize("nodes", [2, 4, 8, 16])
def test_gauss_balances_load_by_cycles_where_strides_cost_nothing(
    nodes: int, tmp_path: Path
) -> None:
    flat = tmp_path / "flat.pam"
    flat.write_text("numeric line = 1")
    model = load_model([MODELS / "gauss.pam", MODELS / "cluster.pam", flat])
    time_s = compile_model(model).T
    block, cyclic = (evaluate(time_s, {"cyclic": c, "N": 240, "P": nodes}) for c in (0, 1))
    assert cyclic < block


def test_gauss_changes_its_mind_as_the_stride_grows() -> None:
    better = {
        nodes: seconds("gauss", 1, N=480, P=nodes) < seconds("gauss", 0, N=480, P=nodes)
        for nodes in (2, 4, 8, 16)
    }
    assert better == {2: True, 4: True, 8: False, 16: False}


@pytest.mark.parametrize("nodes", [2, 4, 16, 64])
def test_psrs_partitions_its_index_vectors(nodes: int) -> None:
    assert seconds("psrs", 0, N=100_000, P=nodes) < seconds("psrs", 1, N=100_000, P=nodes)


def test_replicated_index_vectors_spoil_the_speed_up() -> None:
    # Their work is that of all keys on every node, whatever the number of nodes.
    at_16, at_64 = (seconds("psrs", 1, N=1_000_000, P=nodes) for nodes in (16, 64))
    assert at_64 > at_16
    at_16, at_64 = (seconds("psrs", 0, N=1_000_000, P=nodes) for nodes in (16, 64))
    assert at_64 < at_16 / 2


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
