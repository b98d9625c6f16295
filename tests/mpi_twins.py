"""Run under mpiexec by test_mpi_examples.py: MPI programs against the kernels that they mirror."""

from __future__ import annotations

import runpy
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

EXAMPLES = Path(__file__).parent.parent / "examples"
comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()


def program(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / name))


def parts(length: int) -> list[slice]:
    ends = [length * part // size for part in range(size + 1)]
    return [slice(low, high) for low, high in pairwise(ends)]


def together(own: Any, axis: int) -> Any:
    return np.concatenate(comm.allgather(own), axis=axis)


def jacobi(random: np.random.Generator) -> None:
    rows, columns, steps = random.integers(3, 20), random.integers(size, 20), random.integers(0, 6)
    plate = random.random((rows, columns))
    own = program("mpi/jacobi.py")["jacobi"](comm, plate[:, parts(columns)[rank]].copy(), steps)
    wanted = program("jacobi.py")["jacobi"](plate, steps)
    np.testing.assert_allclose(together(own, 1), wanted, rtol=1e-14)


def box_sum(random: np.random.Generator) -> None:
    b = int(random.integers(1, 5))
    rows, columns = random.integers(size * b, size * b + 12), random.integers(1, 20)
    image = random.integers(-50, 50, (rows, columns))
    ways = program("mpi/box_sum.py")
    wanted = program("box_sum.py")["box_sum"](image, b)
    own = image[parts(rows)[rank]]
    for way in ("box_by_shifts", "box_by_scans"):
        np.testing.assert_array_equal(together(ways[way](comm, own, b), 0), wanted, way)


def matmul(random: np.random.Generator) -> None:
    order = size * int(random.integers(1, 6))
    a, b = random.random((order, order)), random.random((order, order))
    own = parts(order)[rank]
    ways = program("mpi/matmul.py")
    wanted = program("matmul.py")["matmul"](a, b, np.empty((order, order)))
    for way in ("by_gathering", "around_a_ring"):
        found = together(ways[way](comm, a[own], b[own]), 0)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, err_msg=way)


def one_sided(random: np.random.Generator) -> None:
    programs = program("mpi/one_sided.py")
    count = int(random.integers(1, 6))
    table = programs["Shared"](comm, count)
    places = random.integers(0, size * count, 40)
    for turn in range(size):  # one after another, so that no addition is lost
        if turn == rank:
            programs["histogram"](table, places[rank::size])
        comm.Barrier()
    wanted = np.bincount(places, minlength=size * count)
    np.testing.assert_array_equal(together(table.own, 0), wanted)
    comm.Barrier()
    table.free()

    columns = int(random.integers(1, 5))
    order = size * columns
    a, b = random.random((order, order)), random.random((order, order))
    shared = programs["Shared"](comm, columns * order)
    shared.own[:] = b[:, parts(order)[rank]].T.ravel()
    comm.Barrier()
    product = np.empty((columns, order))
    programs["matmul"](a[parts(order)[rank]], shared, product)
    np.testing.assert_allclose(together(product, 0), a @ b, rtol=1e-12)
    comm.Barrier()
    shared.free()

    rows, width = int(random.integers(1, 5)), int(random.integers(3, 9))
    picture = random.integers(-50, 50, (size * rows, width))
    image = programs["Shared"](comm, rows * width)
    image.own[:] = picture[parts(size * rows)[rank]].ravel()
    comm.Barrier()
    edges = np.zeros((rows, width))
    programs["sobel"](image, width, edges)
    wanted = np.zeros_like(picture)
    if len(picture) > 2:
        program("sobel.py")["sobel"](picture, wanted)
    np.testing.assert_array_equal(together(edges, 0), wanted)
    comm.Barrier()
    image.free()


for seed in range(10):
    for check in (jacobi, box_sum, matmul, one_sided):
        check(np.random.default_rng(seed))
if rank == 0:
    print("the same on", size)
