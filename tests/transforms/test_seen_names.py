"""Edits that rest on what a run showed of local names, attributes and names from around.

Each program is run while it is looked at, read with what was seen, and every edit that is offered
is put in by itself. The edited program then gives the same as the original: in the calls of the
run, whose kinds an edit must hold for, results and what is left in arguments, attributes and
module-level arrays.
"""

from __future__ import annotations

import linecache
import sys
import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from advisor.finding import Applicability
from advisor.frontend.kernels import read_kernels
from advisor.observe.calls import Calls
from advisor.observed import Seen
from advisor.source import apply_edits
from tests.transforms.case_files import CASES, sections
from tests.transforms.test_plain_functions import fixes, precision_of, same

HEAD = "import numpy as np\n\nRNG = np.random.default_rng(5)\n\n\n"
PARTS = [(*head.split(": "), text) for head, text in sections(CASES / "seen.txt")]
PROGRAMS = {title: text for title, _, text in PARTS}
VERDICTS = {title: verdict for title, verdict, _ in PARTS}
"""Edits are `offered`, `not offered`, or `harmless` if there are any."""


def executed(source: str, path: Path) -> dict[str, Any]:
    path.write_text(source)
    linecache.checkcache(str(path))
    space: dict[str, Any] = {"__name__": "program"}
    exec(compile(source, str(path), "exec"), space)
    return space


def looked_at(source: str, folder: Path) -> tuple[Any, tuple[Seen, ...]]:
    """Return what a program gives, and what was seen of it."""
    space, calls = executed(source, folder / "seen.py"), Calls(str(folder.resolve()))
    # of one process that imported no MPI: of ranks, other things are looked at
    held = sys.modules.pop("mpi4py.MPI", None)
    try:
        with calls.watching():
            result = space["run"]()
    finally:
        if held is not None:
            sys.modules["mpi4py.MPI"] = held
    return result, tuple(seen for _, seen in calls.gathered())


def given(space: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return deepcopy(space["run"]())


@pytest.mark.parametrize("title", PROGRAMS)
def test_edits_leave_what_programs_do(title: str, tmp_path: Path) -> None:
    source = HEAD + PROGRAMS[title]
    plain = given(executed(source, tmp_path / "plain.py"))
    result, seen = looked_at(source, tmp_path)
    assert same(plain, result, None), "looking changes nothing"
    told = tuple(one for one in seen if one.function.endswith("told"))
    assert told
    offered = [
        (code, fix)
        for code, fix in fixes(source, *told)
        if fix.applicability is not Applicability.DISPLAY
    ]
    for code, fix in offered:
        edited = apply_edits(source, fix.edits)
        after = given(executed(edited, tmp_path / "edited.py"))
        assert same(plain, after, precision_of(fix)), f"{code}: {fix.legality}\n{edited}"
    if VERDICTS[title] == "offered":
        assert offered
        assert all(fix.applicability is Applicability.UNSAFE for _, fix in offered)
    if VERDICTS[title] == "not offered":
        assert not offered, [(code, fix.legality) for code, fix in offered]


def test_windows_of_one_place_have_as_many_rows_as_columns_where_others_have(
    tmp_path: Path,
) -> None:
    source = """\
import numpy as np


def blurred(x, w):
    k = w.shape[0]
    out = np.empty((x.shape[0] - k + 1, x.shape[1] - k + 1))
    for i in range(x.shape[0] - k + 1):
        for j in range(x.shape[1] - k + 1):
            out[i, j] = np.sum(x[i:i + k, j:j + k] * w)
    return out


def run():
    blurred(np.ones((30, 40)), np.ones((5, 5)))
    blurred(np.ones((30, 40)), np.ones((1, {})))
"""
    for columns, alike in ((1, True), (4, False)):
        text = source.format(columns)
        _, seen = looked_at(text, tmp_path)
        kernel, *_ = read_kernels("seen.py", text, seen)
        (other,) = kernel.kinds()
        assert (other.extents("w")[0] == other.extents("w")[1]) == alike
