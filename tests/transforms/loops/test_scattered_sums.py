"""ADV503: sums by `bincount` give what `add.at` gave, to the bit where that is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from advisor.engine import Options, check_source
from advisor.source import apply_edits
from tests.transforms.checks import only_kernel
from transforms.loops.scattered_sums import TRANSFORM

MACHINE = Path(__file__).parents[2] / "data" / "decisions" / "calibrated.json"
ZEROS = "total = np.zeros(M)"
CASES = {
    "fresh zeros, unsigned places": ("u2", "f8", [ZEROS, "np.add.at(total, k, w)  # all"], "safe"),
    "signed places": ("i8", "f8", [ZEROS, "np.add.at(total, k, w)"], "unsafe"),
    "by element": (
        *("u2", "f8"),
        [ZEROS, "for i in range(len(k)):  # all", "    total[k[i]] += w[i]"],
        "safe",
    ),
    "narrow terms": ("u1", "f4", [ZEROS, "np.add.at(total, k, w)"], "safe"),
    "whole terms": ("u4", "i8", [ZEROS, "np.add.at(total, k, w)"], "safe"),
    "something is there": (
        "u2",
        "f8",
        [ZEROS, "total += 0.1", "np.add.at(total, k, w)"],
        "unsafe",
    ),
    "twice": ("u2", "f8", [ZEROS, "for _ in range(3):", "    np.add.at(total, k, w)"], "unsafe"),
    "counts": ("u2", "f8", [ZEROS, "for i in range(len(k)):", "    total[k[i]] += 1"], "unsafe"),
    "counts beside what is there": (
        *("i8", "f8"),
        ["total = np.full(M, 0.1)", "for i in range(len(k)):", "    total[k[i]] += 1"],
        "unsafe",
    ),
    "a narrow sum": (
        "u2",
        "f4",
        ["total = np.zeros(M, np.float32)", "np.add.at(total, k, w)"],
        "unsafe",
    ),
}
QUIET = {
    "counts": ("i8", "i8", ["total = np.zeros(M, np.int64)", "np.add.at(total, k, w)"]),
    "one number for all": ("i8", "f8", [ZEROS, "np.add.at(total, k, 1.5)"]),
    "its own terms": ("i8", "f8", [ZEROS, "np.add.at(w, k, w)"]),
    "elements that may not be there": (
        *("u2", "f8"),
        [ZEROS, "for i in range(1, N):", "    total[k[i]] += w[i]"],
    ),
    "something beside it": (
        *("i8", "f8"),
        [ZEROS, "for i in range(N):", "    total[k[i]] += w[i]", "    w[i] = 0.0"],
    ),
}


def program(places: str, terms: str, body: list[str]) -> str:
    lines = [
        "import numpy as np",
        "",
        "# advise: kernel N=100000 M=512",
        f"# advise: k: {places}[N] over (none) on mesh(p=1)",
        f"# advise: w: {terms}[N] over (none) on mesh(p=1)",
        "def kernel(k, w, N: int, M: int):",
        *(f"    {line}" for line in (*body, "return total")),
    ]
    return "\n".join(lines) + "\n"


def run(source: str, places: str, terms: str, size: int, extent: int) -> bytes:
    drawn = np.random.default_rng(size)
    k = drawn.integers(0, extent, size).astype(places)
    w = (drawn.normal(size=size) * 1e3).astype(terms)
    names: dict[str, object] = {}
    exec(compile(source, "program.py", "exec"), names)
    kernel = names["kernel"]
    assert callable(kernel)
    made: np.ndarray = kernel(k, w, size, extent)
    return made.tobytes()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_sums_are_equal_as_far_as_is_said(case: tuple[str, str, list[str], str]) -> None:
    places, terms, body, applicability = case
    source = program(places, terms, body)
    (found,) = TRANSFORM.propose(only_kernel(source))
    assert str(found.legality.applicability) == applicability
    fixed = apply_edits(source, found.edits())
    weights = ", weights=w" if "w[i]" in source or ", w)" in source else ""
    assert f"np.bincount(k{weights}, minlength=total.shape[0])" in fixed
    assert not list(TRANSFORM.propose(only_kernel(fixed)))
    assert fixed.count("#") == source.count("#")
    for size, extent in ((0, 1), (1, 1), (900, 7), (900, 200)):
        one, other = (run(text, places, terms, size, extent) for text in (source, fixed))
        kind = "f4" if "float32" in source else "f8"
        assert np.allclose(
            np.frombuffer(one, kind), np.frombuffer(other, kind), rtol=1e-4, atol=1e-2
        )
        assert applicability == "unsafe" or one == other


@pytest.mark.parametrize("case", QUIET.values(), ids=QUIET)
def test_quiet_where_it_is_something_else(case: tuple[str, str, list[str]]) -> None:
    assert not list(TRANSFORM.propose(only_kernel(program(*case))))


def test_arrays_that_ranks_share_out_are_left_to_the_rule_of_remote_ones() -> None:
    source = program("i8", "f8", ["np.add.at(total, k, w)"]).replace(
        "def kernel(", "# advise: total: f8[M] over (block(p)) on mesh(p=4)\ndef kernel(total, "
    )
    assert not list(TRANSFORM.propose(only_kernel(source.replace("mesh(p=1)", "mesh(p=4)"))))


@pytest.mark.parametrize(("terms", "pays"), [("f4", True), ("f8", False)])
def test_it_pays_where_terms_are_converted(terms: str, pays: bool) -> None:
    source = program("u2", terms, [ZEROS, "np.add.at(total, k, w)"])
    found = check_source("f.py", source, Options(str(MACHINE), {}, (), (), None))
    assert ("ADV503" in {finding.code for finding in found.findings}) is pays


def test_a_loop_that_is_compiled_is_no_interpreters() -> None:
    source = (
        "import numpy as np\nfrom numba import njit\n\n\n@njit\ndef counted(x, nb):\n"
        "    h = np.zeros(nb, dtype=np.int64)\n    for i in range(len(x)):\n"
        "        k = int(x[i] * nb)\n        h[k] += 1\n    return h\n\n\n"
        "counted(np.ones(3_000_000), 10)\n"
    )
    options = Options("node2026", {}, (), (), None)
    result = check_source("a.py", source, options)
    assert not result.findings
    assert not any("mostly steps" in one.reason for one in result.coverage.not_understood)
    (plain,) = check_source("a.py", source.replace("@njit\n", ""), options).findings
    assert plain.code == "ADV503"
