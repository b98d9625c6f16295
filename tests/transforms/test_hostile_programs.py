"""Programs that change, keep or share what an edit would move something past.

An inverse is made of a matrix, something runs, and the inverse is multiplied: equations may be
solved instead where nothing changed the matrix in between. Each program is run while it is looked
at, and whatever edit is offered is put in by itself: the program then gives the same. What changes
nothing does not stand in the edit's way.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from advisor.source import apply_edits
from tests.transforms.test_plain_functions import fixes, precision_of, same
from tests.transforms.test_seen_names import executed, given, looked_at

HEAD = """\
import collections
import copy
import functools
import math
import time

import numpy as np
import scipy.linalg

RNG = np.random.default_rng(5)
SEEN = []


def bump(v):
    v += 1.0
    return 0


class Thing:
    def __init__(self, x=None):
        self.x = x
        self.step = bump

    def hold(self, v):
        self.x = v

    def take(self):
        self.x += 1.0

    def sum(self, v):
        v += 1.0
"""
RUN = """
def run():
    rng = np.random.default_rng(3)
    A = rng.random((30, 30)) + 30 * np.eye(30)
    return told(A, rng.random(30), Thing(), [1]), A
"""
TEXT = Path(__file__).with_name("hostile_programs.txt").read_text()
CHANGED, UNCHANGED = (
    [one for one in part.strip("=\n").split("\n====\n") if not one.startswith("####")]
    for part in TEXT.split("#### nothing changes the matrix")
)


def source_of(program: str) -> str:
    defined, _, body = program.rpartition("\n--\n")
    body = body.replace("INVERSE", "t = np.linalg.inv(A)") + "\ny = t @ b\nreturn y\n"
    told = f"def told(A, b, obj, fs):\n{textwrap.indent(body, '    ')}"
    return f"{HEAD}\n\n{defined}\n\n\n{told}\n{RUN}"


@pytest.mark.parametrize("program", CHANGED + UNCHANGED)
def test_edits_give_what_the_program_gave(program: str, tmp_path: Path) -> None:
    source = source_of(program)
    plain = given(executed(source, tmp_path / "plain.py"))
    _, seen = looked_at(source, tmp_path)
    told = tuple(one for one in seen if one.function == "told")
    assert told
    offered = list(fixes(source, *told))
    for code, fix in offered:
        edited = apply_edits(source, fix.edits)
        after = given(executed(edited, tmp_path / "edited.py"))
        assert same(plain, after, precision_of(fix) or 1e-13), f"{code}: {fix.legality}\n{edited}"
    if program in UNCHANGED:
        assert [code for code, _ in offered] == ["ADV505"]
