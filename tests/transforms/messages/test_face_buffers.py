"""ADV602 on buffers filled in every step and faces copied twice: findings, near misses, edits."""

from pathlib import Path

import pytest

from tests.transforms.spmd_running import program_text, proposals, rewritten, run_side_by_side
from transforms.messages.halo_faces import TRANSFORM

START = """
rank, size = comm.Get_rank(), comm.Get_size()
left = rank - 1 if rank > 0 else MPI.PROC_NULL
right = rank + 1 if rank < size - 1 else MPI.PROC_NULL
around, behind = (rank + 1) % size, (rank - 1) % size
n = 40
u = np.arange(n * 8.0).reshape(n, 8) + 1000 * rank
"""
FILLED = """
for step in range(3):
    rl = np.zeros(n)
    rr = np.zeros((n,), dtype=np.float64)
    comm.Sendrecv(u[:, 1].copy(), dest=left, recvbuf=rr, source=right)
    comm.Sendrecv(u[:, -2].copy(), dest=right, recvbuf=rl, source=left)
    u[:, 0] = rl
    u[:, -1] = rr
    u += 1
return u
"""
GUARDED = FILLED.replace(
    "    comm.Sendrecv(u[:, -2].copy()",
    "    if size > 1:\n        comm.Sendrecv(u[:, -2].copy()",
)
RING = """
ghosts = []
while len(ghosts) < 3:
    ghost = np.zeros_like(u[:, 0].copy())
    edge = np.zeros(n)
    comm.Sendrecv(u[:, 1].copy(), dest=around, recvbuf=edge, source=behind)
    u[:, 2] = edge
    ghosts.append(1)
return u
"""
TWICE = """
got, sent = np.empty(n), np.empty(n)
for step in range(3):
    comm.Sendrecv(np.array(u[:, 1].copy()), dest=around, recvbuf=got, source=behind)
    u[:, -1] = got
    sent[:] = u[:, -2].copy()
    comm.Sendrecv(sent, dest=around, recvbuf=got, source=behind)
    u[:, 0] += got
    face = u[:, 1].copy().flatten()
    comm.Sendrecv(face, dest=around, recvbuf=got, source=behind)
    u[:, 3] = got
return u
"""

SAID = {
    "filled": (FILLED, ["make `rl` and `rr` once, before the loop"]),
    "ring": (RING, ["make `edge` once, before the loop"]),
    "guarded_by_ranks": (GUARDED, ["make `rl` and `rr` once, before the loop"]),
    "copied_twice": (
        TWICE,
        ["copy `u[:, 1]` once, not twice"] * 2 + ["copy `u[:, -2]` once, not twice"],
    ),
    "of_ones": (
        FILLED.replace("np.zeros(n)", "np.ones(n)"),
        ["make `rl` and `rr` once, before the loop"],
    ),
    "size_bound_within": (
        FILLED.replace("    rl =", "    n = len(u)\n    rl ="),
        [],
    ),
    "size_of_each_step": (FILLED.replace("zeros(n)", "zeros(n + 0 * step)"), ["make `rr`"]),
    "annotated_within": (FILLED.replace("    rl =", "    n: int = 40\n    rl ="), []),
    "partner_of_each_step": (
        FILLED.replace("    rl =", "    left, right = right, left\n    rl ="),
        [],
    ),
    "partner_that_varies": (
        FILLED.replace("source=left", "source=left if step else MPI.PROC_NULL"),
        ["make `rr`"],
    ),
    "received_in_some_steps": (
        FILLED.replace(
            "    comm.Sendrecv(u[:, -2].copy(), dest=right, recvbuf=rl, source=left)",
            "    if step % 2:\n"
            "        comm.Sendrecv(u[:, -2].copy(), dest=right, recvbuf=rl, source=left)",
        ),
        ["make `rr`"],
    ),
    "received_in_part": (FILLED.replace("recvbuf=rl", "recvbuf=rl[:40]"), ["make `rr`"]),
    "received_twice": (FILLED.replace("recvbuf=rl", "recvbuf=rr").replace("= rl", "= rr"), []),
    "kept": (
        FILLED.replace("    u += 1", "    u += 1\n    kept.append(rl)").replace(
            "for step", "kept = []\nfor step"
        ),
        ["make `rr`"],
    ),
    "renamed": (FILLED.replace("    u += 1", "    u += 1\n    old = rl"), ["make `rr`"]),
    "returned": (FILLED.replace("return u", "return u, rl"), ["make `rr`"]),
    "added_to": (FILLED.replace("    u += 1", "    u += 1\n    rl += 1"), ["make `rr`"]),
    "taken_out_before": (
        FILLED.replace("    comm.Sendrecv(u[:, 1]", "    u[:, 3] = rl\n    comm.Sendrecv(u[:, 1]"),
        ["make `rr`"],
    ),
    "shorter_message": (FILLED.replace("u[:, -2].copy()", "u[1:, -2].copy()"), ["make `rr`"]),
    "undefined": (FILLED.replace("zeros", "empty"), []),
    "once": (FILLED.replace("for step in range(3):", "if n:"), []),
    "first_copy_has_a_name": (
        TWICE.replace("np.array(u[:, 1].copy())", "np.array(first)").replace(
            "    comm.Sendrecv(np.array", "    first = u[:, 1].copy()\n    comm.Sendrecv(np.array"
        ),
        ["copy `u[:, -2]` once, not twice", "copy `u[:, 1]` once, not twice"],
    ),
    "no_second_copy": (
        TWICE.split("    sent[:]")[0].replace("np.array(", "np.ascontiguousarray(") + "return u\n",
        [],
    ),
}  # fmt: skip


NOT_RUN = {"partner_that_varies"}
"""What sends more than is received."""


def told(body: str) -> tuple[str, list[str]]:
    source = program_text(START + body)
    compile(source, "program.py", "exec")
    ours = [p for p in proposals(source, TRANSFORM) if p.title.startswith(("make", "copy"))]
    assert all(str(p.legality.applicability) == "safe" for p in ours)
    return rewritten(source, ours), [p.title for p in ours]


@pytest.mark.parametrize("name", SAID)
def test_what_is_said_of_a_program(name: str) -> None:
    body, expected = SAID[name]
    _, titles = told(body)
    assert len(titles) == len(expected), titles
    for title, start in zip(sorted(titles), sorted(expected), strict=True):
        assert title.startswith(start) and (" and " in title) == (" and " in start)


def test_rewritten_programs_do_what_the_originals_do(tmp_path: Path) -> None:
    programs = {}
    for name, (body, _) in SAID.items():
        source = program_text(START + body)
        after, titles = told(body)
        if titles and name not in NOT_RUN:
            assert after != source
            programs[name] = (source, after, 0.0)
    assert len(programs) >= 10
    answers = run_side_by_side(tmp_path, programs, 2)
    assert answers == dict.fromkeys(programs, "same")
