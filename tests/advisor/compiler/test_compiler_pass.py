"""Real numba: its facts reach the rules, and nothing that we do reaches its programs."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import FunctionType

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

from advisor.compiler import AdvisedCompiler, advised_njit, record
from advisor.compiler.advice import advise_on
from advisor.compiler.pipeline import ObserveFacts
from advisor.compiler.report import Wish, wish
from advisor.observed import Seen
from tests.advisor.compiler import compiled_kernels as kernels

FILE = kernels.__file__
FORTRAN = np.asfortranarray(np.arange(4000.0 * 320).reshape(4000, 320))
ROWS = np.ascontiguousarray(FORTRAN)


@pytest.fixture(autouse=True)
def fresh() -> None:
    record.forget()


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


def test_a_signature_without_a_call_has_types_and_no_sizes() -> None:
    advised_njit("void(f8[::1,:], f8[::1,:])")(fresh_copy(kernels.scale))
    (seen,) = facts("scale")
    assert {(a.layout, a.shape) for a in seen.arrays} == {("F", None)}
    assert seen.weight == 0


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


def test_what_cannot_be_typed_fails_as_it_does_without_us() -> None:
    with pytest.raises(TypingError) as theirs:
        numba.njit(fresh_copy(kernels.no_types))(ROWS)
    with pytest.raises(TypingError) as ours:
        advised(kernels.no_types)(ROWS)
    assert str(ours.value) == str(theirs.value)
    assert facts("no_types") == []


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


def test_threads_that_compile_at_once() -> None:
    made = [advised(kernels.scale) for _ in range(4)]
    results = [np.empty_like(FORTRAN) for _ in made]
    threads = [
        threading.Thread(target=one, args=(FORTRAN, out))
        for one, out in zip(made, results, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(out, 2 * FORTRAN) for out in results)
    (seen,) = facts("scale")
    assert seen.arrays[0].shape == FORTRAN.shape


@pytest.mark.parametrize("where", ["seen_in", "source_file"])
def test_an_error_of_ours_breaks_nothing_and_is_logged_once(
    where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(f"advisor.compiler.record.{where}", fail)
    one = advised(kernels.scale)
    with caplog.at_level(logging.WARNING, "advisor"):
        for array in (ROWS, FORTRAN):
            out = np.empty_like(array)
            one(array, out)
            assert np.array_equal(out, 2 * array)
    assert len(caplog.records) == 1
    assert "ours" in caplog.text


def test_the_pass_declares_that_it_changes_nothing() -> None:
    from numba.core.compiler_machinery import _pass_registry

    found = _pass_registry.get(ObserveFacts)
    assert (found.analysis_only, found.mutates_CFG) == (True, False)
    assert advised(kernels.scale)._compiler.pipeline_class is AdvisedCompiler


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1", Wish("warnings")),
        ("0", None),
        ("", None),
        ("store", Wish("store")),
        ("json-lines=a.jsonl", Wish("json-lines", "a.jsonl")),
        ("store=a", None),
        ("perhaps", None),
    ],
)
def test_what_the_variable_may_say(text: str, found: Wish | None) -> None:
    assert wish(text) == found


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
    tmp_path: Path,
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    places = {
        "ADVISE_DATA_DIR": str(tmp_path / "data"),
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "ADVISE_MACHINE": "t3e",
    }

    def run(wanted: str | None) -> subprocess.CompletedProcess[str]:
        named = {} if wanted is None else {"ADVISE_NUMBA": wanted}
        return subprocess.run(
            [sys.executable, str(program)],
            cwd=tmp_path,
            env={**os.environ, **places, **named},
            capture_output=True,
            text=True,
            check=True,
        )

    warned, plain = run("1"), run(None)
    assert "program.py:6: AdviceWarning: ADV501 " in warned.stderr
    assert (plain.stderr, plain.stdout) == ("", "1200000.0 1\n")
    # from here on nothing is compiled
    cached = run("json-lines=found.jsonl")
    assert cached.stdout == plain.stdout
    lines = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    (found,) = [line for line in lines if line["code"] == "ADV501"]
    assert (found["path"], found["location"]["row"]) == ("program.py", 6)
    origins = {a["origin"] for a in found["assumptions"]}
    assert origins == {"observed"}
    run("store")
    advised = subprocess.run(
        [sys.executable, "-m", "advisor", "program.py"],
        cwd=tmp_path,
        env={**os.environ, **places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "observed: a.axis0=2000, a.axis1=300" in " ".join(advised.stdout.split())


def test_the_package_of_annotations_stays_light() -> None:
    program = (
        "import sys, advisor, advisor.compiler; print(len({'numba', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n"
