"""A user's files beside a program stand for themselves in it, and for nothing of ours."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from subprocess import CompletedProcess

import pytest

from tests.advisor.observe.conftest import BIN, User
from tests.advisor.verify.test_verify_programs import HEAD, LOOP

ROOMS = ("transforms", "costdb", "machine_profiles")
# for a program that imports us itself: `costdb` is our name there
THEIRS = ("transforms", "machine_profiles")
NOT_PYTHONS = (
    # packages that we use, and names that modules of ours have
    *("typer", "click", "libcst", "lark", "jsonschema", "platformdirs"),
    *("numpy_helpers", "observe", "calls", "engine", "inside", "space", "start"),
)
PYTHONS = ("select", "sqlite3", "statistics", "difflib", "tomllib", "subprocess", "json", "queue")
OTHERS = (*NOT_PYTHONS, *PYTHONS)

PLAIN = """\
import sys

import numpy as np

{imports}
import threading


def scaled(a, b):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = 2 * a[i, j]
    return b


{work}
{mine}
print(sys.path[0], sys.argv[1:], __name__, __file__)
"""
MINE = "print({names})"


def has(user: User, *names: str) -> None:
    for name in names:
        user.write(f"{name}.py", f"MINE = {name!r}\n\ndef mine(a):\n    return a + 1\n")


def writes(user: User, text: str, names: tuple[str, ...] = ()) -> str:
    imports = "\n".join(f"import {name}" for name in names)
    mine = MINE.format(names=", ".join(f"{name}.MINE" for name in names))
    return user.write("program.py", PLAIN.format(imports=imports, work=text, mine=mine))


def runs_alike(user: User, program: str, *options: str, ranks: int = 1) -> CompletedProcess[str]:
    """Return how a program ends under us, having printed what it prints without us."""
    plain = user.types("python", program, *options, ranks=ranks)
    done = user.types("advise", "run", program, *options, ranks=ranks)
    assert done.stdout == plain.stdout
    return done


MARKED = """\
from advisor.annotations import kernel
from advisor import Block
print(kernel(scaled)(np.ones((30, 40)), np.ones((30, 40))).sum())
"""
COMPILED = """\
from numba import njit
print(njit(scaled)(np.ones((300, 400), order="F"), np.ones((300, 400), order="F")).sum())
"""
SENT = """\
from mpi4py import MPI
world = MPI.COMM_WORLD
total = np.zeros(50)
world.Allreduce(np.ones(50), total)
world.Barrier()
if world.rank:
    raise SystemExit
"""


@pytest.mark.parametrize(
    ("own_advisor", "ranks"),
    [(False, 2), (True, 1)],
    ids=["annotated", "with an advisor of its own"],
)
def test_a_program_runs_as_it_does_without_us_and_is_advised_on(
    user: User, own_advisor: bool, ranks: int
) -> None:
    names = (*ROOMS, *OTHERS, *(("advisor",) if own_advisor else ()))
    has(user, *names)
    text = (SENT if ranks > 1 else "") + ("" if own_advisor else MARKED)
    program = writes(user, text, names)
    done = runs_alike(user, program, "-x", "7", ranks=ranks)
    assert str(user.folder) in done.stdout
    assert "Traceback" not in done.stderr
    assert "error while" not in done.stderr
    kept = user.observed() if (user.folder / "kept").exists() else {}
    found = {name.rpartition(":")[2] for name in kept}
    expected = {"scaled"} if not own_advisor else set()
    assert found == (expected | {"Allreduce"} if ranks > 1 else expected)
    if ranks > 1:
        (sent,) = [one for name, one in kept.items() if name.endswith("Allreduce")]
        assert (sent.calls, sent.most_bytes, sent.world) == (2, 400, 2)


def test_compiled_functions_are_seen_beside_such_files(user: User) -> None:
    # numba itself needs parts of Python that some of the files would stand for
    names = (*ROOMS, *NOT_PYTHONS)
    has(user, *names)
    done = runs_alike(user, writes(user, MARKED + COMPILED, names))
    assert "ADV501" in done.stderr
    assert "scaled" in user.observed()


def test_what_is_not_there_is_ours_or_missing_as_without_us(user: User) -> None:
    text = (
        "import advisor, costdb, transforms\n"
        "assert advisor.kernel(scaled) and transforms.__doc__.startswith('The choices')\n"
        "assert 'typer' not in sys.modules and 'libcst' not in sys.modules\n"
        "import importlib.util\n"
        "assert importlib.util.find_spec('observe') is None\n"
        "assert sys.getrecursionlimit() == 1000\n"
    )
    runs_alike(user, writes(user, text))
    (user.folder / "costdb").mkdir()
    (user.folder / "costdb" / "__init__.py").write_text("MINE = 1\n")
    (user.folder / "costdb" / "store.py").write_text("from costdb import MINE\n")
    runs_alike(user, writes(user, "import costdb.store\nprint(costdb.store.MINE)\n" + MARKED))
    assert user.types("advise", "run", "--module", "program").stdout.splitlines()[:2] == [
        "1",
        "2400.0",
    ]


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("raise ValueError('mine')", 1),
        ("import os; os._exit(5)", 5),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
        ("raise KeyboardInterrupt", 130),
    ],
)
def test_a_program_ends_as_it_does_without_us(user: User, ending: str, code: int) -> None:
    has(user, *ROOMS, "advisor")
    done = user.types("advise", "run", writes(user, ending), code=code)
    assert "advisor/" not in done.stderr
    assert ('program.py", line' in done.stderr) == ("raise" in ending)


def test_a_program_is_ended_with_the_command_that_runs_it(user: User) -> None:
    (user.folder / "program.py").write_text(
        "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(100)\n"
    )
    running = subprocess.Popen(
        [str(BIN / "advise"), "run", "program.py"],
        cwd=user.folder,
        env=user.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert running.stdout is not None
    program = int(running.stdout.readline())
    running.send_signal(signal.SIGTERM)
    assert running.wait(timeout=30) == 128 + signal.SIGTERM
    running.stdout.close()
    time.sleep(0.1)
    with pytest.raises(ProcessLookupError):
        os.kill(program, 0)


def test_the_pass_in_numba_advises_in_a_program_with_such_files(user: User) -> None:
    names = (*THEIRS, "typer", "lark", "libcst", "observe", "advisor")
    has(user, *names)
    program = writes(user, COMPILED + "print(threading.active_count())\n", names)
    plain = user.types("python", program)
    assert plain.stderr == ""
    done = user.types("python", program, ADVISE_NUMBA="1")
    assert done.stdout == plain.stdout
    assert "ADV501" in done.stderr
    assert "failed to load" not in done.stderr
    user.types("python", program, ADVISE_NUMBA="store")
    assert "scaled" in user.observed()


CHOOSES = """\
from advisor import select

def slow(image, b: int):
    out = image
    for _ in range(b - 1):
        out = out + image
    return out

def quick(image, b: int):
    return b * image

box = select(slow, quick, machine="t3e")
print(box(np.ones((300, 300)), 9).sum(), box.counts)
"""


def test_select_chooses_in_a_program_with_such_files(user: User) -> None:
    alone = user.types("python", writes(user, CHOOSES)).stdout.splitlines()[0]
    assert "quick" in alone
    names = (*THEIRS, "lark", "libcst", "observe")
    has(user, *names)
    after = user.types("python", writes(user, CHOOSES, names)).stdout.splitlines()
    assert after[0] == alone
    assert after[1] == " ".join(names)
    before = writes(user, "").replace("program", "later")
    (user.folder / before).write_text(
        "import numpy as np\n" + CHOOSES + "import transforms\nprint(transforms.MINE)\n"
    )
    assert user.types("python", before).stdout.splitlines() == [alone, "transforms"]


KERNEL = """\
import json

import numpy as np
import transforms
{imports}

assert transforms.MINE == "transforms" and json.MINE == "json"


# advise: kernel N=300, b=9
# advise: image: f8[N, N]
def smooth(image, b: int):
    import costdb

    result = np.zeros((300, 300))
    for _ in range(b):
        result = result + image
    assert costdb.MINE == "costdb"
    return result
"""
EXCHANGE = (
    HEAD
    + "import transforms\n{imports}\n\n"
    + LOOP.replace(
        "    return a\n",
        "    import costdb\n\n"
        "    assert transforms.MINE == 'transforms' and costdb.MINE == 'costdb'\n    return a\n",
    )
)


@pytest.mark.parametrize(
    ("text", "own_advisor"), [(KERNEL, True), (EXCHANGE, False)], ids=["kernel", "ranks"]
)
def test_what_is_verified_runs_beside_such_files(user: User, text: str, own_advisor: bool) -> None:
    has(user, *ROOMS, *OTHERS, "zipfile", *(("advisor",) if own_advisor else ()))
    imports = "import advisor; advisor.MINE" if own_advisor else "from advisor import kernel"
    (user.folder / "kernels.py").write_text(text.format(imports=imports))
    done = user.types("advise", "verify", "kernels.py", "--repeat", "1", "--output-format", "json")
    (found,) = json.loads(done.stdout)["kernels" if text is KERNEL else "programs"]
    ran = found["variants" if text is KERNEL else "rewrites"]
    assert ran
    assert [(one["failure"], one["equal"]) for one in ran] == [("", True)] * len(ran)


def test_a_lint_run_looks_at_no_file_of_the_path_that_has_a_name_of_ours(user: User) -> None:
    program = writes(user, MARKED)
    plain = user.types("advise", program)
    has(user, *THEIRS, "advisor")
    assert user.types("advise", program).stdout == plain.stdout
    found = user.types("advise", program, PYTHONPATH=str(user.folder))
    assert (found.stdout, found.stderr) == (plain.stdout, plain.stderr)
