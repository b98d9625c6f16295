"""Programs for MPI in a real editor's session: what their rules say, show and write."""

from __future__ import annotations

import asyncio

import pytest
from lsp_session import PATIENCE_S, URI, Session, capabilities, session
from lsprotocol import types

from advisor.engine import Options, check_source
from advisor.finding import Finding
from advisor.report.rows import headline
from tests.lsp.typed_files import PLANNED, PROGRAM

pytestmark = pytest.mark.asyncio

TEXT = "".join(letter for letter in PROGRAM.replace("𝑓ä", "field") if letter.isascii())
OTHER = "file:///kernels/other.py"
MACHINES = {"t3e": "1.93x", "sp2": "1.29x"}
WAYS = {
    "as written": TEXT,
    "CRLF": TEXT.replace("\n", "\r\n"),
    "tabs": TEXT.replace("    ", "\t"),
    "a function more": TEXT.replace("def shared", "def more(n):\n    return n\n\n\ndef shared"),
}


def engine_says(text: str, machine: str = "t3e") -> list[Finding]:
    options = Options(machine, {}, (), (), 1.01)
    return list(check_source("/kernels/smooth.py", text, options).findings)


def said(found: list[types.Diagnostic]) -> list[tuple[object, str, int]]:
    return sorted((one.code, one.message, one.range.start.line + 1) for one in found)


def wanted(text: str, machine: str = "t3e") -> list[tuple[object, str, int]]:
    found = engine_says(text, machine)
    return sorted((one.code, headline(one), one.span.start_line) for one in found)


def put(editor: Session, text: str) -> None:
    editor.text = text
    editor.change(types.TextDocumentContentChangeWholeDocument(text))


async def test_what_a_user_does_with_a_program() -> None:
    arguments = ("--machine", "t3e")
    settings = {"inlayHints": True}
    async with session(capabilities(), arguments=arguments, settings=settings) as editor:
        editor.open(TEXT)
        first, second = await editor.pushed()
        assert said([first, second]) == wanted(TEXT)

        place = first.range.start
        shown = await editor.hover(place.line, place.character)
        assert shown is not None
        assert isinstance(shown.contents, types.MarkupContent)
        for part in ("| before | after |", "start-up", "WIDTH = 300 (line 4)", "**Safe edit**"):
            assert part in shown.contents.value
        whole = types.Range(types.Position(0, 0), types.Position(60, 0))
        identifier = types.TextDocumentIdentifier(URI)
        hints = await editor.client.text_document_inlay_hint_async(
            types.InlayHintParams(identifier, whole)
        )
        lines = [hint.position.line for hint in hints or ()]
        assert lines == [place.line, second.range.start.line]

        for text in WAYS.values():
            put(editor, text)
            found = await editor.pushed()
            assert said(found) == wanted(text)
            await writes_what_it_says(editor, found[0])

        await keeps_what_is_known_while_half_typed(editor)
        await asks_again_for_another_machine_and_size(editor)
        await has_two_files_open(editor)


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


async def keeps_what_is_known_while_half_typed(editor: Session) -> None:
    put(editor, TEXT)
    before = await editor.pushed()
    editor.replace("def made(n: int):", "def made(n: int:")
    assert said(await editor.pushed()) == said(before)
    editor.replace("def made(n: int:", "\ndef made(n: int):")
    assert said(await editor.pushed()) == wanted(editor.text)
    # tabs among blanks are no text that anybody reads
    editor.replace("    left, right", "\tleft, right")
    await editor.pushed()
    editor.replace("\tleft, right", "    left, right")
    assert said(await editor.pushed()) == wanted(editor.text)


async def asks_again_for_another_machine_and_size(editor: Session) -> None:
    put(editor, TEXT)
    await editor.pushed()
    for name, gain in (("sp2", "1.29x"), ("t3e", "1.93x")):
        await commanded(editor, "advise.setMachine", name)
        assert said(await latest(editor, gain)) == wanted(TEXT, name)
    await commanded(editor, "advise.setSize", "WIDTH", 30_000)
    text = TEXT.replace("WIDTH = 300", "WIDTH = 30000")
    (_, gain, *_) = wanted(text)[0][1].split()
    assert said(await latest(editor, gain)) == wanted(text)
    await commanded(editor, "advise.setSize", "WIDTH", None)
    assert said(await latest(editor, "1.93x")) == wanted(TEXT)


async def commanded(editor: Session, name: str, *arguments: object) -> None:
    editor.published.clear()
    await editor.command(name, *arguments)


async def latest(editor: Session, gain: str) -> list[types.Diagnostic]:
    """Wait for diagnostics that tell a gain."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for params in editor.published:
                if any(f" {gain} " in one.message for one in params.diagnostics):
                    return list(params.diagnostics)
            editor.news.clear()
            await editor.news.wait()


async def has_two_files_open(editor: Session) -> None:
    """What is typed in one file moves nothing that is said of the other."""
    ours = await editor.pushed()
    item = types.TextDocumentItem(OTHER, "python", 1, PLANNED)
    editor.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    async with asyncio.timeout(PATIENCE_S):
        while not any(params.uri == OTHER for params in editor.published):
            editor.news.clear()
            await editor.news.wait()
    for step in range(3):
        editor.replace("    t = ", f"    # {step}\n        t = ")
        assert said(await editor.pushed()) == wanted(editor.text)
    assert len(await editor.pushed()) == len(ours)
