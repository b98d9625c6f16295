"""All kinds of compiled functions with the pass in numba's compiler, and errors of ours in it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from advisor.compiler import advised_njit, record
from advisor.compiler.report import Wish, report
from advisor.observed import Seen
from tests.advisor.compiler import compiled_kernels as kernels

SMALL = np.asfortranarray(np.arange(12.0).reshape(4, 3))
ROWS = np.ascontiguousarray(SMALL)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    record.forget()
    yield
    record.forget()


def fresh_copy(function):
    """The same function as another object, which numba compiles anew."""
    return type(function)(function.__code__, function.__globals__, function.__name__)


def facts(name: str) -> list[Seen]:
    return [seen for _, seen in record.gathered() if seen.function == name]


def test_signatures_given_at_once_are_each_seen() -> None:
    made = advised_njit(["void(f8[:,::1], f8[:,::1])", "void(f8[::1,:], f8[::1,:])"])(
        fresh_copy(kernels.scale)
    )
    assert [[a.layout for a in seen.arrays] for seen in facts("scale")] == [["C"] * 2, ["F"] * 2]
    out = np.empty_like(SMALL)
    made(SMALL, out)
    assert np.array_equal(out, 2 * SMALL)
    assert len(made.signatures) == 2


def test_threads_that_compile_signatures_of_one_function() -> None:
    made = advised_njit(fresh_copy(kernels.scale))
    arrays = [ROWS, SMALL, ROWS.astype(np.float32), SMALL.astype(np.float32)]
    results = [np.empty_like(array) for array in arrays]
    threads = [
        threading.Thread(target=made, args=pair) for pair in zip(arrays, results, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for array, out in zip(arrays, results, strict=True):
        assert np.array_equal(out, 2 * array)
    seen = {(one.arrays[0].dtype, one.arrays[0].layout): one.arrays[0] for one in facts("scale")}
    assert set(seen) == {(kind, order) for kind in ("float32", "float64") for order in "CF"}
    assert {one.shape for one in seen.values()} == {SMALL.shape}


# --- the whole program --------------------------------------------------------------------

KINDS = """\
import numpy as np
from numba import cfunc, guvectorize, jit, njit, prange, stencil, types, vectorize
from numba.core.errors import TypingError
from numba.experimental import jitclass
from numba.extending import overload

a = np.asfortranarray(np.arange(12.0).reshape(4, 3))

@vectorize(["f8(f8)"])
def twice(x):
    return 2 * x

@guvectorize(["void(f8[:], f8[:])"], "(n)->(n)")
def running(row, out):
    total = 0.0
    for i in range(row.shape[0]):
        total += row[i]
        out[i] = total

@stencil
def mean(row):
    return 0.5 * (row[-1] + row[1])

@njit
def smooth(row):
    return mean(row)

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

@njit
def factorial(n):
    if n < 2:
        return 1
    return n * factorial(n - 1)

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

print(twice(a).sum(), running(a)[:, -1].sum(), smooth(a[:, 0]).sum(), plus_one.ctypes(1.0))
print(lifted(a)["total"], list(count(3)), factorial(5), overloaded(a), inlining(a, 1, 2))
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
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={
            **os.environ,
            "ADVISE_NUMBA": "json-lines=found.jsonl",
            "ADVISE_MACHINE": "t3e",
            "ADVISE_DATA_DIR": str(tmp_path / "data"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "132.0 66.0 9.0 2.0",
        "18.0 [0, 1, 2] 120 66.0 2.0",
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

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(program), *arguments],
            env={
                **os.environ,
                "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
                "ADVISE_NUMBA": "0",
            },
            capture_output=True,
            text=True,
            check=True,
        )

    seen = "[(20, 30), (20, 30)]"
    assert run().stdout == f"1200.0 0 {seen}\n"
    assert run().stdout == f"1200.0 1 {seen}\n"
    failed = run("fail")
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
        report(Wish(form, file))
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
        report(Wish("warnings"))
    assert "AdviceWarning" in caplog.text
