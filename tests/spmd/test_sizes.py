"""Where sizes and the number of ranks are read from; meshes worked out; numbers of a run."""

from __future__ import annotations

import pytest
from reading import loops, operations, program

from advisor.ranking.programs import bind_program
from costdb.expr import evaluate, free_symbols, sym, to_text

SENT = "x = np.zeros(n)\ncomm.Bcast(x)\n"

# what binds n, its value, and what the report says of it
BINDINGS = {
    "literal": ("n = 4096\n", 4096, "line 7"),
    "argparse": (
        "import argparse\np = argparse.ArgumentParser()\n"
        "p.add_argument('-n', '--n', type=int, default=4096)\nn = p.parse_args().n\n",
        4096,
        "default of --n, line 9",
    ),
    "argparse, positional": (
        "import argparse\np = argparse.ArgumentParser()\n"
        "p.add_argument('n', type=int)\nargs = p.parse_args()\nn = args.n\n",
        None,
        "an argument of the command line",
    ),
    "sys.argv with a default": (
        "import sys\nn = int(sys.argv[1]) if len(sys.argv) > 1 else 512\n",
        512,
        "used where the command line says nothing, line 8",
    ),
    "sys.argv after a default": (
        "import sys\nn = 512\nif len(sys.argv) > 1:\n    n = int(sys.argv[1])\n",
        512,
        "line 8",
    ),
    "sys.argv alone": ("import sys\nn = int(sys.argv[1])\n", None, "an argument"),
    "sys.argv or an exception": (
        "import sys\ntry:\n    n = int(sys.argv[1])\nexcept IndexError:\n    n = 640\n",
        640,
        "line",
    ),
    "a number that is broadcast": (
        "n = None\nif rank == 0:\n    n = 700\nn = comm.bcast(n, root=0)\n",
        700,
        "line 9",
    ),
    "arithmetic": ("half = 50\nn = 2 * half\n", None, ""),
}


@pytest.mark.parametrize("name", [name for name in BINDINGS if name != "arithmetic"])
def test_a_size_says_where_it_is_from(name: str) -> None:
    text, value, origin = BINDINGS[name]
    read = program(text + SENT)
    facts = read.sizes
    found = facts.get("n") or facts.get("argv1")
    assert found is not None, facts
    assert found.value == value
    assert origin in found.origin


def test_click_options_bind_parameters() -> None:
    text = (
        "import click\n"
        "@click.command()\n"
        "@click.option('--n', default=900, help='Size')\n"
        "def main(n):\n"
        "    x = np.zeros(n)\n"
        "    comm.Bcast(x)\n"
        "if __name__ == '__main__':\n"
        "    main()\n"
    )
    assert program(text).sizes["n"].value == 900


# what says how many ranks there are
RANKS = {
    "a comment": ("# run: mpirun -n 6 python f.py\n", 6),
    "a comment with np": ("# mpiexec --oversubscribe -np 8 python f.py\n", 8),
    "a job script's line": ("# srun --ntasks=64 python f.py\n", 64),
    "an assertion": ("assert size == 4, 'four ranks'\n", 4),
    "an assertion the other way": ("assert 4 == comm.size\n", 4),
    "an abort": ("if size != 5:\n    comm.Abort(1)\n", 5),
    "an exit": ("import sys\nif size != 5:\n    print('five')\n    sys.exit(1)\n", 5),
    "a comment to the tool": ("# advise: kernel P=12\n", 12),
    "nothing": ("", None),
    "a bound only": ("assert size >= 4\n", None),
}


@pytest.mark.parametrize("name", RANKS)
def test_the_number_of_ranks_is_read_where_it_stands(name: str) -> None:
    text, ranks = RANKS[name]
    read = program(f"{text}n = 100\n{SENT}")
    assert read.sizes["P"].value == ranks
    assert read.sizes["P"].origin
    assert read.sizes["P"].tried is text.startswith(("# run", "# mpi", "# srun"))


def test_a_mesh_that_mpi_chooses_is_known_for_two_axes() -> None:
    read = program(
        "dims = MPI.Compute_dims(size, 2)\ncomm.Send(np.zeros(1000 * dims[0] + dims[1]), dest=1)\n"
    )
    (sent,) = operations(read)
    for ranks, dims in ((1, (1, 1)), (6, (3, 2)), (12, (4, 3)), (7, (7, 1)), (16, (4, 4))):
        sizes = bind_program(read, {"P": ranks})
        assert evaluate(sent.send.count, sizes.values) == 1000 * dims[0] + dims[1]
        assert "MPI.Compute_dims" in sizes.origins["dims0"]


_READ = "places = np.loadtxt('places.txt', dtype=int)\nother = np.loadtxt('other.txt', dtype=int)\n"


@pytest.mark.parametrize(
    "bounds",
    [
        "places[rank], places[rank + 1]",
        "places[rank], other[rank]",
        "int(places[0]), int(other[0])",
        "places.min(), places.max()",
    ],
)
def test_a_range_between_two_such_numbers_has_a_length_of_its_own(bounds: str) -> None:
    text = f"{_READ}x = np.zeros(8)\nfor k in range({bounds}):\n    comm.Send(x, dest=1)\n"
    (loop,) = loops(program(text))
    assert loop.trips == sym("range.length")
    assert loop.high - loop.low == sym("range.length")


def test_two_such_ranges_are_not_as_long() -> None:
    loop = "for k in range({0}[0], {0}[1]):\n    comm.Send(x, dest=1)\n"
    text = f"{_READ}x = np.zeros(8)\n{loop.format('places')}{loop.format('other')}"
    one, another = loops(program(text))
    assert free_symbols(one.trips).isdisjoint(free_symbols(another.trips))


@pytest.mark.parametrize(
    ("loop", "trips"),
    [
        ("i = 2\nwhile i < n:\n    {body}\n    i += 3", "ceil((n - 2)/3)"),
        ("i = 0\nwhile i < n:\n    {body}\n    i += rank", None),
        ("i = 0\nwhile i < n:\n    {body}\n    i += 1\n    i = min(i, 5)", None),
        ("i = 0.0\nwhile i < 1.0:\n    {body}\n    i += 0.1", None),
    ],
)
def test_a_while_loop_that_counts_has_a_length(loop: str, trips: str | None) -> None:
    (found,) = loops(program("n = 50\n" + loop.format(body="comm.Barrier()") + "\n"))
    assert (None if found.trips is None else to_text(found.trips)) == trips
