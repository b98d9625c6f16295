"""Real numba: its facts reach the rules, and nothing that we do reaches its programs."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FunctionType

import numba
import numpy as np
import pytest

from advisor.cli.app import main
from advisor.compiler import advised_njit, record
from advisor.compiler.advice import advise_on, report, wish
from advisor.observed import Seen
from tests.advisor.compiler import compiled_kernels as kernels

FILE = kernels.__file__
FORTRAN = np.asfortranarray(np.arange(4000.0 * 320).reshape(4000, 320))
ROWS = np.ascontiguousarray(FORTRAN)
SMALL = np.asfortranarray(np.arange(12.0).reshape(4, 3))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    forget()
    yield
    forget()


def forget() -> None:
    record._facts.clear()
    record._told.clear()


def fresh_copy(function: FunctionType) -> FunctionType:
    """The same function as another object, which numba compiles anew."""
    made = FunctionType(function.__code__, function.__globals__, function.__name__)
    made.__defaults__ = function.__defaults__
    return made


def advised(function: FunctionType, **options: object):
    return advised_njit(**options)(fresh_copy(function))


def facts(name: str) -> list[Seen]:
    return [seen for file, seen in record.gathered() if file == FILE and seen.function == name]


def codes() -> set[tuple[str, str]]:
    advice = advise_on(record.gathered(), "t3e")
    assert not advice.problems
    return {(finding.kernel, finding.code) for finding in advice.findings}


def test_rows_of_a_fortran_array_are_advised_on_only_under_layout_f() -> None:
    by_rows = advised(kernels.scale)
    by_rows(ROWS, np.empty_like(ROWS))
    (seen,) = facts("scale")
    assert [(a.name, a.dtype, a.layout, a.shape) for a in seen.arrays] == [
        ("a", "float64", "C", ROWS.shape),
        ("out", "float64", "C", ROWS.shape),
    ]
    assert codes() == set()
    by_rows(FORTRAN, np.empty_like(FORTRAN))
    assert [seen.arrays[0].layout for seen in facts("scale")] == ["C", "F"]
    assert ("scale", "ADV501") in codes()


def test_parallel_loops_and_defaults_are_seen() -> None:
    advised(kernels.in_parallel, parallel=True)(ROWS, np.empty_like(ROWS))
    (seen,) = facts("in_parallel")
    lines = Path(FILE).read_text().splitlines()
    assert ("for i in prange" in lines[seen.loops[0].line - 1], seen.loops[0].schedule) == (
        True,
        "static",
    )
    assert any("(a + out)" in lines[loop.line - 1] for loop in seen.loops)


def test_results_are_those_of_numba_and_the_code_is_the_same() -> None:
    plain, ours = numba.njit(fresh_copy(kernels.prefix)), advised(kernels.prefix)
    for dtype in (np.int64, np.float32):
        values = np.arange(1, 50).astype(dtype)
        first, second = np.zeros_like(values), np.zeros_like(values)
        assert plain(values, first) == ours(values, second)
        assert np.array_equal(first, second)

    def shape(dispatcher) -> list[int]:
        return sorted(text.count("\n") for text in dispatcher.inspect_llvm().values())

    assert shape(plain) == shape(ours)


def test_generated_functions_and_those_without_source_are_passed_over() -> None:
    space: dict[str, FunctionType] = {}
    exec("def made(a):\n    return a.sum()\n", space)
    nameless = advised_njit(lambda a: a.sum())
    assert advised_njit(space["made"])(ROWS) == nameless(ROWS)
    assert all("made" not in seen.function for _, seen in record.gathered())
    assert codes() == set()
    # a file that is gone by the time of the report
    gone = compile("def lost(a, out):\n    out[0] = a[0]\n", "/nowhere/lost.py", "exec")
    exec(gone, space)
    advised_njit(space["lost"])(ROWS[0], ROWS[0].copy())
    advice = advise_on(record.gathered(), "t3e")
    assert any("lost.py" in problem for problem in advice.problems)


def test_closures_are_read_with_what_they_close_over_unknown() -> None:
    times = advised_njit(kernels.closure(2.0))
    times(FORTRAN, np.empty_like(FORTRAN))
    (seen,) = facts("closure.<locals>.times")
    assert seen.arrays[0].layout == "F"
    assert not advise_on(record.gathered(), "t3e").problems


def test_a_function_that_a_compiled_one_calls_has_types_and_no_sizes() -> None:
    inner = advised(kernels.scale)
    advised_njit(kernels.calls_another(inner))(FORTRAN, np.empty_like(FORTRAN))
    (seen,) = facts("scale")
    assert {(a.layout, a.shape) for a in seen.arrays} == {("F", None)}


@pytest.mark.parametrize("where", ["seen_in", "source_file"])
def test_an_error_of_ours_breaks_nothing_and_is_logged_once(
    where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(f"advisor.compiler.record.{where}", fail)
    one = advised(kernels.scale)
    with caplog.at_level(logging.WARNING, "advisor"):
        for array in (ROWS, FORTRAN):
            out = np.empty_like(array)
            one(array, out)
            assert np.array_equal(out, 2 * array)
    assert len(caplog.records) == 1
    assert "ours" in caplog.text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1", ("warnings", "")),
        ("0", None),
        ("", None),
        ("store", ("store", "")),
        ("json-lines=a.jsonl", ("json-lines", "a.jsonl")),
        ("store=a", None),
        ("perhaps", None),
    ],
)
def test_what_the_variable_may_say(text: str, found: tuple[str, str] | None) -> None:
    assert wish(text) == found


def ran(program: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    folder = program.parent
    places = {"ADVISE_DATA_DIR": str(folder / "data"), "NUMBA_CACHE_DIR": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, str(program), *arguments],
        cwd=folder,
        env={**os.environ, **places, "ADVISE_MACHINE": "t3e", **environment},
        capture_output=True,
        text=True,
        check=True,
    )


PROGRAM = """\
import numpy as np
from numba import njit

@njit(cache=True)
def scale(a, out):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = 2.0 * a[i, j]

a = np.asfortranarray(np.ones((2000, 300)))
out = np.empty_like(a)
scale(a, out)
print(out.sum(), scale.stats.cache_hits.total())
"""


def test_a_whole_program_is_switched_on_by_the_environment_also_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    warned, plain = ran(program, ADVISE_NUMBA="1"), ran(program)
    assert "program.py:6: AdviceWarning: ADV501 " in warned.stderr
    assert (plain.stderr, plain.stdout) == ("", "1200000.0 1\n")
    # from here on nothing is compiled
    cached = ran(program, ADVISE_NUMBA="json-lines=found.jsonl")
    assert cached.stdout == plain.stdout
    lines = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    (found,) = [line for line in lines if line["code"] == "ADV501"]
    assert (found["path"], found["location"]["row"]) == ("program.py", 6)
    origins = {a["origin"] for a in found["assumptions"]}
    assert origins == {"observed"}
    ran(program, ADVISE_NUMBA="store")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path / "data"))
    assert main(["program.py", "--machine", "t3e"]) in (0, 1)
    assert "observed: a.axis0=2000, a.axis1=300" in " ".join(capsys.readouterr().out.split())


def test_signatures_given_at_once_are_each_seen() -> None:
    made = advised_njit(["void(f8[:,::1], f8[:,::1])", "void(f8[::1,:], f8[::1,:])"])(
        fresh_copy(kernels.scale)
    )
    assert [[a.layout for a in seen.arrays] for seen in facts("scale")] == [["C"] * 2, ["F"] * 2]
    assert {(a.shape, seen.weight) for seen in facts("scale") for a in seen.arrays} == {(None, 0)}
    out = np.empty_like(SMALL)
    made(SMALL, out)
    assert np.array_equal(out, 2 * SMALL)
    assert len(made.signatures) == 2


def test_threads_that_compile_signatures_of_one_function() -> None:
    made = advised_njit(fresh_copy(kernels.scale))
    few = np.ascontiguousarray(SMALL)
    arrays = [few, SMALL, few.astype(np.float32), SMALL.astype(np.float32)]
    results = [np.empty_like(array) for array in arrays]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(made, arrays, results))
    for array, out in zip(arrays, results, strict=True):
        assert np.array_equal(out, 2 * array)
    seen = {(one.arrays[0].dtype, one.arrays[0].layout): one.arrays[0] for one in facts("scale")}
    assert set(seen) == {(kind, order) for kind in ("float32", "float64") for order in "CF"}
    assert {one.shape for one in seen.values()} == {SMALL.shape}


# --- the whole program --------------------------------------------------------------------

KINDS = """\
import numpy as np
from numba import cfunc, jit, njit, prange, types, vectorize
from numba.core.errors import TypingError
from numba.experimental import jitclass
from numba.extending import overload

a = np.asfortranarray(np.arange(12.0).reshape(4, 3))

@vectorize(["f8(f8)"])
def twice(x):
    return 2 * x

@cfunc("f8(f8)")
def plus_one(x):
    return x + 1

@jit(forceobj=True)
def lifted(a):
    found = {"total": 0.0}
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i, 0]
    found["total"] = total
    return found

@njit
def count(n):
    for i in range(n):
        yield i

@jitclass([("total", types.float64)])
class Sum:
    def __init__(self):
        self.total = 0.0
    def add(self, a):
        for i in range(a.shape[0]):
            self.total += a[i, 0]

def ours(a):
    raise NotImplementedError

@overload(ours)
def compiled_ours(a):
    return lambda a: a.sum()

@njit
def overloaded(a):
    return ours(a)

@njit(inline="always")
def first(a):
    return a[0, 0]

@njit(nogil=True, fastmath=True, error_model="numpy")
def inlining(a, *rest):
    return first(a) + len(rest)

@njit
def wrong(a):
    return a.nothing_like_it()

def make(factor):
    return njit(lambda a: factor * a.sum())

@njit(parallel=True)
def in_parallel(a, out):
    for i in prange(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = 2.0 * a[i, j]

print(twice(a).sum(), plus_one.ctypes(1.0))
print(lifted(a)["total"], list(count(3)), overloaded(a), inlining(a, 1, 2))
adder = Sum()
adder.add(a)
print(adder.total, make(2.0)(a), make(3.0)(a))
out = np.empty_like(a)
in_parallel(a, out)
print(out.sum())
try:
    wrong(a)
except TypingError as error:
    print("nothing_like_it" in str(error), "advise" in str(error))
"""


def test_every_kind_of_compiled_function_gives_what_it_gives_without_us(tmp_path: Path) -> None:
    program = tmp_path / "kinds.py"
    program.write_text(KINDS)
    done = ran(program, ADVISE_NUMBA="json-lines=found.jsonl")
    assert done.stdout.splitlines() == [
        "132.0 2.0",
        "18.0 [0, 1, 2] 66.0 2.0",
        "18.0 132.0 198.0",
        "132.0",
        "True False",
    ]
    assert "advise" not in done.stderr  # nothing of ours failed on the way
    lines = (tmp_path / "found.jsonl").read_text().splitlines()
    assert all(json.loads(line)["path"] == "kinds.py" for line in lines)


# --- errors of ours -----------------------------------------------------------------------


def fail(*_: object, **__: object) -> None:
    raise RuntimeError("ours")


@pytest.mark.parametrize("half", [False, True])
def test_a_pass_that_cannot_be_added_leaves_the_compiler_as_it_was(
    half: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from advisor.compiler import pipeline

    plainly = pipeline._add_to

    def add_to(one: object) -> None:
        if half:
            plainly(one)
        fail()

    monkeypatch.setattr(pipeline, "_add_to", add_to)
    out = np.empty_like(SMALL)
    with caplog.at_level(logging.WARNING, "advisor"):
        advised_njit(fresh_copy(kernels.scale))(SMALL, out)
    assert np.array_equal(out, 2 * SMALL)
    assert facts("scale") == []
    assert [one.levelname for one in caplog.records] == ["WARNING"]


def test_a_function_from_the_cache_is_seen_and_an_error_of_ours_there_breaks_nothing(
    tmp_path: Path,
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "import numpy as np\n"
        "from advisor.compiler import advised_njit, pipeline, record\n\n"
        "@advised_njit(cache=True)\n"
        "def scale(a, out):\n"
        "    for i in range(a.shape[0]):\n"
        "        for j in range(a.shape[1]):\n"
        "            out[i, j] = 2.0 * a[i, j]\n\n"
        "def fail(*_):\n"
        "    raise RuntimeError('ours')\n\n"
        "if 'fail' in sys.argv:\n"
        "    pipeline.note_cached = fail\n"
        "a = np.asfortranarray(np.ones((20, 30)))\n"
        "out = np.empty_like(a)\n"
        "scale(a, out)\n"
        "shapes = [array.shape for _, seen in record.gathered() for array in seen.arrays]\n"
        "print(out.sum(), scale.stats.cache_hits.total(), shapes)\n"
    )

    seen = "[(20, 30), (20, 30)]"
    for hits in (0, 1):
        assert ran(program, ADVISE_NUMBA="0").stdout == f"1200.0 {hits} {seen}\n"
    failed = ran(program, "fail", ADVISE_NUMBA="0")
    assert failed.stdout == "1200.0 1 []\n"
    assert failed.stderr.count("ours") == 1


@pytest.mark.parametrize("form", ["warnings", "json-lines", "store"])
def test_a_report_that_fails_is_one_line_of_the_log(
    form: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("ADVISE_MACHINE", "t3e")
    (tmp_path / "data").write_text("no folder")
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path / "data"))
    file = str(tmp_path / "nowhere" / "found.jsonl") if form == "json-lines" else ""
    if form == "warnings":
        monkeypatch.setattr("advisor.engine.check_source", fail)
    advised_njit("void(f8[::1,:], f8[::1,:])")(fresh_copy(kernels.scale))
    with caplog.at_level(logging.WARNING, "advisor"):
        report(form, file)
    assert len(caplog.records) == 1
    assert "which goes on" in caplog.text


def test_warnings_that_a_program_turns_into_errors_do_not_end_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ADVISE_MACHINE", "t3e")
    large = np.asfortranarray(np.ones((2000, 300)))
    advised_njit(fresh_copy(kernels.scale))(large, np.empty_like(large))
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, "advisor"):
        warnings.simplefilter("error")
        report("warnings")
    assert "AdviceWarning" in caplog.text
