"""Loops over elements in the midst of what an MPI program sends: read by themselves."""

from pathlib import Path

import pytest

from advisor.engine import FileResult, Options, check_source
from advisor.finding import Applicability
from advisor.frontend.prefilter import NO_RULE
from advisor.source import apply_edits
from tests.transforms.spmd_running import HEADER, run_side_by_side

STEPS = """\
def main(comm):
    rank, size = comm.Get_rank(), comm.Get_size()
    n = 4000 // size
    u = np.sin(np.arange(n + 2) * 0.1 * (rank + 1))
    un = u.copy()
    total = 0.0
    for it in range(3):
        u[0] = comm.sendrecv(u[-2], dest=(rank + 1) % size, source=(rank - 1) % size)
        for i in range(1, n + 1):
            un[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1])
        u[1:n + 1] = un[1:n + 1]
        for i in range(n):
            total += u[i] * u[i]
    return u, comm.allreduce(total, op=MPI.SUM)
"""
FIELD = """\
class Field:
    def __init__(self, comm, n):
        self.comm, self.n = comm, n
        self.u = np.arange(n * n, dtype=float).reshape(n, n) * (comm.Get_rank() + 1)
        self.new = np.zeros_like(self.u)

    def step(self):
        self.u[0] = self.comm.allreduce(self.u[-1], op=MPI.SUM)
        for i in range(1, self.n - 1):
            for j in range(1, self.n - 1):
                self.new[i, j] = (self.u[i - 1, j] + self.u[i + 1, j]) * 0.5
        self.u, self.new = self.new, self.u


def main(comm):
    field = Field(comm, 40)
    for it in range(3):
        field.step()
    return field.u
"""
PAIRS = """\
def pull(block, mass, pos):
    acc = np.zeros_like(pos)
    for i in range(len(pos)):
        d = block - pos[i]
        acc[i] = np.sum(mass[:, None] * d / (np.sum(d ** 2, axis=1) + 0.1)[:, None], axis=0)
    return acc


def main(comm):
    rank, size = comm.Get_rank(), comm.Get_size()
    pos = np.random.default_rng(rank).random((300, 3))
    acc, travel = 0, (pos.copy(), np.ones(300))
    for _ in range(size):
        acc = acc + pull(travel[0], travel[1], pos)
        travel = comm.sendrecv(travel, dest=(rank + 1) % size, source=(rank - 1) % size)
    counts = np.zeros(10, dtype=int)
    values = np.random.default_rng(rank).random((30000, 2))
    for row in values:
        counts[int(row[0] * 10)] += 1
    return acc, comm.allreduce(counts, op=MPI.SUM)
"""
WHOLE = "\n\nif __name__ == '__main__':\n    main(MPI.COMM_WORLD)\n"


def checked(text: str, *codes: str) -> FileResult:
    options = Options("node2026", {"P": 2}, codes, (), None)
    return check_source("program.py", f"{HEADER}{text}{WHOLE}", options)


@pytest.mark.parametrize("text", [STEPS, FIELD])
def test_rewritten_programs_give_the_same(text: str, tmp_path: Path) -> None:
    before = after = f"{HEADER}{text}{WHOLE}"
    loops = before.count("for ")
    found = checked(text, "ADV401").findings
    while found:
        assert found[0].fix is not None
        assert found[0].fix.applicability is Applicability.UNSAFE
        assert found[0].share is not None and 0 < found[0].share < 1
        after = apply_edits(after, dict.fromkeys(found[0].fix.edits))
        options = Options("node2026", {"P": 2}, ("ADV401",), (), None)
        found = check_source("program.py", after, options).findings
    assert after.count("for ") == loops - 2
    for ranks in (1, 2, 3):
        assert run_side_by_side(tmp_path, {"loops": (before, after, 1e-12)}, ranks) == {
            "loops": "same"
        }


@pytest.mark.parametrize(
    "change",
    [
        # a store that a later iteration reads
        ("un = u.copy()", "un = u"),
        # sent from within
        ("            un[i] = u", "            comm.send(i, dest=rank)\n            un[i] = u"),
        # somebody reads where the loop ended
        ("un[1:n + 1]\n", "un[1:n + 1] + i\n"),
    ],
)
def test_what_is_left_alone(change: tuple[str, str]) -> None:
    line = STEPS.splitlines().index("        for i in range(1, n + 1):") + 5
    assert any(one.span.start_line == line for one in checked(STEPS, "ADV401").findings)
    text = STEPS.replace(*change)
    assert text != STEPS
    found = [one for one in checked(text, "ADV401").findings if one.span.start_line == line]
    fixes = [one.fix for one in found if one.fix is not None]
    assert all(fix.applicability is Applicability.DISPLAY for fix in fixes)


def test_the_text_around_a_loop_tells_of_its_names(tmp_path: Path) -> None:
    before = after = f"{HEADER}{PAIRS}{WHOLE}"
    for code, words in {"ADV504": "pos @ block.T", "ADV503": "(values[:, 0] * 10)"}.items():
        options = Options("node2026", {"P": 2}, (code,), (), None)
        (found,) = check_source("program.py", after, options).findings
        assert found.fix is not None
        after = apply_edits(after, found.fix.edits)
        assert words in after
    assert run_side_by_side(tmp_path, {"pairs": (before, after, 1e-9)}, 2) == {"pairs": "same"}


def test_no_calm_about_a_slow_loop_that_no_rule_takes() -> None:
    slow = "un[i] = float(str(un[i - 1])) + u"
    text = STEPS.replace("un[i] = u", slow).replace("4000", "4000000")
    (gap,) = [one for one in checked(text).coverage.not_understood if one.reason.endswith(NO_RULE)]
    assert gap.text == "for i in range(1, n + 1):"
    assert not checked(text.replace("4000000", "40")).coverage.not_understood


FORCES = """

def main(comm):
    rank, size = comm.Get_rank(), comm.Get_size()
    n = 360
    field = pulls(n, rank * n // size, (rank + 1) * n // size, 5)
    return float(comm.allreduce(field.sum(), op=MPI.SUM))


def pulls(n, lo, hi, seed):
    rng = np.random.default_rng(seed)
    m = 150
    px, py = rng.uniform(0, n, m), rng.uniform(0, n, m)
    mass = rng.uniform(-1, 2, m)
    field = np.zeros((hi - lo, n))
    for i in range(hi - lo):
        for k in range(m):
            x = np.arange(n)
            field[i] += mass[k] / (1.0 + (x - px[k]) ** 2 + (i + lo - py[k]) ** 2)
    return field
"""


def test_sizes_that_are_one_number_on_some_rank_are_two(tmp_path: Path) -> None:
    """On the last rank the last row of its own is that of all."""
    before = f"{HEADER}{FORCES}{WHOLE}"
    (found,) = checked(FORCES, "ADV504").findings
    assert found.fix is not None and found.fix.applicability is Applicability.UNSAFE
    after = apply_edits(before, found.fix.edits)
    assert "hi - lo" in found.fix.edits[0].replacement
    for ranks in (1, 2, 3):
        programs = {"pulls": (before, after, 1e-9)}
        assert run_side_by_side(tmp_path, programs, ranks) == {"pulls": "same"}


OWN_ROWS = """\
def main(comm):
    rank, size = comm.Get_rank(), comm.Get_size()
    n = 240
    rows = n // size
    new, old = np.zeros((rows, n)), np.sqrt(np.arange(rows * n) + rank).reshape(rows, n)

    def place(i):
        return rank * rows + i

    for step in range(3):
        old[0] = comm.sendrecv(old[-1], dest=(rank + 1) % size, source=(rank - 1) % size)
        for i in range(rows):
            if place(i) > 0 and place(i) < n - 1:
                for j in range(1, n - 1):
                    new[i, j] = old[i, j + 1] - old[i, j - 1]
        old, new = new, old
    return old, new
"""


def test_functions_that_a_loop_calls_are_read_with_the_names_around_it(tmp_path: Path) -> None:
    before = f"{HEADER}{OWN_ROWS}{WHOLE}"
    (found,) = checked(OWN_ROWS, "ADV401").findings
    assert found.fix is not None and found.fix.applicability is Applicability.UNSAFE
    after = apply_edits(before, found.fix.edits)
    assert after.count("for ") == before.count("for ") - 2
    for ranks in (1, 2, 3):
        programs = {"rows": (before, after, 1e-12)}
        assert run_side_by_side(tmp_path, programs, ranks) == {"rows": "same"}


@pytest.mark.parametrize(
    "change",
    [
        # the function has a name of its own that the loop has as well
        ("    def place(i):", "    first = rank\n\n    def place(i):\n        rank = first % 2"),
        ("        return rank", "        nonlocal rank\n        rank += 0\n        return rank"),
    ],
)
def test_functions_with_other_names_are_not_read_as_what_they_do(
    change: tuple[str, str], tmp_path: Path
) -> None:
    text = OWN_ROWS.replace(*change)
    assert text != OWN_ROWS
    before = f"{HEADER}{text}{WHOLE}"
    for found in checked(text, "ADV401").findings:
        if found.fix is not None and found.fix.edits:
            after = apply_edits(before, found.fix.edits)
            programs = {"rows": (before, after, 1e-12)}
            assert run_side_by_side(tmp_path, programs, 2) == {"rows": "same"}


PICTURE = """\
comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()


def counted(image):
    counts, total = np.zeros(256, int), np.zeros(256, int)
    for i in range(rank, len(image), size):
        for j in range(len(image[0])):
            counts[image[i][j]] += 1
    comm.Reduce(counts, total, root=0)
    return total


counted(np.ones((4000, 300), dtype=np.uint8))
"""


def test_how_ranks_share_counts_is_no_question_where_each_has_its_own() -> None:
    options = Options("node2026", {"P": 2}, (), (), None)
    result = check_source("program.py", f"{HEADER}{PICTURE}", options)
    assert {one.code for one in result.findings if one.kernel == "counted"} == {"ADV401"}


RECEIVED = """\
def rate(y, n, h):
    out = np.empty(n)
    out[0] = y[0]
    for i in range(1, n - 1):
        out[i] = (y[i + 1] - 2 * y[i] + y[i - 1]) / h
    out[n - 1] = y[n - 1]
    return out


def main(comm):
    n, counts = np.array(0), None
    if comm.Get_rank() == 0:
        counts = np.arange(comm.Get_size()) + 50
    comm.Scatter([counts, 1, MPI.LONG], [n, 1, MPI.LONG], root=0)
    return rate(np.sin(np.arange(n) * 1.0), n, 0.1)
"""


def test_a_whole_number_that_is_received_is_one(tmp_path: Path) -> None:
    (found,) = checked(RECEIVED, "ADV401").findings
    assert found.fix is not None and found.fix.edits
    before = f"{HEADER}{RECEIVED}{WHOLE}"
    after = apply_edits(before, found.fix.edits)
    assert "out[1:n - 1] = " in after
    for ranks in (1, 2):
        assert run_side_by_side(tmp_path, {"rate": (before, after, 1e-12)}, ranks) == {
            "rate": "same"
        }


READ = """\
n = 20000
a, b, t = np.zeros(n), np.ones(n), 0.5


def first(x, y=n):
    return x + y + t


{between}
for i in range(n):
    a[i] = first(b[i]) * 2
{end}

total = MPI.COMM_WORLD.allreduce(a.sum())


def main(comm):
    return a, total
"""
ONE_STATEMENT, NONE, BY_HAND = "replace the loop", "", "write the loop"


@pytest.mark.parametrize(
    ("between", "end", "title"),
    [
        ("", "", ONE_STATEMENT),
        # a default is what it was where the function was defined
        ("n = 15000", "", BY_HAND),
        # the next iteration's call reads it
        ("", "    t = a[i]", NONE),
    ],
)
def test_what_functions_read_is_theirs(between: str, end: str, title: str, tmp_path: Path) -> None:
    before = f"{HEADER}{READ.format(between=between, end=end)}"
    options = Options("node2026", {"P": 2}, ("ADV401",), (), None)
    found = check_source("program.py", before, options).findings
    titles = [one.title for one in found]
    assert all(one.startswith(title) for one in titles) and bool(titles) == bool(title), titles
    edits = [one.fix.edits for one in found if one.fix is not None and one.fix.edits]
    assert bool(edits) == (title == ONE_STATEMENT)
    for one in edits:
        programs = {"read": (before, apply_edits(before, one), 1e-12)}
        assert run_side_by_side(tmp_path, programs, 2) == {"read": "same"}
