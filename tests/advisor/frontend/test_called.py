"""What a file's own calls tell of its functions: how often, with which numbers and attributes."""

from __future__ import annotations

import sys
from collections import Counter
from textwrap import dedent
from types import FrameType

import pytest

from advisor.engine import Options, check_source, seen_functions
from advisor.finding import Applicability, Verdict
from advisor.frontend.kernels import read_kernels
from advisor.frontend.spmd.called import called
from advisor.ir.kernel import SOME
from advisor.ir.statements import Loop, Opaque, Unknown, walk
from advisor.observed import Seen
from costdb.expr import evaluate

PROGRAM = """\
import argparse
import numpy as np


class Grid:
    def __init__(self, n, width):
        self.n = n
        self.width = width
        self.x = np.linspace(0.0, width, n)

    def total(self):
        s = 0.0
        for i in range(self.n):
            s += self.x[i]
        return s


def inner(a, k):
    return a.sum() * k


def middle(a):
    return sum(inner(a, k) for k in range(3)) + inner(a, 9)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=7)
    args = parser.parse_args([])
    grid = Grid(40, 2.0)
    found = []
    for step in range(args.steps):
        for half in (0, 1):
            found.append(middle(grid.x))
        found.append(grid.total())
    return found


main()
"""


def seen(source: str) -> dict[str, Seen]:
    return {one.function: one for one in called("a.py", source)}


def counted(source: str, names: list[str]) -> Counter[str]:
    """Run a program; return how often functions of it are called."""
    calls = Counter[str]()

    def counting(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename == "<counted>" and code.co_qualname in names:
            calls[code.co_qualname] += 1

    sys.setprofile(counting)
    try:
        exec(compile(source, "<counted>", "exec"), {"__name__": "__main__"})
    finally:
        sys.setprofile(None)
    return calls


def test_calls_are_counted_as_they_are_in_a_run() -> None:
    names = ["inner", "middle", "Grid.total", "main"]
    told = seen(PROGRAM)
    calls = counted(PROGRAM, names)
    assert calls == {"inner": 56, "middle": 14, "Grid.total": 7, "main": 1}
    assert {name: told[name].calls for name in names} == calls


@pytest.mark.parametrize(
    "asked",
    [
        *("step % 3 == 0", "step % 3 == 2", "step > 4", "step == args.steps - 1", "step < 0"),
        *("step % 2 == 0:\n            if step % 3 == 0", "step % 3 and step % 2"),
        "step % 3 == 1:\n            found.append(grid.total())\n        else",
    ],
)
def test_calls_under_conditions_on_an_index_are_counted(asked: str) -> None:
    """However many conditions stand in one another, and on either side of them."""
    inner = " " * (8 + 4 * asked.count("if "))
    call = "        found.append(grid.total())\n"
    source = PROGRAM.replace(call, f"        if {asked}:\n{inner}{call}")
    names = ["inner", "Grid.total", "main"]
    told, calls = seen(source), counted(source, names)
    assert {name: told[name].calls for name in names} == {n: max(calls[n], 1) for n in names}


@pytest.mark.parametrize(
    ("asked", "times"),
    [
        *(("step % 60 == 0", 50_000), ("step % 100 < 3", 90_000), ("step > 2_000_000", 999_999)),
        *(("step == 0", 1), ("step == args.steps - 1", 1), ("step < 0", 1)),
    ],
)
def test_of_a_long_loop_some_iterations_tell_how_often_a_condition_holds(
    asked: str, times: int
) -> None:
    call = "        found.append(grid.total())\n"
    source = PROGRAM.replace(call, f"        if {asked}:\n    {call}")
    source = source.replace("default=7", "default=3_000_000")
    assert seen(source)["Grid.total"].calls == pytest.approx(times, rel=0.1)


def test_calls_under_other_conditions_are_counted_as_if_they_held() -> None:
    call = "        found.append(grid.total())\n"
    source = PROGRAM.replace(call, f"        if found[-1] > 9e9:\n    {call}")
    assert seen(source)["Grid.total"].calls == 7


def test_of_loops_that_nothing_counts_some_are_taken() -> None:
    source = PROGRAM.replace(
        "for step in range(args.steps):", "while np.sum(found) < 1e3:"
    ).replace("range(args.steps)", "range(0)")
    assert seen(source)["middle"].calls == 2 * SOME


def test_options_and_attributes_have_the_numbers_and_shapes_that_they_get() -> None:
    told = seen(PROGRAM)
    numbers = {one.name: one.value for one in told["Grid.total"].numbers}
    arrays = {one.name: one.shape for one in told["Grid.total"].arrays}
    assert numbers["self.n"] == 40
    assert arrays["self.x"] == (40,)
    assert {one.name: one.value for one in told["main"].numbers} == {"args.steps": 7}


NUMBERS = """
    import numpy as np


    def taper(n, radius):
        rho = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                d = min(abs(i - j), n - abs(i - j)) / radius
                rho[i, j] = 1.0 - d
        return rho


    for k in range({times}):
        print(taper({n}, 8.0).sum())
"""


def saved(n: int, times: int) -> float | None:
    source = dedent(NUMBERS).format(n=n, times=times)
    result = check_source("a.py", source, Options("node2026", {}, (), (), None))
    found = [one.prediction for one in result.findings if one.kernel == "taper"]
    return None if not found or found[0] is None else found[0].before_s


def test_functions_of_numbers_have_times() -> None:
    few, many = saved(40, 100), saved(160, 100)
    assert few is not None
    assert many is not None
    assert 10 < many / few < 20


UNKNOWN = """
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD


    def rows(image):
        out = np.zeros(image.shape)
        for y in range(image.shape[0]):
            for x in range(image.shape[1]):
                out[y, x] = image[y, x] * 2.0
        return out


    def look_up(table, at):
        found = table[at]
        out = np.empty(found.shape)
        for y in range(found.shape[0]):
            for x in range(found.shape[1]):
                out[y, x] = found[y, x] + 1
        return out


    image = comm.recv(source=0)
    print(rows(image).sum(), look_up(np.arange(9.0), image).sum())
"""


@pytest.mark.parametrize("name", ["rows", "look_up"])
def test_what_comes_in_has_the_dimensions_that_the_text_needs(name: str) -> None:
    found = check_source("a.py", dedent(UNKNOWN), Options("node2026", {}, (), (), None)).findings
    assert [one.code for one in found if one.kernel == name] == ["ADV401"]


CHOSEN = """
    import numpy as np


    def greenwood(time, event):
        times = np.unique(time[event])
        var = np.zeros(len(times))
        for i in range(len(times)):
            acc = 0.0
            for k in range(i + 1):
                n = np.sum(time >= times[k])
                d = np.sum((time == times[k]) & event)
                if n > d:
                    acc += d * (n * (n - d))
            var[i] = acc
        return var
"""


@pytest.mark.parametrize("call", ["", "greenwood(np.arange(1001.0), np.arange(1001) % 2 == 0)"])
def test_loops_over_what_a_mask_chooses_have_a_price(call: str) -> None:
    source = f"{dedent(CHOSEN)}\n\n{call}\n"
    result = check_source("a.py", source, Options("node2026", {}, (), (), None))
    assert {one.kernel for one in result.findings} == {"greenwood"}


def test_items_of_tuples_are_numbers_of_their_own() -> None:
    source = dedent("""\
        import numpy as np

        def halved(img, shape, box):
            out = np.zeros(shape)
            for j in range(shape[0]):
                for i in range(shape[1]):
                    out[j, i] = img[j // box, i // box]
            return out

        def of_others(img, pair):
            return img + pair[0]

        img = np.ones((320, 240))
        halved(img, (640, 480), 2)
        halved(img, (640, 480), 2)
        of_others(img, (img, 1))
        """)
    found = seen(source)
    numbers = {one.name: one.value for one in found["halved"].numbers}
    assert numbers == {"shape[0]": 640, "shape[1]": 480, "box": 2}
    assert found["of_others"].others == (("pair", "sequence"),)
    report = check_source("f.py", source, Options("node2026", {}, (), (), 1.0))
    (one,) = report.findings
    assert (one.span.start_line, one.verdict) == (5, Verdict.GAIN)


def test_attributes_that_a_method_binds_have_the_shape_of_what_it_binds() -> None:
    source = dedent("""\
        import numpy as np

        class Mean:
            def fit(self, data):
                self.mean = np.zeros(data.shape[1])
                for i in range(data.shape[0]):
                    self.mean += data[i]

            def turned(self, data):
                self.mean = np.zeros(data.shape[0])
                for i in range(data.shape[1]):
                    self.mean += data[:, i]

        mean = Mean()
        mean.fit(np.ones((500, 64)))
        other = Mean()
        other.turned(np.ones((500, 64)))
        """)
    report = check_source("f.py", source, Options("node2026", {}, (), (), 1.0))
    told = {one.span.start_line: one.fix is not None for one in report.findings}
    assert told == {6: True, 11: True}


@pytest.mark.parametrize(
    ("made", "trips"),
    [
        ("np.linspace(0.0, 1.0, 50)", 50),
        ("np.sort(x)", 4000),
        ("2.0 * x[1:]", 3999),
        ("np.sqrt(y)[:, 0]", 4000),
        ("y.sum(axis=0)", 3),
    ],
)
def test_loops_over_what_is_computed_run_as_often_as_that_is_long(made: str, trips: int) -> None:
    body = dedent(f"""\
        def f(x, y):
            total = 0.0
            for v in {made}:
                total += v * v
            for k, v in enumerate({made}):
                total += k * v
            for v, w in zip({made}, x):
                total += w * v
            return total
        """)
    source = f"import numpy as np\n\n{body}\nf(np.ones(4000), np.ones((4000, 3)))\n"
    options = Options("node2026", {}, (), (), 1.0)
    (kernel,) = read_kernels("f.py", source, seen_functions("f.py", source, options))
    sizes = {name: one.value for name, one in kernel.sizes.items()}
    loops = [one for one in walk(kernel.body) if isinstance(one, Loop)]
    assert [int(evaluate(one.high, sizes)) for one in loops] == [trips] * 3
    assert not [one for one in walk(kernel.body) if isinstance(one, Opaque | Unknown)]


def test_what_a_mask_chooses_has_the_other_extents_of_its_array() -> None:
    source = dedent("""\
        from dataclasses import dataclass

        import numpy as np
        from mpi4py import MPI

        @dataclass
        class Points:
            at: np.ndarray
            weight: np.ndarray

        def total(points):
            found = 0.0
            for i in range(len(points.at)):
                found += np.sum(points.at[i] ** 2) * points.weight[i]
            return found

        comm = MPI.COMM_WORLD
        points = Points(np.ones((3000, 5)), np.ones(3000)) if comm.rank == 0 else None
        points = comm.bcast(points, root=0)
        kept = points.weight > 0.5
        total(points)
        total(Points(points.at[kept], points.weight[kept]))
        """)
    loop = next(one for one in called("f.py", source) if one.alone)
    arrays = {one.name: one for one in loop.arrays}
    assert arrays["points.at"].ndim == 2
    assert arrays["points.at"].like[1] == "5"
    report = check_source("f.py", source, Options("node2026", {}, (), (), 1.0))
    assert 13 in [one.span.start_line for one in report.findings]


@pytest.mark.parametrize(
    "rows", ["list(range(rank, n, size))", "[r for r in range(n) if r % size == rank]", "[3, 5, 8]"]
)
def test_lists_of_numbers_are_as_long_as_calls_say(rows: str) -> None:
    source = dedent(f"""\
        import numpy as np
        from mpi4py import MPI

        def rows_of(x, rows):
            made = np.zeros((len(rows), len(x)))
            for m, i in enumerate(rows):
                for j in range(len(x)):
                    made[m, j] = (x[i] - x[j]) ** 2
            return made

        rank, size = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
        n = 900
        rows = {rows}
        rows_of(np.ones(n), rows)
        """)
    (found,) = (one for one in called("f.py", source) if not one.alone)
    long = {one.name: one.value for one in found.numbers}["len(rows)"]
    assert long == (3 if rows == "[3, 5, 8]" else None)
    report = check_source("f.py", source, Options("node2026", {}, (), (), 1.0))
    assert 7 in [one.span.start_line for one in report.findings]


def test_what_is_a_list_in_an_attribute_is_not_indexed_as_an_array() -> None:
    source = dedent("""\
        import numpy as np

        class Grid:
            def __init__(self, n):
                lines = [(i, i + 1) for i in range(n - 1)] + [(0, n - 1)]
                for k in range(n):
                    if k % 7 == 3:
                        lines.append((k, k * 5 % n))
                self.lines = lines
                self.weight = np.ones(len(lines))

        def flows(grid, v):
            found = []
            for k, (a, b) in enumerate(grid.lines):
                found.append(grid.weight[k] * (v[a] - v[b]))
            return np.array(found)

        flows(Grid(900), np.ones(900))
        """)
    assert ("grid.lines", "sequence") in seen(source)["flows"].others
    report = check_source("f.py", source, Options("node2026", {}, (), (), 1.0))
    fixes = [one.fix for one in report.findings if one.fix is not None]
    assert all(one.applicability is Applicability.DISPLAY for one in fixes)


def test_what_a_caller_runs_is_told_once_where_it_stands() -> None:
    source = dedent(
        """
        import numpy as np

        def peaks(sig, level):
            count = 0
            for i in range(1, len(sig) - 1):
                if sig[i] > sig[i - 1] and sig[i] > sig[i + 1] and sig[i] > level:
                    count += 1
            return count

        def main(rows):
            grid = np.zeros(len(rows))
            for k in range(len(rows)):
                grid[k] = rows[k] * 2.0
            return peaks(grid, 0.5)

        main(np.random.default_rng(1).random(5000))
        """
    )
    found = check_source("f.py", source, Options("node2026", {}, (), (), None)).findings
    assert [one.kernel for one in found if one.span.start_line == 6] == ["peaks"]
    assert any(one.kernel == "main" for one in found)
