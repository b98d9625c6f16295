"""Kernels built for Dask: on a worker process their results are those of the kernels."""

from __future__ import annotations

import inspect
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advisor.build.program import DASK, build
from advisor.build.text import NotBuiltError
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.ranking.built import on_ranks, plan_of, proposed
from advisor.transform_registry import transforms
from advisor.verify.cases import inputs_of

EXAMPLES = Path(__file__).parents[3] / "examples"
SMALL = {"b": 3, "steps": 4, "width": 7}
HEAD = """
import numpy as np
# advise: kernel N=13
# advise: a: f8[N, N] over (block(p), none) on mesh(p=3)
# advise: v: i8[N] over (block(p)) on mesh(p=3)
def f(a, v):
"""
BODIES = {
    "roll": "b = np.roll(a, 2, 0)\nreturn b",
    "flip": "return a - np.flip(a, 0)",
    "running": "return np.cumsum(a[::-1, :], 0)",
    "sorted": "b = np.sort(a, 0)\nreturn b",
    "turned": "return a.T + a",
    "means": "m = np.mean(a, axis=0)\na[2:, :] -= m\nreturn a",
    "deep": "a[3:, 1:] = a[:-3, :-1] + 2 * a[3:, :-1]\nreturn a",
    "corners": "a[1:-1, 1:-1] = a[:-2, :-2] * a[2:, 2:]\nreturn a",
    "steps": "a[::2, :] = a[1::2, :].sum()\nreturn a",
    "counts": "np.add.at(v, v % 5, 2)\nreturn v",
    "made": "b = np.zeros(a.shape, np.int64)\nb[1:, :] = a[:-1, :] > 4.5\nreturn b",
    "vectors": "return a @ a",
    "along rows": "for j in range(1, 13):\n    a[:, j] = a[:, j] + a[:, j - 1]\nreturn a",
    "largest": "return np.where(a > np.max(a) / 2, a, 0.0)",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    # imported late: every worker of the suite collects this file
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as here, distributed.Client(here) as client:
        yield client


def arguments(function: Any, kernel: Kernel, sizes: dict[str, Any]) -> dict[str, Any]:
    random = np.random.default_rng(3)
    given: dict[str, Any] = {}
    arrays = {one.name: one for one in inputs_of(kernel, sizes)}
    for name in inspect.signature(function).parameters:
        if name not in arrays:
            given[name] = sizes[name]
            continue
        found = arrays[name]
        values = random.integers(0, 5, found.shape)
        whole = np.dtype(found.dtype).kind in "iu"
        given[name] = values.astype(found.dtype) if whole else random.random(found.shape) + 4.0
        given[name] = given[name].astype(found.dtype)
    return given


def check(path: Path, kernel: Kernel, sizes: dict[str, Any], variants: list[Kernel]) -> int:
    """Run a kernel and what is built of its variants, the first on the cluster; return how many."""
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    function = runpy.run_path(str(path))[kernel.name]
    count = 0
    for variant in variants:
        try:
            text = build(str(path), [variant], sizes, to=DASK)
        except NotBuiltError:
            continue
        space: dict[str, Any] = {"__name__": "built"}
        exec(compile(text, "built", "exec"), space)
        given = arguments(function, kernel, sizes)
        chunks = space["CHUNKS"][kernel.name]
        taken = {
            name: da.from_array(value.copy(), chunks[name]) if name in chunks else value
            for name, value in given.items()
        }
        wanted = [function(**given), *(given[name] for name in chunks)]
        returned = space[kernel.name](**taken)
        # at once, as they are made of the same parts; who runs them makes no other result
        where = {"scheduler": "sync"} if count else {}
        made = dask.compute(returned, *(taken[name] for name in chunks), **where)
        for one, found in zip(wanted, made, strict=True):
            assert np.asarray(one).dtype == np.asarray(found).dtype
            np.testing.assert_allclose(found, one, 1e-12, 1e-12, err_msg=f"{kernel.name}\n{text}")
        count += 1
    return count


def test_examples_and_what_rules_propose(cluster: Any) -> None:
    built = 0
    for path in sorted(EXAMPLES.glob("*.py")):
        for kernel in read_kernels(str(path), path.read_text()):
            here = on_ranks(kernel, 3)
            known = frozenset(kernel.sizes) | {"b", "steps", "width"}
            sizes = {**SMALL, "N": 13, "M": 11, "R": 5, "P": 3}
            own = {name: value for name, value in sizes.items() if name in known}
            plans = proposed(plan_of(here, None), None, transforms())
            variants = [here, *(plan.kernel for plan in plans)][:6]
            built += check(path, kernel, own, variants) if kernel.arrays else 0
    assert built > 15


@pytest.mark.parametrize("name", BODIES)
def test_forms(cluster: Any, tmp_path: Path, name: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(HEAD + "".join(f"    {line}\n" for line in BODIES[name].splitlines()))
    (kernel,) = read_kernels(str(path), path.read_text())
    assert check(path, kernel, {"N": 13}, [kernel]) == 1


def test_neighbours_come_as_deep_as_they_are_read_and_changes_of_chunks_by_name() -> None:
    texts = {}
    for name in ("jacobi", "fft2d", "adi"):
        path = EXAMPLES / f"{name}.py"
        kernel = on_ranks(read_kernels(str(path), path.read_text())[-1], 2)
        texts[name] = build(str(path), [kernel], {"N": 8, "steps": 2}, to=DASK)
    assert "depth={0: 1, 1: 1}" in texts["jacobi"] and "da.map_overlap(" in texts["jacobi"]
    assert texts["fft2d"].count(".rechunk(") == 2
    assert "da.map_blocks(line_" in texts["adi"] and "mpi4py" not in texts["adi"]


@pytest.mark.parametrize(
    ("name", "why"), [("adi", "along axis 1"), ("histogram", "dealt out cyclically along axis 0")]
)
def test_what_has_no_form_is_refused_by_name(name: str, why: str) -> None:
    path = EXAMPLES / f"{name}.py"
    kernel = read_kernels(str(path), path.read_text())[0]
    with pytest.raises(NotBuiltError, match=why) as error:
        build(str(path), [kernel], {"N": 8, "M": 6, "P": 2}, to=DASK)
    assert error.value.span is not None


def test_chunks_of_a_sum_of_sizes_are_parts_of_all_of_it(tmp_path: Path) -> None:
    head = HEAD.replace("a: f8[N, N]", "a: f8[N + 2, N]")
    path = tmp_path / "kernel.py"
    path.write_text(f"{head}    a[1:-1, :] = 2 * a[:-2, :]\n")
    (kernel,) = read_kernels(str(path), path.read_text())
    assert "(-(-(N + 2) // 3), N)" in build(str(path), [kernel], {"N": 13}, to=DASK)
