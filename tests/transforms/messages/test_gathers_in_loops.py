"""ADV604 on fields that are gathered in every step and used behind the loop."""

from pathlib import Path

import pytest

from advisor import engine
from advisor.engine import Options
from tests.transforms.spmd_running import program_text, proposals, rewritten, run_side_by_side
from transforms.messages.wrong_collective import TRANSFORM

START = """
rank, size = comm.Get_rank(), comm.Get_size()
n, seen, old = 30, [], None
u, v = np.arange(30.0) + 100 * rank, np.zeros(30)
full = np.zeros(30 * size)
"""
GATHERED = """
for step in range(4):
    u += step
    comm.Allgather(u, full)
    seen.append(step)  # what else there is
return full, seen
"""
AT_ROOT = """
for step in range(4):
    v[1:] = u[:-1]
    u += v
    comm.Gather(u, full, root=1)
if rank == 1:
    seen.append(full.sum())
    seen.append(full[3])
return seen
"""
PICKLED = """
for part in (1, 2):
    for step in range(4):
        u *= part
        parts = comm.gather(u[1:], root=0)
        v += part
    seen.append(parts)
return seen
"""
ENDED = """
for step in range(9):
    u += step
    comm.Allgather(u, full)
    if step == 5:
        break
return full
"""

SAID = {
    "gathered": (GATHERED, ["gather `full` once, behind the loop"]),
    "at_the_root": (AT_ROOT, ["gather `full` once, behind the loop"]),
    "pickled": (PICKLED, ["gather `parts` once, behind the loop"]),
    "ended": (ENDED, ["gather `full` once, behind the loop"]),
    "ended_before": (
        ENDED.replace("    comm.Allgather(u, full)\n", "") + "",
        [],
    ),
    "left_before": (
        GATHERED.replace("    comm.", "    if step == 2:\n        break\n    comm."),
        [],
    ),
    "some_skipped": (
        GATHERED.replace("    comm.", "    if step == 3:\n        continue\n    comm."),
        [],
    ),
    "some_only": (GATHERED.replace("    comm.", "    if step < 3:\n        comm."), []),
    "changed_behind": (GATHERED.replace("    seen", "    u += 1\n    seen"), []),
    "swapped_behind": (GATHERED.replace("    seen", "    u, v = v, u\n    seen"), []),
    "changed_by_a_view": (
        GATHERED.replace("    seen", "    w = u[2:]\n    w += 1\n    seen"),
        [],
    ),
    "looked_at": (GATHERED.replace("    seen", "    v += full[:30]\n    seen"), []),
    "looked_at_before": (GATHERED.replace("    u +=", "    v += full[:30]\n    u +="), []),
    "known_by_another_name": (GATHERED.replace("for step", "old = full\nfor step"), []),
    "not_used": (GATHERED.replace("return full, seen", "return seen"), []),
    "in_parts": (GATHERED.replace("(u, full)", "(u, full[:30 * size])"), []),
    "root_of_each_step": (
        AT_ROOT.replace("root=1", "root=(n + 1) % 2").replace(
            "root=(n + 1) % 2)\n", "root=(n + 1) % 2)\n    n += 1\n"
        ),
        [],
    ),
    "otherwise": (
        GATHERED.replace("return", "else:\n    seen.append(0)\nreturn"),
        ["gather `full` once, behind the loop"],
    ),
}


def told(body: str) -> tuple[str, list[str]]:
    source = program_text(START + body)
    compile(source, "program.py", "exec")
    ours = [p for p in proposals(source, TRANSFORM) if "behind the loop" in p.title]
    return rewritten(source, ours), [p.title for p in ours]


@pytest.mark.parametrize("name", SAID)
def test_what_is_said_of_a_program(name: str) -> None:
    body, expected = SAID[name]
    after, titles = told(body)
    assert titles == expected
    assert (after != program_text(START + body)) is (bool(titles) and name != "otherwise")


def test_rewritten_programs_do_what_the_originals_do(tmp_path: Path) -> None:
    programs = {}
    for name, (body, expected) in SAID.items():
        if expected:
            programs[name] = (program_text(START + body), told(body)[0], 0.0)
    answers = run_side_by_side(tmp_path, programs, 2)
    assert answers == dict.fromkeys(programs, "same")


def test_a_loop_of_gathers_costs_what_its_iterations_do() -> None:
    known = START.replace("np.arange(30.0) + 100 * rank", "np.ones(30)")
    source = program_text(known + GATHERED)
    findings = engine.check_source(
        "p.py", source, Options("t3e", {"P": 2}, (), (), 1.0, everything=True)
    ).findings
    (found,) = [one for one in findings if "behind the loop" in one.message]
    assert found.speedup == pytest.approx(4)
