"""Where sizes and the number of ranks are read from, and that reports can say so."""

from __future__ import annotations

from pathlib import Path

import pytest
from reading import HEAD, program, the_operation

from advisor.frontend.spmd.reader import read_program
from costdb.expr import evaluate, to_text

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
    "docopt": (
        "from docopt import docopt\n"
        "args = docopt('''Usage: f [options]\n\n--n=<n>  Size [default: 300]\n''')\n"
        "n = int(args['--n'])\n",
        300,
        "default of --n in the usage text",
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


def test_sizes_stay_symbols_through_arithmetic() -> None:
    found = the_operation("nx = 300\nny = 200\nu = np.zeros((nx // size + 2, ny))\ncomm.Bcast(u)\n")
    assert found.send is not None
    assert found.send.count is not None
    assert to_text(found.send.count) in ("(nx // P + 2)*ny", "ny*(nx // P + 2)")


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


def test_a_json_file_beside_the_program_binds_sizes(tmp_path: Path) -> None:
    (tmp_path / "sizes.json").write_text('{"grid": {"n": 48, "steps": 10}, "name": "x"}')
    text = (
        "import json\n"
        "with open('sizes.json') as file:\n"
        "    given = json.load(file)\n"
        "n = given['grid']['n']\n"
    )
    read = read_program(str(tmp_path / "f.py"), HEAD + text + SENT)
    assert read is not None
    assert read.sizes["n"].value == 48
    assert read.sizes["n"].origin == "`n` in sizes.json"


@pytest.mark.parametrize("name", ["../sizes.json", "/etc/sizes.json", "none.json", "bad.json"])
def test_other_json_files_are_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / "bad.json").write_text("[" * 100_000)
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "sizes.json").write_text('{"n": 48}')
    text = f"import json\ngiven = json.load(open({name!r}))\nn = given['n']\n"
    read = read_program(str(inner / "f.py"), HEAD + text + SENT)
    assert read is not None
    assert all(fact.value != 48 for fact in read.sizes.values())


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


def test_a_block_with_a_remainder_is_exact_on_every_rank() -> None:
    text = (
        "n = 103\n"
        "mine = n // size + (1 if rank < n % size else 0)\n"
        "x = np.zeros(mine)\n"
        "comm.Gatherv(x, None)\n"
    )
    sent = the_operation(text).send
    assert sent is not None
    assert sent.count is not None
    for ranks in (1, 2, 4, 7):
        shares = [
            evaluate(sent.count, {"n": 103, "P": ranks, "rank": rank}) for rank in range(ranks)
        ]
        assert sum(shares) == 103
