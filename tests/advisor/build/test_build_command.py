"""``advise build``: what it writes, and what it refuses with line and reason."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from advisor.cli.app import main
from costdb.launch.processes import environment
from tests.ranks import on_ranks

EXAMPLES = Path(__file__).parents[3] / "examples"
HEAD = """
import numpy as np
# advise: kernel N=8
# advise: a: f8[N, N] over (block(p), none) on mesh(p=P)
def f(a, c: float):
"""


def refused(tmp_path: Path, body: str, capsys: pytest.CaptureFixture[str]) -> str:
    file = tmp_path / "kernel.py"
    file.write_text(HEAD + "".join(f"    {line}\n" for line in body.splitlines()))
    assert main(["build", str(file)]) == 2
    out, said = capsys.readouterr()
    assert not out and said.count("\n") == 1
    return said


def test_a_program_imports_numpy_and_mpi4py_only_and_runs(tmp_path: Path) -> None:
    for path in sorted(EXAMPLES.glob("*.py")):
        file = tmp_path / f"{path.stem}_mpi.py"
        if "@kernel" not in path.read_text():
            continue
        assert main(["build", str(path), "-D", "N=16", "-P", "2", "-o", str(file)]) == 0
        tree = ast.parse(file.read_text())
        imports = {
            name.split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [one.name for one in node.names]
            )
        }
        assert imports == {"numpy", "mpi4py"}
        assert all(len(line) <= 100 for line in file.read_text().splitlines()), path
    on_ranks(2, str(tmp_path / "jacobi_mpi.py"), environment=environment())


def test_every_part_says_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    path = EXAMPLES / "box_sum.py"
    assert main(["build", str(path)]) == 0
    text = capsys.readouterr().out
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("    ") and 33 <= number <= 46 and not line.strip().startswith("#"):
            assert f"# {number}: {line.strip()}" in text


@pytest.mark.parametrize(
    ("body", "line", "why"),
    [
        ("total = 0.0\nfor i in range(8):\n    total += a[i, i]\nreturn a", 8, "accumulated"),
        ("a[...] = np.round(a, 2)\nreturn a", 6, "np.round"),
        ("a[...] = np.linalg.inv(a)\nreturn a", 6, "linalg.inv"),
        ("if a[0, 0] > 1:\n    a[...] = 0\nreturn a", 6, ""),
        ("for i in range(8):\n    if a[i, 0] > c:\n        return a\nreturn a", 8, "from within"),
        ("print(a)\nreturn a", 6, "print"),
        ("v = np.linspace(0, 1, 8)\na[0, :] = v\nreturn a", 6, "linspace"),
    ],
)
def test_what_has_no_form_is_refused_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], body: str, line: int, why: str
) -> None:
    said = refused(tmp_path, body, capsys)
    assert f"kernel.py:{line}: not built: " in said and why in said


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "none.py").write_text("x = 1\n")
    assert main(["build", str(tmp_path / "none.py")]) == 2
    assert "no annotated kernel" in capsys.readouterr().err
    (tmp_path / "open.py").write_text(
        HEAD.replace("N=8", "") + "    a[1:] = a[:-1]\n    return a\n"
    )
    assert main(["build", str(tmp_path / "open.py")]) == 2
    assert "-D N=" in capsys.readouterr().err
