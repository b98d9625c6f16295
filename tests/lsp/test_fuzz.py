"""A thousand of the random edits that ``python -m tests.lsp.fuzz`` makes ten thousand of."""

from __future__ import annotations

import pytest

from advisor.report.rows import headline
from tests.lsp.fuzz.editor import Editor, Wrong
from tests.lsp.fuzz.files import FILES, START
from tests.lsp.fuzz.reference import Reference
from tests.lsp.fuzz.session import run

RUNS = (
    (500, "kernel", "utf-8", False),
    (100, "plan", "utf-16", True),
    (250, "program", "utf-16", True),
    (150, "program", "utf-32", False),
)
"""Edits, file, encoding, and whether findings come before plans; what has a plan takes longest."""


def test_random_edits() -> None:
    tallies = [run(n, 7, code, start=FILES[name], staged=way) for n, name, code, way in RUNS]
    assert sum(tally.edits for tally in tallies) >= 1000
    # the runs were about something: texts with findings, texts without, and broken ones
    assert all(tally.with_findings >= 3 for tally in tallies)
    assert all(tally.answers - tally.readable >= 1 for tally in tallies)
    assert sum(tally.carried for tally in tallies) >= 5


def test_the_reference_sees_a_column_that_is_off_by_one() -> None:
    editor = Editor("utf-16", START.replace("rank=16", "rank=17"))  # with one finding
    finding = Reference().knows(editor.text).findings[0]
    offset = editor.text.index("Dist(")
    end = editor.place(editor.text.index("],\n", offset))
    start = editor.place(offset)
    assert start["character"] == finding.span.start_column + 1  # one letter of two units before
    item = {
        "code": finding.code,
        "message": headline(finding),
        "range": {"start": start, "end": end},
    }
    assert Reference().check(editor, [item])
    for wrong in (
        {**item, "range": {"start": {**start, "character": start["character"] + 1}, "end": end}},
        {**item, "range": {"start": start, "end": {**end, "character": end["character"] - 1}}},
        {**item, "message": "2.00x faster"},
    ):
        with pytest.raises(Wrong):
            Reference().check(editor, [wrong])
    with pytest.raises(Wrong):
        Reference().check(editor, [])


def test_findings_may_be_carried_from_a_text_that_nobody_asked_about() -> None:
    editor = Editor("utf-16", START.replace("rank=16", "rank=17"))
    reference = Reference()
    finding = reference.knows(editor.text).findings[0]
    reference.good = reference.knows(editor.text)

    def item(shift: int) -> dict[str, object]:
        offset = editor.text.index("Dist(")
        start = editor.place(offset)
        end = editor.place(editor.text.index("],\n", offset))
        start, end = ({**at, "character": at["character"] + shift} for at in (start, end))
        shown = {"start": start, "end": end}
        return {"code": finding.code, "message": headline(finding), "range": shown}

    def typed(start: int, new: str) -> None:
        editor.edit(start, start, new)
        editor.told += (editor.text,)

    line = editor.text.rindex("\n", 0, editor.text.index("Dist(")) + 1
    typed(line, "  ")
    typed(editor.text.index("def "), "def (\n")
    assert not reference.check(editor, [item(0)])
    editor.told = editor.told[1:]
    with pytest.raises(Wrong):
        reference.check(editor, [item(0)])
    typed(editor.text.index("Dist("), "x")
    with pytest.raises(Wrong):
        reference.check(editor, [item(-1)])
