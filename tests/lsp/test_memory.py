"""What the memory says after any edits is what the engine says of the text."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.engine import FileResult, Options, check_source
from advisor.finding import Finding
from advisor.lsp.layout import layout_of
from advisor.lsp.memory import KernelMemory
from advisor.source import SourceProblem

FILE = '''"""Kernels of all kinds."""
from typing import Annotated
import numpy as np
from numpy.typing import NDArray
from advisor import Block, Dist, Mesh, kernel

ranks = Mesh(rank=16)
grid = Mesh(row=4, col=4)
by_columns = Dist("N", "N", None, Block("rank"), on=ranks)
width = 3


# above a kernel
@kernel(N=300)
def shared_first(field: Annotated[NDArray[np.float64], by_columns]) -> NDArray[np.float64]:
    above = field.copy()
    above[:, 1:] = field[:, :-1]  # advise: ignore[ADV501]
    return above


def helper(count: int) -> int:
    import numpy

    return int(numpy.sqrt(count))


@kernel(N=400)
def shared_second(field: Annotated[NDArray[np.float64], by_columns]) -> NDArray[np.float64]:
    above = field.copy()
    above[:, 1:] = field[:, :-1]
    return above
    # the end


def plain(field):
    return [row for row in field]


# advise: kernel N=500
# advise: image: f8[N, N] over (none, block(rank)) on mesh(rank=16)
def commented(image):
    moved = image.copy()
    moved[:, 1:] = image[:, :-1]
    return moved


class Solver:
    @staticmethod
    @kernel(N=200)
    def nested(
        field: Annotated[NDArray[np.float64], Dist("N", "N", None, Block("rank"), on=ranks)],
    ) -> NDArray[np.float64]:
        above = field.copy()
        above[:, 1:] = field[:, :-1]
        return above


@kernel(N=100, width=3)
def not_understood(values: Annotated[NDArray[np.int32], Dist("N", Block("rank"), on=ranks)]):
    values.sort()
    while values.any():
        values = plain(values)
    return values


if __name__ == "__main__":
    print(plain([1, 2]))
'''
EXAMPLES = Path(__file__).parents[2] / "examples"
OPTIONS = Options("sp2", {}, (), (), 1.01)
LINES = (
    "",
    "# about nothing",
    "    # about nothing",
    "import numpy as np",
    "width = 4",
    "def sqrt(x): ...",
    "def np(x): ...",
    "ranks = Mesh(rank=4)",
    "    return field",
    "    field = field.copy()",
    "def more():\n    global width, ranks\n    width = 2",
    "@kernel(N=100)",
    "@other",
    "# advise: ignore-file[ADV101]",
    "    # advise: trip 3",
    "# advise: ignore[ADV101]",
    "from advisor import *",
    "x = (",
    "é = 'é'; width = 5  # é",
    "depth = 3; \\",
)


PROGRAM = """

def exchanged() -> np.ndarray:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    left, right = (rank - 1) % size, (rank + 1) % size
    u = np.arange(6000.0).reshape(20, 300) + rank
    r = np.empty(300)
    for step in range(5):
        t = u[1, :].copy()
        comm.Sendrecv(t, dest=left, recvbuf=r, source=right)
        u[-1, :] = r
    return u
"""
"""Functions that communicate, which hang on all of their file."""


def told(result: FileResult) -> object:
    """A result without its edits, which the memory does not promise."""
    return (
        [without_edits(finding) for finding in result.findings],
        sorted(result.remarks, key=lambda remark: (remark.span, remark.message)),
    )


def without_edits(finding: Finding) -> Finding:
    return finding if finding.fix is None else replace(finding, fix=replace(finding.fix, edits=()))


def outcome(check: object, *arguments: object) -> object:
    assert callable(check)
    try:
        return told(check(*arguments))
    except SourceProblem as problem:
        return str(problem)


def edited(text: str, source: random.Random) -> str:
    """The text after one random edit of its lines."""
    lines = text.split("\n")
    here = source.randrange(len(lines))
    kind = source.random()
    if kind < 0.3:
        lines.insert(here, source.choice(LINES))
    elif kind < 0.45:
        del lines[here]
    elif kind < 0.6:
        words = lines[here].split(" ")
        words[source.randrange(len(words))] = source.choice(("", "field", "2", "above", "N"))
        lines[here] = " ".join(words)
    elif kind < 0.75:
        lines[here] += source.choice(("  # 😀", "\r", " ", "  # advise: ignore", ","))
    elif kind < 0.9:
        lines[here] = lines[here].replace("ranks", "grid").replace("300", "301")
    else:
        other = source.randrange(len(lines))
        lines[here], lines[other] = lines[other], lines[here]
    return "\n".join(lines)


def test_the_program_is_one_of_which_there_is_something_to_say() -> None:
    found = check_source("kernels.py", FILE + PROGRAM, OPTIONS).findings
    assert {"ADV101", "ADV602"} <= {finding.code for finding in found}


@pytest.mark.parametrize("file", [FILE, FILE + PROGRAM], ids=["kernels", "and a program"])
@pytest.mark.parametrize("seed", range(2))
def test_random_edits(seed: int, file: str) -> None:
    source = random.Random(seed)
    memory = KernelMemory()
    text = file
    readable = 0
    for _ in range(14):
        for _ in range(source.randint(1, 2)):
            text = edited(text, source)
        wanted = outcome(check_source, "kernels.py", text, OPTIONS)
        assert outcome(memory.check, "kernels.py", text, OPTIONS) == wanted, text
        readable += not isinstance(wanted, str)
        if isinstance(wanted, str):
            text = file
    assert readable >= 3


def test_what_an_editor_asks_for_later_is_what_the_engine_says_at_once() -> None:
    source = random.Random(5)
    memory = KernelMemory()
    brief = replace(OPTIONS, details=False)
    text, compared = FILE, 0
    for _ in range(12):
        wanted = outcome(check_source, "kernels.py", text, OPTIONS)
        if not isinstance(wanted, str):
            full = check_source("kernels.py", text, OPTIONS).findings
            first = memory.check("kernels.py", text, brief).findings
            assert not any(finding.crossovers or finding.assumptions for finding in first)
            found = [memory.detailed("kernels.py", text, OPTIONS, finding) for finding in first]
            assert [*map(without_edits, found)] == [*map(without_edits, full)], text
            compared += sum(bool(finding.assumptions) for finding in found)
        text = edited(FILE, source)
    assert compared >= 3


def test_plans_come_after_the_findings_and_at_once_where_nothing_new_is_priced() -> None:
    from advisor.ranking import compare

    # what other tests have priced would be at hand
    compare._costs.clear()
    text = (EXAMPLES / "gauss.py").read_text(encoding="utf-8")
    options = Options("t3e", {}, (), (), None, details=False)
    brief = replace(options, plans=False)
    memory = KernelMemory()

    def plans(result: FileResult) -> list[str]:
        return [remark.message for remark in result.remarks if "best plan" in remark.message]

    first = memory.check("gauss.py", text, brief)
    assert not first.whole
    assert first.findings
    assert plans(first) == []
    complete = memory.check("gauss.py", text, options)
    assert complete.whole
    assert complete.findings == first.findings
    assert told(complete) == told(check_source("gauss.py", text, options))
    assert plans(complete)
    # what is known stays, as where it has moved, and in a kernel of which only comments change
    moved = text.replace("@kernel(", "\n\n@kernel(")
    typed = moved.replace("a.shape[0] - 1):", "a.shape[0] - 1):  # for now")
    assert moved != text
    assert typed != moved
    for edited in (text, moved, typed):
        again = memory.check("gauss.py", edited, brief)
        assert again.whole
        assert told(again) == told(check_source("gauss.py", edited, options))
    changed = typed.replace("a.shape[0] - 1", "a.shape[0] - 7")
    assert changed != typed
    assert not memory.check("gauss.py", changed, brief).whole
    assert told(memory.check("gauss.py", changed, options)) == told(
        check_source("gauss.py", changed, options)
    )


def test_a_kernel_that_nobody_touched_is_not_analysed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from advisor import engine

    ranked: list[str] = []
    rank_kernels = engine.rank_kernels

    def counted(path: str, kernels: object, options: Options) -> object:
        found = tuple(kernels)  # type: ignore[call-overload]
        ranked.extend(kernel.name for kernel in found)
        return rank_kernels(path, found, options)

    monkeypatch.setattr(engine, "rank_kernels", counted)
    memory = KernelMemory()
    memory.check("kernels.py", FILE, OPTIONS)
    everything = ["shared_first", "shared_second", "commented", "not_understood", "nested"]
    assert ranked == everything
    for text, again in (
        (FILE, []),
        (FILE.replace('"""Kernels of all kinds."""', '"""Kernels."""\n\n\n'), []),
        (FILE.replace("count: int", "counts: int"), []),
        (FILE.replace("import numpy\n", "global np\n"), everything),
        (FILE.replace("row for row", "column for column"), ["not_understood"]),  # which calls it
        (FILE.replace("moved", "shifted"), ["commented"]),
        (FILE.replace("width = 3\n", "width = 3  # 😀\r\n"), []),
        (FILE.replace("width = 3\n", "width = 4\n"), everything),
    ):
        ranked.clear()
        memory.check("kernels.py", text, OPTIONS)
        assert ranked == again
    # sharing a declaration or not changes what may be edited
    ranked.clear()
    alone = FILE.replace("def shared_second(field: Annotated[NDArray[np.float64], by_columns])",
                         "def shared_second(field: NDArray[np.float64])")  # fmt: skip
    memory.check("kernels.py", alone, OPTIONS)
    assert ranked == ["shared_first", "shared_second"]


def test_moved_findings_name_the_lines_where_things_are_now() -> None:
    memory = KernelMemory()
    memory.check("kernels.py", FILE, OPTIONS)
    moved = FILE.replace("width = 3\n", "width = 3\n\n\n\n")
    result = memory.check("kernels.py", moved, OPTIONS)
    assert told(result) == told(check_source("kernels.py", moved, OPTIONS))
    origins = {a.origin for finding in result.findings for a in finding.assumptions}
    lines = moved.splitlines()
    assert origins
    assert all("N=" in lines[int(origin.removeprefix("line ")) - 1] for origin in origins)


def test_an_excerpt_is_the_frame_the_part_and_the_names_it_uses() -> None:
    layout = layout_of(FILE)
    assert layout is not None
    parts = {part.name: part for part in layout.with_kernels()}
    assert list(parts) == ["shared_first", "shared_second", "commented", "not_understood", ""]
    lines = FILE.splitlines()
    assert lines[parts["shared_first"].first - 1] == "# above a kernel"
    assert lines[parts["shared_second"].last - 1] == "    # the end"
    excerpt = layout.excerpt(parts["not_understood"])
    assert "import numpy\n" not in excerpt.source
    out = layout_of(FILE.replace("import numpy\n", "global np; import numpy as np\n"))
    assert out is not None
    assert "import numpy as np\n\n    return int(" in out.excerpt(parts["not_understood"]).source
    assert "def plain(field):\n    return" in excerpt.source  # is called
    assert "shared_first" not in excerpt.source
    for number, line in enumerate(excerpt.source.splitlines(), 1):
        assert lines[excerpt.in_file(number) - 1] == line
    assert layout_of("def f(:") is None
    assert layout_of("x = '\0'") is None


@pytest.mark.parametrize(
    "imported",
    [
        "from advisor import kernel as numpy",
        "from numpy import *",
        "import numpy as np, advisor",
        "np = None; import numpy",
        "def kernel(): from numpy import max; import advisor.kernel as Block",
    ],
)
def test_what_a_function_imports_says_nothing_of_others(imported: str) -> None:
    text = FILE.replace("import numpy\n", f"{imported}\n")
    assert text != FILE
    memory = KernelMemory()
    memory.check("kernels.py", FILE, OPTIONS)
    assert outcome(memory.check, "kernels.py", text, OPTIONS) == outcome(
        check_source, "kernels.py", text, OPTIONS
    )


def plan_remarks(result: FileResult) -> list[str]:
    return [remark.message for remark in result.remarks if "best plan" in remark.message]


def test_a_plan_stays_where_only_what_is_around_changes() -> None:
    from advisor.ranking import compare

    text = (EXAMPLES / "gauss.py").read_text(encoding="utf-8")
    options = Options("t3e", {}, (), (), None, details=False)
    brief = replace(options, plans=False)
    memory = KernelMemory()
    plans = plan_remarks(memory.check("gauss.py", text, options))
    assert plans
    for old, new, stays in (
        ("import numpy as np\n", "import numpy as np\nimport os, sys\n\n\n", True),
        ("import numpy as np\n", "import sys; import numpy as np\nother = 3\n", True),
        ("a.shape[0] - 1", "a.shape[0] - 7", False),
        ("@kernel(N=", "@kernel(N=1", False),
    ):
        # nothing is at hand that was priced before
        compare._costs.clear()
        edited = text.replace(old, new)
        assert edited != text
        first = memory.check("gauss.py", edited, brief)
        assert not first.whole
        assert bool(plan_remarks(first)) is stays
        complete = memory.check("gauss.py", edited, options)
        assert complete.whole
        assert told(complete) == told(check_source("gauss.py", edited, options))
        if stays:
            # the second answer says nothing new
            assert told(complete) == told(first)
    # another size, or another machine
    compare._costs.clear()
    other = replace(brief, sizes={"N": 77})
    assert plan_remarks(memory.check("gauss.py", text, other)) == []
    compare._costs.clear()
    assert plan_remarks(memory.check("gauss.py", text, replace(brief, machine="sp2"))) == []


def test_room_between_functions_moves_no_line_whatever_ends_it() -> None:
    from advisor.edits import split_lines
    from advisor.lsp.memory import spaced

    for ends in ("\n", "\r\n", "\r", "\n\r"):
        text = f"x = 1{ends}{ends}def f():{ends}    return x{ends}# g{ends}def g(): ...{ends}"
        wide = spaced(text)
        assert wide is not None
        lines = split_lines(text)
        found = [
            wide.in_file(n) for n, one in enumerate(split_lines(wide.source), 1) if one.strip()
        ]
        assert found == [n for n, one in enumerate(lines, 1) if one.strip()], ends
