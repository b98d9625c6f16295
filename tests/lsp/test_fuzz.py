"""A thousand of the random edits that ``python -m tests.lsp.fuzz`` makes ten thousand of."""

from __future__ import annotations

import pytest
from fuzz import CODECS, START, Editor, Reference, Wrong, run

EDITS = 334


@pytest.mark.parametrize("encoding", CODECS)
def test_random_edits(encoding: str) -> None:
    tally = run(EDITS, seed=7, encoding=encoding)
    assert tally.edits >= EDITS
    # the run was about something: texts with findings, texts without, and broken ones
    assert tally.with_findings >= 5
    assert tally.answers - tally.readable >= 5
    assert tally.carried >= 1


def test_the_reference_sees_a_column_that_is_off_by_one() -> None:
    editor = Editor("utf-16", START.replace("rank=16", "rank=17"))  # with one finding
    finding = Reference().knows(editor.text).findings[0]
    offset = editor.text.index("Dist(")
    end = editor.place(editor.text.index("],\n", offset))
    start = editor.place(offset)
    assert start["character"] == finding.span.start_column + 1  # one letter of two units before
    item = {"code": finding.code, "message": finding.message, "range": {"start": start, "end": end}}
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
