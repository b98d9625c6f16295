"""Rules about messages over small programs: findings, near misses, and edits that run.

The cases of a rule are a document in ``cases/messages``. A line ``=== name: verdict`` begins one,
the lines of its program follow: between those of the last ``=== start`` and ``=== end``. The
verdict is the applicability of each finding in order, ``display`` for one that nobody can apply, or
``quiet``; ``within`` tells by how much results may differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from advisor.engine import Options, check_source
from advisor.ir.spmd.program import ProgramTransform
from tests.transforms.case_files import CASES as DOCUMENTS
from tests.transforms.case_files import sections
from tests.transforms.spmd_running import program_text, proposals, rewritten, run_side_by_side
from transforms.messages import (
    fused_reductions,
    halo_faces,
    hand_written,
    message_loops,
    needless_barriers,
    partition_axis,
    pickled_array,
    wrong_collective,
)

MODULES = (
    pickled_array,
    halo_faces,
    message_loops,
    wrong_collective,
    hand_written,
    fused_reductions,
    needless_barriers,
    partition_axis,
)
RULES = {module.TRANSFORM.code: module.TRANSFORM for module in MODULES}
ON_THREE_RANKS = ("ADV604", "ADV607", "ADV608")
ON_ONE_RANK = (
    "ADV608",
    *(f"ADV603_{name}" for name in ("one_", "what_", "a_b", "memory", "numbers")),
    *(f"ADV604_{name}" for name in ("sum_by", "sum_of_parts", "sum_for", "sum_of_all", "joined")),
    *(
        f"ADV604_{name}"
        for name in ("rows_for", "gathered_and", "reduced_and", "mean_of", "norm_of")
    ),
)


@dataclass(frozen=True)
class Case:
    """A program, and what a rule says of it."""

    name: str
    rule: ProgramTransform
    source: str
    verdict: tuple[str, ...]
    tolerance: float

    @property
    def is_rewritten(self) -> bool:
        return self.verdict[0] in ("safe", "unsafe")


def cases() -> Iterator[Case]:
    for code, rule in RULES.items():
        around = {"start": "", "end": ""}
        for head, lines in sections(DOCUMENTS / "messages" / f"{code}.txt"):
            if head in around:
                around[head] = lines.strip("\n") + "\n"
                continue
            name, _, told = head.partition(": ")
            verdict, _, tolerance = told.partition(" within ")
            source = program_text("{start}\n{0}\n{end}".format(lines.strip("\n"), **around))
            compile(source, "program.py", "exec")
            words = () if verdict == "quiet" else tuple(verdict.split())
            yield Case(f"{code}_{name}", rule, source, words or ("",), float(tolerance or 0))


CASES = {case.name: case for case in cases()}
REWRITTEN = {name: case for name, case in CASES.items() if case.is_rewritten}


@pytest.mark.parametrize("name", CASES)
def test_what_is_said(name: str) -> None:
    case = CASES[name]
    found = proposals(case.source, case.rule)
    said = [str(one.legality.applicability) for one in found] or [""]
    assert said == list(case.verdict), [one.title for one in found]
    assert all(bool(one.edits()) is case.is_rewritten for one in found)
    if "display" in case.verdict and case.rule.code != "ADV606":
        # what nobody can apply says in a sentence why
        assert all(
            "be written" in one.legality.argument or "no edit" in one.legality.argument
            for one in found
        )


def until_quiet(name: str) -> str:
    """Return a program after all edits.

    What one pickle brings to light another edit changes, and what is reduced to a root which sends
    it on, once it need not be gathered.
    """
    case = CASES[name]
    source = case.source
    for _ in range({"ADV601": 3, "ADV604": 2}.get(case.rule.code, 1)):
        source = rewritten(source, proposals(source, case.rule))
    assert proposals(source, case.rule) == [] and source != case.source
    assert source.count("#") == case.source.count("#")
    return source


def test_rewritten_programs_give_equal_results(tmp_path: Path) -> None:
    every = {
        name: (case.source, until_quiet(name), case.tolerance) for name, case in REWRITTEN.items()
    }
    for ranks, codes in ((1, ON_ONE_RANK), (2, tuple(RULES)), (3, (*ON_THREE_RANKS, "ADV603"))):
        programs = {name: made for name, made in every.items() if name.startswith(codes)}
        assert run_side_by_side(tmp_path, programs, ranks) == dict.fromkeys(programs, "same")


ONCE = """
rank, size = comm.Get_rank(), comm.Get_size()
x = np.cos(np.arange({n}) * 0.1 * (rank + 1))
total = comm.allreduce(x, op=MPI.SUM)
return total
"""


def test_of_what_happens_once_only_what_saves_time_counts() -> None:
    def told(n: int, body: str = ONCE) -> int:
        options = Options("node2026", {"P": 2}, ("ADV601",), (), None, everything=True)
        source = program_text(body.format(n=n)) + "\n\nmain(MPI.COMM_WORLD)\n"
        return len(check_source("program.py", source, options).findings)

    repeated = ONCE.replace("total", "for step in range(3):\n    total", 1)
    assert (told(4), told(4, repeated)) == (0, 1)
    assert told(100_000) == 1


@pytest.mark.parametrize(
    ("case", "method"), [("pieces_to_the_root", "Gatherv"), ("objects_to_the_root", "gather")]
)
def test_objects_go_by_the_lower_case_call(case: str, method: str) -> None:
    name = f"ADV607_{case}"
    (found,) = proposals(CASES[name].source, CASES[name].rule)
    assert f"`{method}`" in found.title


def test_fewer_messages_are_told_without_a_price_where_ranks_are_enough() -> None:
    def told(case: str, ranks: dict[str, int | float]) -> list[str]:
        options = Options("node2026", ranks, ("ADV607",), (), None, everything=True)
        found = check_source("program.py", CASES[f"ADV607_{case}"].source, options).findings
        return [one.message.partition(":")[0] for one in found]

    assert told("what_a_root_merges", {}) == ["pays for P >= 8"]
    assert told("what_a_root_merges", {"P": 4}) == told("pickled_broadcast", {"P": 2}) == []
