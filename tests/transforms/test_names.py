"""Names in remarks are not the program's; those in strings may be."""

from __future__ import annotations

import pytest

from advisor.frontend.spmd.reader import read_program
from transforms.kit.names import bound_in_lines

SOURCE = """from mpi4py import MPI
comm = MPI.COMM_WORLD
u = 1  # u
print(u, 'u # u', f"{'#'}{u}", v.u)
"""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a, (b, c) = d", {"a", "b", "c"}),
        ("a.b[i] += c", {"a"}),
        ("for a in b: pass", {"a"}),
        ("if (a := b): pass", {"a"}),
        ("with a as b: pass", {"b"}),
        ("import a.b, c as d", {"a", "c", "d"}),
        ("def a(b): pass", {"a", "b"}),
        ("global a", {"a"}),
        ("del a[b], c", {"a", "c"}),
        ("try: a\nexcept E as b: pass", {"b"}),
        ("match a:\n    case {'k': b, **c}: pass\n    case [*d]: pass", {"b", "c", "d"}),
        ("f(a == b, c=d)", set()),
    ],
)
def test_what_lines_bind(text: str, names: set[str]) -> None:
    program = read_program("f.py", f"{SOURCE}comm.Barrier()\n{text}\n")
    assert program is not None
    assert bound_in_lines(program, 6, 99) == names
