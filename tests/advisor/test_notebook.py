"""Notebooks as Python and back: places, magics, and all that an edit must leave as it was."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.source import CellsLost, cell_line, cells_of, text_line, text_of, with_text
from tests.advisor.cli.commands import Program, isolated

ROOT = Path(__file__).parents[2]


@pytest.fixture
def program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Program:
    return isolated(monkeypatch, capsys, tmp_path)


def notebook(*cells: str | dict[str, Any], **metadata: Any) -> dict[str, Any]:
    made = [
        cell
        if isinstance(cell, dict)
        else {
            "cell_type": "code",
            "execution_count": number,
            "metadata": {"tags": ["keep"]},
            "outputs": [{"name": "stdout", "text": ["kept\n"]}],
            "source": cell.splitlines(keepends=True),
        }
        for number, cell in enumerate(cells)
    ]
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


LINES = st.sampled_from(
    [
        "x = 1",
        "    ",
        "",
        "!ls 'a",
        "%matplotlib inline",
        "y = (2",
        "  % 3)",
        "np.sum?",
        "é = '\\u00e9'",
    ]
)
CELLS = st.lists(st.lists(LINES, max_size=5).map("\n".join), min_size=1, max_size=5)
LAYOUT = st.sampled_from(
    [{"indent": 1}, {"indent": None}, {"indent": 4, "sort_keys": True}, {"separators": (",", ":")}]
)


@given(CELLS, LAYOUT, st.booleans(), st.data())
def test_an_edit_changes_the_source_of_its_cell_and_nothing_else(
    cells: list[str], layout: dict[str, Any], escaped: bool, data: st.DataObject
) -> None:
    document = notebook({"cell_type": "markdown", "metadata": {}, "source": "# Heading"}, *cells)
    for cell in document["cells"][1:]:
        if data.draw(st.booleans()):
            cell["source"] = "".join(cell["source"])
    raw = json.dumps(document, ensure_ascii=escaped, **layout)
    text = text_of("nb.ipynb", raw)
    assert with_text(raw, text) == raw
    assert [source.removesuffix("\n") for source in cells_of(text).values()] == cells
    number = data.draw(st.integers(1, len(cells)))
    head = f"# %% [cell {number + 1}]\n"
    changed = with_text(raw, text.replace(head, f"{head}new = 'line'\n"))
    kind, source = type(document["cells"][number]["source"]), f"new = 'line'\n{cells[number - 1]}"
    document["cells"][number]["source"] = (
        source if kind is str else source.splitlines(keepends=True)
    )
    assert json.loads(changed) == document
    # how an array of one line would be laid out with two, nobody knows
    if len(cells[number - 1].splitlines()) > 1 and "sort_keys" not in layout:
        assert changed == json.dumps(document, ensure_ascii=escaped, **layout)


@given(CELLS)
def test_lines_have_their_place_in_a_cell(cells: list[str]) -> None:
    text = text_of("nb.ipynb", json.dumps(notebook(*cells)))
    for line in range(1, text.count("\n") + 1):
        cell, within = cell_line(text, line)
        if text_line(text, cell, within) == line:
            shown = cells[cell - 1].split("\n")[within - 1]
            assert text.split("\n")[line - 1].endswith(shown.lstrip())


def test_magics_are_left_out_and_operators_are_not() -> None:
    cell = (
        "import os\n%time x = 1\nname = ('a'\n  % 3)\nif os:\n    !ls \\\n      -l \"\n"
        "'''\n%in a text\n'''\nfiles = !ls\na != 3\nb %= 2\nos.path?\n"
    )
    text = text_of("nb.ipynb", json.dumps(notebook(cell, "%%bash\nls", "%%time\ny = 1")))
    ast.parse(text)
    assert [line.lstrip() for line in text.split("\n") if line.lstrip().startswith("pass")] == [
        "pass  # left out: %time x = 1",
        "pass  # left out: !ls \\",
        "pass  # left out: files = !ls",
        "pass  # left out: os.path?",
        "pass  # left out: %%time",
    ]
    assert list(cells_of(text)) == [1, 3]


def test_a_text_without_its_cells_is_refused() -> None:
    raw = json.dumps(notebook("x = 1", "y = 2"))
    with pytest.raises(CellsLost):
        with_text(raw, text_of("nb.ipynb", raw).replace("# %% [cell 2]\n", ""))


def box_sum(folder: Path) -> Path:
    source = (ROOT / "examples" / "box_sum.py").read_text()
    head, at, rest = source.partition("@kernel")
    cells = (f"%matplotlib inline\n{head.rstrip()}", f"!ls\n{at}{rest.rstrip()}")
    document = notebook({"cell_type": "markdown", "metadata": {}, "source": ["# Box"]}, *cells)
    path = folder / "box.ipynb"
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return path


def test_findings_are_told_by_cell_and_line(program: Program, tmp_path: Path) -> None:
    path = box_sum(tmp_path)
    found = program(".", "--machine", "t3e", "--output-format", "concise")
    assert found.code == 1 and found.out.startswith("box.ipynb:cell 3:18:5: ADV201 [*] UNCERTAIN")
    (one,) = json.loads(program(".", "-m", "t3e", "--output-format", "json").out)["findings"]
    assert (one["path"], one["cell"], one["location"]["row"]) == ("box.ipynb", 3, 18)
    assert one["assumptions"][0]["origin"] == "cell 3, line 2"
    source = json.loads(path.read_text())["cells"][2]["source"]
    assert source[one["fix"]["edits"][0]["location"]["row"] - 1].strip() == "column = image.copy()"
    for name in ("github", "gitlab", "sarif", "rdjson", "junit"):
        told = program(".", "-m", "t3e", "--output-format", name).out
        assert "cell 3, line 18" in told.lower() and "ipynb:cell" not in told.lower()
    shown = program("explain", "box.ipynb:cell 3:18", "-m", "t3e")
    assert shown.code == 0 and "box.ipynb:cell 3:18" in shown.out
    refused = program.refusal("explain", "box.ipynb:cell 3:2", "-m", "t3e")
    assert "no finding at cell 3, line 2; there are some at cell 3:4, cell 3:18" in refused


def test_a_fix_keeps_all_that_it_is_not_about(program: Program, tmp_path: Path) -> None:
    path = box_sum(tmp_path)
    before = path.read_text()
    diff = program("box.ipynb", "-m", "t3e", "--diff")
    assert "+++ box.ipynb:cell 3\n" in diff.out and path.read_text() == before
    assert program("box.ipynb", "-m", "t3e", "--fix").code == 0
    old, new = json.loads(before), json.loads(path.read_text())
    assert json.dumps(new, indent=1, ensure_ascii=False) + "\n" == path.read_text()
    for cell in new["cells"][1:]:
        assert cell["source"][0] in ("%matplotlib inline\n", "!ls\n")
        assert cell.pop("source") != old["cells"][new["cells"].index(cell)].pop("source")
    assert new == old


def test_a_notebook_in_another_language_is_passed_over(program: Program, tmp_path: Path) -> None:
    other = notebook("import numpy", language_info={"name": "julia"})
    (tmp_path / "other.ipynb").write_text(json.dumps(other))
    told = program("other.ipynb", "-m", "t3e")
    assert told.code == 0 and "other.ipynb (a notebook in julia, not Python)" in told.out


def test_what_a_run_showed_of_a_notebook_counts(program: Program, tmp_path: Path) -> None:
    cells = (
        "from __future__ import annotations\nimport numpy as np\n%time 3",
        "def f(a: Unknown):\n    s = 0.0\n    for i in range(a.shape[0]):\n        s += a[i]\n"
        "    return s",
        "f(np.ones(10_000))",
    )  # fmt: skip
    path = tmp_path / "nb.ipynb"
    path.write_text(json.dumps(notebook(*cells), indent=1))
    assert "observed 1 function in a run" in program("run", "nb.ipynb", "-m", "t3e").err
    assert "Analysed 1 of 1 kernels" in program("nb.ipynb", "-m", "t3e").out
    assert program("annotate", "nb.ipynb").code == 0
    source = json.loads(path.read_text())["cells"][1]["source"]
    assert source[:2] == ["# advise: kernel N=10000\n", "# advise: a: float64[N]\n"]
