"""Programs as practitioners write them, each with one choice that loses, or with none.

The first lines of a file say which rule must find something (``says``, with part of the message),
or find it and leave the edit to the reader (``shown``), which must not (``quiet``), and what of a
note that explains silence (``unknown``). Programs with ``run`` are executed on ranks with smaller
sizes, as they are and with every edit applied, and must leave the same values in the names that
``holds`` lists.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from advisor.engine import Options, check_source
from advisor.source import Edit, apply_edits
from tests.ranks import on_ranks

FILES = sorted((Path(__file__).parent / "data" / "judged").glob("*.py"))

DRIVER = """\
import runpy
import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
for argument in sys.argv[1:]:
    stem, _, names = argument.partition("=")
    kept = []
    for which in ("before", "after"):
        np.random.seed(comm.Get_rank())
        left = runpy.run_path(f"{stem}_{which}.py")
        kept.append([left[name] for name in names.split(",")])
        comm.Barrier()
    alike = all(np.allclose(a, b, rtol=1e-12, atol=0) for a, b in zip(*kept, strict=True))
    if not comm.allreduce(alike, op=MPI.LAND):
        sys.exit(f"{stem} differs")
"""


def stated(source: str, what: str) -> list[str]:
    return re.findall(rf"^# {what}: (.+)$", source, re.MULTILINE)


def smaller(source: str) -> str:
    """Return a program with the sizes with which it is run."""
    for setting in " ".join(stated(source, "run")).split():
        name, _, value = setting.partition("=")
        source, count = re.subn(rf"^{name} = \d+$", f"{name} = {value}", source, flags=re.MULTILINE)
        assert count == 1, name
    return source


def options(machine: str) -> Options:
    return Options(machine, {"P": 4}, (), (), 1.0, details=False, everything=True)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_has_to_be_said_is_said(path: Path) -> None:
    source = path.read_text("utf-8")
    says, quiet, unknown = (stated(source, what) for what in ("says", "quiet", "unknown"))
    shown = stated(source, "shown")
    assert says or shown or quiet or unknown
    result = check_source(path.name, source, options("t3e"))
    messages = {(finding.code, finding.message) for finding in result.findings}
    for wanted in (*says, *shown):
        code, _, part = wanted.partition(" ")
        assert any(one == code and part in message for one, message in messages), messages
    if shown:
        assert not any(one.fix is not None and one.fix.edits for one in result.findings)
    assert not {finding.code for finding in result.findings} & set(" ".join(quiet).split())
    for part in unknown:
        assert any(part in remark.message for remark in result.remarks), result.remarks


def test_edits_leave_the_same_values(tmp_path: Path) -> None:
    arguments = []
    for path in FILES:
        source = path.read_text("utf-8")
        if not stated(source, "run"):
            continue
        before = smaller(source)
        edits: dict[Edit, None] = {}
        for finding in check_source(path.name, source, options("t3e")).findings:
            edits.update(dict.fromkeys(finding.fix.edits if finding.fix is not None else ()))
        after = smaller(apply_edits(source, edits))
        assert (before != after) == bool(stated(source, "says")), path.stem
        (tmp_path / f"{path.stem}_before.py").write_text(before)
        (tmp_path / f"{path.stem}_after.py").write_text(after)
        (holds,) = stated(source, "holds")
        arguments.append(f"{path.stem}={holds}")
    (tmp_path / "driver.py").write_text(DRIVER)
    for ranks in (2, 4):
        on_ranks(ranks, "driver.py", *arguments, folder=tmp_path)
