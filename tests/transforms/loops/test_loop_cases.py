"""Rules about loops and scans over small kernels: what they write, and what they leave alone.

The cases of a rule are a document in ``cases/loops``. A line ``=== arrays`` names arrays with their
dimensions and their type, ``=== name: verdict`` begins a case. What is ``written`` follows a line
``---``; of others nothing is proposed (``quiet``), or nothing but what nobody writes (``no edit``),
or what a loop without iterations would not do (``not for an empty loop``), or anything but what
the verdict names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from advisor.analysis.lower import lower
from advisor.finding import Applicability
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Transform
from tests.transforms.case_files import CASES as DOCUMENTS
from tests.transforms.case_files import sections
from tests.transforms.generated.loop_programs import Program, program, rewritten
from transforms.loops import loop_order, vectorise
from transforms.loops.array_statements import IF_NOT_EMPTY
from transforms.sweeps import scan_rows

RULES = {rule.code: rule for rule in (m.TRANSFORM for m in (vectorise, loop_order, scan_rows))}


@dataclass(frozen=True)
class Case:
    """A kernel, and what a rule makes of it."""

    name: str
    rule: Transform
    made: Program
    verdict: str
    expected: list[str]


def cases() -> Iterator[Case]:
    for code, rule in RULES.items():
        arrays, dtype = (), ""
        for head, text in sections(DOCUMENTS / "loops" / f"{code}.txt"):
            if head.startswith("arrays "):
                *named, _, dtype = head.split()[1:]
                arrays = tuple((one[:-2], int(one[-1])) for one in named)
                continue
            name, _, verdict = head.partition(": ")
            lines, _, expected = text.rstrip("\n").partition("\n---\n")
            made = program(lines.splitlines(), arrays, dtype)
            if verdict != "written":
                source = made.source.replace("N: int)", "N: int, K: int)")
                made = Program(source, made.arrays, made.dtype)
            yield Case(f"{code} {name}", rule, made, verdict, expected.splitlines())


CASES = {case.name: case for case in cases()}


@pytest.mark.parametrize("name", CASES)
def test_what_is_made_of_a_case(name: str) -> None:
    case = CASES[name]
    found = list(case.rule.propose(case.made.kernel))
    match case.verdict:
        case "written":
            first = next(one for one in found if one.edits())
            source = rewritten(case.made, first)
            body = source.partition("N: int):\n")[2].splitlines()
            assert [line.removeprefix("    ") for line in body] == case.expected
            (again,) = read_kernels("program.py", source)
            assert lower(again) == lower(first.variant)
        case "not for an empty loop":
            argued = [one.legality for one in found]
            assert argued and all(IF_NOT_EMPTY in one.argument for one in argued)
            assert {one.applicability for one in argued} == {Applicability.UNSAFE}
        case "quiet":
            assert [one.title for one in found if not one.title.startswith("compile the")] == []
        case "no edit":
            assert [one.title for one in found if one.edits()] == []
        case _:
            words = case.verdict.removeprefix("no ")
            assert [one.title for one in found if words in one.title] == []
