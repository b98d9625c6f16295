"""``advise run``: real programs, real numba and real MPI, and what the next ``advise`` knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.observed import SeenArray, SeenNumber
from tests.advisor.observe.conftest import User

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_compiled_kernel_of_the_examples(user: User) -> None:
    file = str(EXAMPLES / "numba_layout.py")
    assert "Nothing was analysed" in user.advises(file).stdout
    done = user.advises("run", file)
    assert done.stdout == "5759997600000.0 True\n"
    assert "ADV501" in done.stderr
    after = user.advises(file, "--select", "ADV501", code=1)
    assert "observed: columns=400, rows=6000" in flat(after.stdout)
    assert "2 observations removed" in user.advises("clean", "--observed").stderr
    assert "0 observations removed" in user.advises("clean", "--observed").stderr
    assert "Nothing was analysed" in user.advises(file).stdout


def test_sizes_and_ranks_of_a_run_make_a_finding_of_what_had_no_size(user: User) -> None:
    text = (EXAMPLES / "observed_smoothing.py").read_text()
    file = user.write("smoothing.py", text)
    before = flat(user.advises(file, "--select", "ADV201", code=1).stdout)
    assert "nothing binds N, P, b, so no time is predicted" in before
    assert "N is not bound" in user.advises("predict", file, code=2).stderr
    done = user.advises("run", file, "600", "5", ranks=2)
    assert done.stdout == "True\n"
    assert done.stderr.count("on 2 ranks") == 1
    after = flat(user.advises(file, code=1).stdout)
    assert "ADV201" in after
    assert "nothing binds" not in after
    assert "(observed: N=600, P=2, b=5 on 2 ranks" in after
    messages = user.observed("message")
    (exchanged,) = [m for name, m in messages.items() if name.endswith(":Sendrecv")]
    # 4 exchanges of one row on each of 2 ranks
    assert (exchanged.calls, exchanged.most_bytes, exchanged.dtype) == (8, 4800, "int64")
    assert (exchanged.shape, exchanged.ranks) == ((1, 600), 2)
    assert exchanged.text == text.splitlines()[exchanged.line - 1].strip()
    found = user.advises("predict", file).stdout
    assert "with N=600 b=5 P=2" in found
    assert "N = 600: observed on 2 ranks" in found
    given = user.advises("predict", file, "-D", "N=100").stdout
    assert "N = 600" not in given
    assert "b = 5: observed on 2 ranks" in given
    chosen = user.advises("choose", file, "--over", "N=10..12").stdout
    assert len([line for line in chosen.splitlines() if line.startswith(("10", "11", "12"))]) == 3


PLAIN = """\
import threading
import numpy as np
from helpers import scaled


class Field:
    def __init__(self, data):
        self.data = data

    def total(self, other):
        return (self.data * other).sum()


def columns(a, times=1):
    out = np.zeros(a.shape[1])
    for j in range(a.shape[1]):
        out[j] = times * a[:, j].sum()
    return out


def number(n):
    return n + 1


def each(a):
    yield from a


def once(a):
    return a[1:] + 1


def unseen(a):
    return a[1:] + 1


if __name__ == "__main__":
    x = np.ones((30, 40))
    for _ in range(3):
        columns(x[:, ::2], 2)
    threading.Thread(target=columns, args=(x[:, ::2], 2)).start()
    threading.Timer(0.3, columns, (x[:, ::2], 2)).start()
    print(Field(x).total(x), number(3), once(x).size, sum(each(x[0])), scaled(x).shape, end=" ")
    print((lambda b: b)(x).size)
"""


def test_functions_that_nobody_marked_are_seen(user: User) -> None:
    file = user.write("plain.py", PLAIN)
    user.write("helpers.py", "def scaled(b, *, by=2.0):\n    return by * b\n")
    assert "definition uses NumPy arrays; not analysed" in flat(user.advises(file, code=1).stdout)
    done = user.advises("run", file)
    assert done.stdout == "1200.0 4 1160 40.0 (30, 40) 1200\n"
    seen = user.observed("function").values()
    assert {one.function for one in seen if one.arrays} == {
        "columns", "Field.__init__", "Field.total", "once", "scaled",
    }  # fmt: skip
    sizes = {one.arrays[0].shape: one.calls for one in seen if one.function == "columns"}
    assert sizes == {(30, 20): 5}

    document = json.loads(user.advises(file, "--output-format", "json", code=1).stdout)
    assert document["coverage"]["analysed"] == ["__init__", "total", "columns", "once"]
    # a product of arrays that is stored to be summed
    assert [one["code"] for one in document["findings"]] == ["ADV504", "ADV505"]
    told = flat(user.advises(file, code=1).stdout)
    # what no run saw stays named, and what is in no function
    assert "plain.py: 1 definition uses NumPy arrays" in told
    assert "as no run that was observed called it with arrays" in told
    assert "advise run" not in told
    assert "<module>, no price: the call of `threading.Thread`" in told


TWO = """\
import numpy as np


def doubled(a):
    for i in range(a.shape[0]):
        a[i, :] = 2.0 * a[i, :]


def halved(b):
    for i in range(b.shape[0]):
        b[i, :] = 0.5 * b[i, :]


doubled(np.ones((300, 8)))
halved(np.ones((400, 8)))
"""
CALIBRATED = Path(__file__).parents[2] / "data" / "decisions" / "calibrated.json"


def test_fixes_of_what_a_run_saw_go_on_to_the_last(user: User) -> None:
    file = user.write("two.py", TWO)
    user.advises("run", file)
    fix = ("advise", file, "--fix", "--unsafe-fixes")
    done = user.types(*fix, ADVISE_MACHINE=str(CALIBRATED))
    assert "2 fixed" in done.stderr
    left = (user.folder / file).read_text()
    assert "a[:] = 2.0 * a" in left and "b[:] = 0.5 * b" in left and "for " not in left


ROWS = """\
import sys
import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
outside = np.load(sys.argv[3])


def give(size, width):
    field = np.zeros((size, width))
    if world.rank == 0:
        for i in range(size):
            world.Send(field[i], dest=1)
    elif world.rank == 1:
        for i in range(size):
            world.Recv(field[i], source=0)
    return field.sum()


def share():
    world.Bcast(outside, root=0)


give(int(sys.argv[1]), int(sys.argv[2]))
share()
"""


def test_messages_of_a_run_bind_sizes_and_ranks_of_a_program(user: User) -> None:
    import numpy as np

    np.save(user.folder / "outside.npy", np.zeros(700))
    file = user.write("rows.py", ROWS)
    before = flat(user.advises(file, code=1).stdout)
    assert "nothing binds argv1, argv2, so no time is predicted" in before
    unbound = user.advises("predict", file, "--kernel", "share", "-P", "2", code=2)
    assert "outside.size is not bound" in unbound.stderr

    done = user.advises("run", file, "300", "50", "outside.npy", ranks=2)
    assert "observed 0 functions and 3 places with messages" in done.stderr
    assert "rows.py:13:13: ADV603 [+] UNCERTAIN 4." in done.stderr

    after = user.advises(file, code=1).stdout
    assert "(observed: argv1=300, argv2=50 on 2 ranks" in flat(after)
    assert "of t3e)" in flat(after)
    # the answer is kept by what was seen, and what is given goes over it
    assert user.advises(file, code=1).stdout == after
    assert "argv1=7" in flat(user.advises(file, "-D", "argv1=7", code=1).stdout)
    assert "nothing binds" in user.advises(file, "--isolated", code=1).stdout
    explained = flat(user.advises("explain", f"{file}:13").stdout)
    assert "argv1 = 300" in explained
    foretold = user.advises("predict", file, "--kernel", "give").stdout
    assert "with P=2 argv1=300 argv2=50" in foretold
    assert "P = 2: observed on 2 ranks" in foretold
    given = user.advises("predict", file, "--kernel", "give", "-D", "argv1=20").stdout
    assert "argv1=20" in given
    assert "argv1 = " not in given
    assert "with P=2 outside.size=700" in user.advises("predict", file, "--kernel", "share").stdout

    # lines that moved are known by their text; a number that the source states is newer
    user.write(file, "# moved\n\n" + ROWS)
    assert "observed: argv1=300" in flat(user.advises(file, code=1).stdout)
    stated = ROWS.replace("give(int(sys.argv[1]), int(", "give(40, int(")
    user.write(file, stated)
    assert "=300" not in user.advises(file, code=1).stdout


CORNERS = """\
import sys
from mpi4py import MPI
import numpy as np

world = MPI.COMM_WORLD
half = world.Split(world.rank % 2)
cart = world.Dup().Create_cart([world.size], periods=[True])
before, after = cart.Shift(0, 1)
assert isinstance(cart, MPI.Cartcomm) and half.size == 1 and world == MPI.COMM_WORLD
column = np.arange(60.0).reshape(6, 10)[:, world.rank]
inbox = np.empty(6)
column = np.ascontiguousarray(column)
cart.Sendrecv([column, 6, MPI.DOUBLE], dest=after, recvbuf=inbox, source=before)
assert inbox.sum() == np.arange(60.0).reshape(6, 10)[:, before].sum()
request = world.isend({"any": "thing"}, dest=after)
assert world.recv(source=before) == {"any": "thing"}
request.wait()
total = np.zeros(1)
world.Allreduce(np.ones(1), total)
assert total[0] == 2
if "finalize" in sys.argv:
    MPI.Finalize()
if "fail" in sys.argv and world.rank == 1:
    raise ValueError("mine")
sys.exit(3 if "exit" in sys.argv else None)
"""


@pytest.mark.parametrize(("how", "code"), [("finalize exit", 3), ("fail", 1)])
def test_communicators_that_a_program_makes_are_followed_however_it_ends(
    user: User, how: str, code: int
) -> None:
    done = user.advises("run", user.write("corners.py", CORNERS), *how.split(), ranks=2, code=code)
    assert ("ValueError: mine" in done.stderr) == (how == "fail")
    assert "advisor/" not in done.stderr
    found = {name.split(":")[1]: message for name, message in user.observed("message").items()}
    assert set(found) == {"Sendrecv", "isend", "recv", "Allreduce"}
    assert {m.calls for m in found.values()} == {2}
    assert (found["Sendrecv"].most_bytes, found["isend"].dtype) == (48, "object")


KERNELS = """\
import sys
from numba import njit
import numpy as np
from advisor import kernel

@njit
@kernel
def inner(a):
    return a.sum()

@kernel
@njit
def outer(a):
    return inner(a) + 1

@kernel(N=3)
def plain(a, n: int = 4, *, b=2):
    "Said."
    return float(a.sum()) + n + b

assert plain.__advise__ == {"N": 3} and plain.__doc__ == "Said." and plain.__name__ == "plain"
print(outer(np.ones(5)), plain(np.ones((2, 3), order="F"), b=1), *sys.argv[1:], __name__)
"""


def test_marked_and_compiled_functions_work_as_before_and_are_seen(user: User) -> None:
    done = user.advises("run", user.write("kernels.py", KERNELS), "-D", "--machine", "x")
    assert done.stdout == "6.0 11.0 -D --machine x __main__\n"
    functions = user.observed("function")
    assert set(functions) == {"inner", "outer", "plain"}
    assert {name: f.source for name, f in functions.items()} == {
        "inner": "numba",
        "outer": "numba",
        "plain": "call",
    }
    assert functions["plain"].arrays == (SeenArray("a", "float64", 2, "F", (2, 3), (8, 16)),)
    assert functions["plain"].numbers == (SeenNumber("n", "int64", 4), SeenNumber("b", "int64", 1))


def test_a_module_is_run_too_and_nothing_is_kept_when_not_wanted(user: User) -> None:
    user.write("tool.py", "import sys\nprint(sys.argv[1:], __name__)\n")
    done = user.advises("run", "--no-store", "--output-format", "none", "--module", "tool", "a")
    assert done.stdout == "['a'] __main__\n"
    assert not (user.folder / "kept").exists()


def test_what_lists_can_be_given_is_not_safe(user: User) -> None:
    """A run does not show all calls; one that it shows has to allow the edit, too."""
    (user.folder / "lists.py").write_text(
        "import numpy as np\n\n\ndef positive(x):\n    n = 0\n    for v in x:\n"
        "        if v > 0:\n            n += 1\n    return n\n\n\n"
        "print(positive(np.linspace(-1, 1, 9000)))\n"
    )
    user.advises("run", "--output-format", "none", "lists.py")
    asked = ("lists.py", "--machine", "node2026", "--no-cache", "--fix")
    assert "0 fixed; 1 more with --unsafe-fixes" in user.advises(*asked, code=1).stderr
    with (user.folder / "lists.py").open("a") as file:
        file.write("print(positive([1.0, -2.0, 3.0]))\n")
    user.advises("run", "--output-format", "none", "lists.py")
    told = user.advises(*asked, "--unsafe-fixes", code=1)
    assert "0 fixed" in told.stderr and "--unsafe-fixes" not in told.stdout


SEVERAL = """\
import numpy as np


def total(a):
    s = 0
    for i in range(a.shape[0]):
        s += a[i]
    return s


def moved(to, of):
    for i in range(1, len(of)):
        to[i] = of[i - 1]


def added(a, b):
    out = np.zeros(len(a))
    for i in range(len(a)):
        out[i] = a[i] + b[i]
    return out


def powers(x):
    s = 0.0
    for i in range(10):
        s += x[i] ** i % 3
    return s


def main(count, how=None):
    x = np.arange(1.0 * count)
    total(x)
    with np.errstate(all="ignore"):
        total(x.astype("u1"))
    line = np.zeros(count + 1)
    moved(line[1:], line[:-1])
    added(x, x[::-1].copy())
    powers(x)


main(20_000)
"""


def test_what_several_kinds_of_calls_show_has_to_allow_an_edit(user: User) -> None:
    file = user.write("several.py", SEVERAL)
    user.advises("run", "--output-format", "none", file)
    asked = (file, "--machine", "node2026", "--no-cache")
    document = json.loads(user.advises(*asked, "--output-format", "json", code=1).stdout)
    fixes = {one["kernel"]: one["fix"] for one in document["findings"] if one["fix"]}
    assert fixes["added"]["applicability"] == "unsafe"
    # sums of uint8 and of float64 have no text in common
    assert fixes["total"]["applicability"] == "display"
    assert "`a` of uint8" in fixes["total"]["legality"]
    assert fixes["moved"]["applicability"] == "display"
    assert "`of`" in fixes["moved"]["legality"] and "memory" in fixes["moved"]["legality"]
    # one verdict on each, and none on what no array is given to
    coverage = document["coverage"]
    assert sorted(coverage["analysed"]) == ["added", "moved", "powers", "total"]
    assert not coverage["fine"]
    reasons = {part["text"]: part["reason"] for part in coverage["not_understood"]}
    assert reasons.pop("for i in range(10):").endswith("no rule rewrites it")
    assert "length" in reasons.pop("x = np.arange(1.0 * count)"), "of main, which has no verdict"
    assert not reasons
    user.advises(*asked, "--fix", "--unsafe-fixes", code=1)
    fixed = (user.folder / "several.py").read_text()
    assert fixed.count("for i in range") == 3 and "a + b" in fixed
