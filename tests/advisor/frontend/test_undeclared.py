"""What is told of a parameter without annotation can be pasted, and then it is understood."""

from __future__ import annotations

import re

import pytest

from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.ir.statements import Loop, Statement, Unknown

HEAD = (
    "from typing import Annotated\nimport numpy as np\nfrom numpy.typing import NDArray\n"
    "from advisor import Block, Dist, Mesh, kernel\n\n"
)
MARKS = {"@kernel": True, "# advise: kernel": False, "@kernel(N=100)": True}


def unknowns(body: tuple[Statement, ...]) -> list[str]:
    found = []
    for statement in body:
        if isinstance(statement, Unknown):
            found.append(statement.reason)
        elif isinstance(statement, Loop):
            found += unknowns(statement.body)
    return found


def only(source: str) -> Kernel:
    (found,) = read_kernels("f.py", source)
    return found


@pytest.mark.parametrize("parameter", ["w", "w: np.ndarray", "w: NDArray[np.float64]"])
@pytest.mark.parametrize("mark", MARKS)
def test_an_array_is_understood_once_that_is_written(mark: str, parameter: str) -> None:
    source = (
        f"{HEAD}{mark}\ndef f({parameter}):\n    u = w.copy()\n    u[1:] = w[:-1]\n    return u\n"
    )
    told = unknowns(only(source).body)[0]
    lacks = "`w` has no annotation" if parameter == "w" else "the annotation of `w` states no"
    assert told.startswith(lacks)
    found = re.search(r"write `(.*?)`", told)
    assert found is not None
    if MARKS[mark]:
        pasted = source.replace(f"f({parameter})", f"f({found[1]})")
    else:
        pasted = source.replace("def f", f"{found[1]}\ndef f")
    assert unknowns(only(pasted).body) == []


def test_a_number_is_understood_once_that_is_written() -> None:
    loop = "    for k in range(1, 2 * b):\n        w += 1\n"
    source = f"{HEAD}# advise: kernel N=100\n# advise: w: f8[N]\ndef f(w, b):\n{loop}"
    (told,) = unknowns(only(source).body)
    assert told.startswith("`b` has no annotation: ") and "`b: int`" in told
    assert unknowns(only(source.replace("(w, b)", "(w, b: int)")).body) == []
