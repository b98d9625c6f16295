"""Programs for MPI in a real editor's session: what their rules say, show and write."""

from __future__ import annotations

import pytest
from lsp_session import Session, capabilities, session
from lsprotocol import types

from advisor.engine import Options, check_source
from advisor.finding import Finding
from advisor.report.model import headline
from tests.lsp.typed_files import PROGRAM

pytestmark = pytest.mark.asyncio

TEXT = "".join(letter for letter in PROGRAM.replace("𝑓ä", "field") if letter.isascii())
WAYS = {
    "as written": TEXT,
    "CRLF": TEXT.replace("\n", "\r\n"),
    "tabs": TEXT.replace("    ", "\t"),
    "a function more": TEXT.replace("def shared", "def more(n):\n    return n\n\n\ndef shared"),
}


def engine_says(text: str) -> list[Finding]:
    options = Options("t3e", {}, (), (), 1.01)
    return list(check_source("/kernels/smooth.py", text, options).findings)


def said(found: list[types.Diagnostic]) -> list[tuple[object, str, int]]:
    return sorted((one.code, one.message, one.range.start.line + 1) for one in found)


def wanted(text: str) -> list[tuple[object, str, int]]:
    return sorted((one.code, headline(one), one.span.start_line) for one in engine_says(text))


def put(editor: Session, text: str) -> None:
    editor.text = text
    editor.change(types.TextDocumentContentChangeWholeDocument(text))


async def test_what_a_user_does_with_a_program() -> None:
    async with session(capabilities(), machine="t3e") as editor:
        editor.open(TEXT)
        for text in WAYS.values():
            put(editor, text)
            *found, unpriced = await editor.pushed()
            assert unpriced.code is None and "has no prices of pickles" in unpriced.message
            assert said(found) == wanted(text)
            await writes_what_it_says(editor, found[0])


async def writes_what_it_says(editor: Session, finding: types.Diagnostic) -> None:
    """Each action gives a text of which its finding is no longer said."""
    code, message = finding.code, finding.message
    for action in await editor.actions(finding.range):
        resolved = await editor.client.code_action_resolve_async(action)
        assert resolved.edit is not None
        text = editor.applied(resolved.edit)
        assert text != editor.text
        assert message not in [headline(one) for one in engine_says(text) if one.code == code]
        # line ends and indentation are those of the file
        assert ("\r\n" in text) == ("\r\n" in editor.text)
        assert text.count("\n") == text.count("\r\n") or "\r" not in text
        assert ("\t" in text) == ("\t" in editor.text)
