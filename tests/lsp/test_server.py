"""The server over the real protocol."""

from __future__ import annotations

import asyncio
import re

import pytest
from lsp_session import CODE, COMMAND, KERNEL, PATIENCE_S, URI, Session, capabilities, session
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pytest_lsp import client_capabilities

from costdb.machines import SHIPPED

pytestmark = pytest.mark.asyncio

ARRAY = 'Dist("N", "N", None, Block("rank"), on=ranks)'
BETTER = 'Dist("N", "N", Block("rank"), None, on=ranks)'


def place(text: str, part: str) -> types.Range:
    """The range of `part`, computed without the server's own code."""
    before, _, _ = text.partition(part)
    line = before.count("\n")
    column = len(before) - (before.rfind("\n") + 1)
    return types.Range(types.Position(line, column), types.Position(line, column + len(part)))


async def test_an_editor_that_is_pushed_to() -> None:
    async with session(capabilities(), command=COMMAND) as editor:
        assert editor.started.capabilities.diagnostic_provider is None
        sync = editor.started.capabilities.text_document_sync
        assert isinstance(sync, types.TextDocumentSyncOptions)
        assert sync.change is types.TextDocumentSyncKind.Incremental

        editor.open()
        (found,) = await editor.pushed()
        assert found.code == CODE
        assert found.source == "advise"
        assert found.range == place(KERNEL, ARRAY)
        assert found.severity is types.DiagnosticSeverity.Hint
        assert re.match(
            r"PLAN 1\.10x \(.*as 17 ranks of sp2: distribute `field` by rows", found.message
        )
        assert found.tags is None
        assert found.code_description is not None
        assert found.code_description.href.startswith("file:///")
        assert found.code_description.href.endswith("/ADV101.md")

        await hovers(editor)
        await acts(editor)
        await is_silent_and_says_so(editor)
        await keeps_what_is_known(editor)
        await refuses_actions_on_old_texts(editor)

        editor.close()
        assert await editor.first(lambda one: one.version is None) == []
        assert await editor.hover(12, 50) is None


async def hovers(editor: Session) -> None:
    assert await editor.hover(0, 0) is None
    shown = await editor.hover(12, 50)
    assert shown is not None
    assert shown.range == place(KERNEL, ARRAY)
    text = await editor.hovered(12, 50)
    for part in ("PLAN 1.10x", "| before | after |", "**Rests on** N = 1000", "**Machine** sp2"):
        assert part in text


async def acts(editor: Session) -> None:
    everything = await editor.actions(place(KERNEL, "Block"))
    assert everything == []  # the import line has no finding
    here = place(KERNEL, ARRAY)
    rewrite, ignore = await editor.actions(types.Range(here.start, here.start))
    assert rewrite.title.startswith("PLAN 1.10x")
    assert rewrite.kind == types.CodeActionKind.QuickFix
    assert rewrite.is_preferred
    assert rewrite.edit is None  # not before somebody wants it
    assert list(rewrite.diagnostics or ()) == await editor.pushed()
    assert ignore.title == "Ignore ADV101 (strided-faces) here"

    resolved = await editor.client.code_action_resolve_async(rewrite)
    assert resolved.edit is not None
    assert editor.applied(resolved.edit) == KERNEL.replace(ARRAY, BETTER)
    resolved = await editor.client.code_action_resolve_async(ignore)
    assert resolved.edit is not None
    assert editor.applied(resolved.edit) == KERNEL.replace(
        f"{ARRAY}],", f"{ARRAY}],  # advise: ignore[ADV101]"
    )

    (refactoring,) = await editor.actions(here, ["refactor"])
    assert refactoring.kind == types.CodeActionKind.RefactorRewrite
    quick = await editor.actions(here, ["quickfix"])
    assert [action.title for action in quick] == [rewrite.title, ignore.title]
    assert await editor.actions(here, ["source.organizeImports"]) == []


async def is_silent_and_says_so(editor: Session) -> None:
    """Applying the suggestion ends the finding; `pushed` proves that the silence is an answer."""
    editor.replace(ARRAY, BETTER)
    assert await editor.pushed() == []
    assert await editor.actions(place(editor.text, BETTER)) == []
    editor.replace(BETTER, ARRAY)
    assert len(await editor.pushed()) == 1


async def keeps_what_is_known(editor: Session) -> None:
    """A half-typed line leaves advice on other lines, where they are now, and offers no edit."""
    editor.replace("ranks = Mesh", "layers = (\n\nranks = Mesh")
    (moved,) = await editor.pushed()
    assert moved.range == place(editor.text, ARRAY)
    shown = await editor.hovered(moved.range.start.line, moved.range.start.character)
    assert "before the last edits" in shown
    assert await editor.actions(moved.range) == []
    editor.replace('Block("rank"), on', 'Block("rank", on')
    assert await editor.pushed() == []  # its own line was touched
    editor.replace('Block("rank", on', 'Block("rank"), on')
    editor.replace("layers = (\n\n", "")
    assert editor.text == KERNEL
    assert len(await editor.pushed()) == 1


async def refuses_actions_on_old_texts(editor: Session) -> None:
    rewrite, _ = await editor.actions(place(editor.text, ARRAY))
    editor.replace("import numpy as np\n", "import numpy as np\n\n")
    with pytest.raises(JsonRpcException, match="has changed"):
        await editor.client.code_action_resolve_async(rewrite)
    rewrite.data = None
    with pytest.raises(JsonRpcException, match="no data"):
        await editor.client.code_action_resolve_async(rewrite)


async def test_an_editor_that_pulls_is_never_pushed_to() -> None:
    async with session(capabilities(pull=True), settings={"sizes": {"N": 2000}}) as editor:
        provider = editor.started.capabilities.diagnostic_provider
        assert isinstance(provider, types.DiagnosticOptions)
        assert provider.inter_file_dependencies
        editor.open()
        report = await editor.asked()
        (found,) = report.items
        assert found.range == place(KERNEL, ARRAY)
        again = await editor.pulled(report.result_id)
        assert isinstance(again, types.RelatedUnchangedDocumentDiagnosticReport)
        assert again.result_id == report.result_id

        editor.replace(ARRAY, BETTER)
        assert list((await editor.asked(report.result_id)).items) == []

        count = editor.client.diagnostic_refresh_count
        assert await editor.command("advise.recheck") == {"machine": "sp2", "sizes": {"N": 2000}}
        await editor.pulled()
        assert editor.client.diagnostic_refresh_count == count + 1
        assert editor.published == []


async def test_settings_and_commands() -> None:
    options = {"machine": "sp2", "minSpeedup": 1.01}
    async with session(capabilities(configuration=False), options=options, machine=None) as editor:
        editor.open()
        (found,) = await editor.pushed()
        assert "of sp2" in found.message

        machines = await editor.command("advise.machines")
        assert {"t3e", "sp2"} <= {one["name"] for one in machines}
        state = await editor.command("advise.setMachine", "t3e")
        assert state == {"machine": "t3e", "sizes": {}}
        await editor.first(lambda one: any("of t3e" in said.message for said in one.diagnostics))
        editor.published.clear()
        state = await editor.command("advise.setSize", "N", 50)
        assert state == {"machine": "t3e", "sizes": {"N": 50}}
        await editor.pushed()
        assert "N = 50 (editor)" in await editor.hovered(12, 50)
        assert await editor.command("advise.setSize", "N") == {"machine": "t3e", "sizes": {}}

        with pytest.raises(JsonRpcException, match="t3f"):
            await editor.command("advise.setMachine", "t3f")
        with pytest.raises(JsonRpcException, match="not a positive number"):
            await editor.command("advise.setSize", "N", -1)
        assert (await editor.command("advise.setMachine"))["machine"] == "sp2"

        hints = await editor.client.text_document_inlay_hint_async(whole_file())
        assert list(hints or ()) == []  # nobody asked for them
        await reconfigured(editor, {"machine": "sp2", "minSpeedup": 1.01, "inlayHints": True})
        (hint,) = await editor.client.text_document_inlay_hint_async(whole_file()) or ()
        assert hint.position == types.Position(12, len(KERNEL.splitlines()[12]))
        assert str(hint.label).startswith("~ ")

        await reconfigured(editor, {"machine": "sp2", "minSpeedup": 50})
        assert await editor.pushed() == []
        editor.client.messages.clear()
        await reconfigured(editor, {"machine": "nowhere", "sizes": {"N": "x"}, "colour": 1})
        told = [message.message for message in editor.client.messages]
        assert len(told) >= 3
        assert any("nowhere" in line for line in told)
        assert any("'x' is not a positive number" in line for line in told)
        assert any("advise.colour: unknown setting" in line for line in told)
        (found,) = await editor.pushed()
        assert "of sp2" in found.message

        await reconfigured(editor, {"machine": "t3e", "minSpeedup": 1.01})
        (found,) = await editor.pushed()
        assert "of t3e" in found.message
        # what the editor said at first holds where it says nothing any more
        await reconfigured(editor, {})
        (found,) = await editor.pushed()
        assert "of sp2" in found.message


async def test_without_a_machine_prices_are_those_of_the_shipped_one() -> None:
    async with session(capabilities(configuration=False), machine=None) as editor:
        editor.open()
        found = await editor.pushed()
        assert found
        assert all(f"of {SHIPPED}" in one.message for one in found)
        assert not editor.client.messages


def whole_file() -> types.InlayHintParams:
    everything = types.Range(types.Position(0, 0), types.Position(1000, 0))
    return types.InlayHintParams(types.TextDocumentIdentifier(URI), everything)


async def reconfigured(editor: Session, settings: dict[str, object]) -> None:
    editor.published.clear()
    editor.news.clear()
    editor.client.workspace_did_change_configuration(
        types.DidChangeConfigurationParams({"advise": settings})
    )
    await editor.pushed()


async def test_settings_come_from_the_editor_when_it_can_be_asked() -> None:
    async with session(capabilities(), settings={"machine": "t3e"}) as editor:
        editor.open()
        (found,) = await editor.pushed()
        assert "of t3e" in found.message
        assert editor.registered == ["workspace/didChangeConfiguration"]
        editor.published.clear()
        editor.client.set_configuration({"advise": {"machine": "sp2", "minSpeedup": 1.01}})
        editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(None))
        (found,) = await editor.pushed()
        assert "of sp2" in found.message


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_columns_are_in_the_encoding_agreed_on(encoding: str) -> None:
    unit = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    codec = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}[encoding]
    async with session(capabilities(encodings=(encoding,))) as editor:
        assert editor.started.capabilities.position_encoding == encoding
        # an astral name, and two more bytes, before the distribution on its line
        text = KERNEL.replace("    field: Annotated", "    𝑓ield_ä: Annotated").replace(
            "field.copy", "𝑓ield_ä.copy"
        )
        text = text.replace("= field[", "= 𝑓ield_ä[")
        editor.open(text)
        (found,) = await editor.pushed()
        line = text.splitlines()[12]
        before = line[: line.index(ARRAY)]
        assert found.range.start.character == len(before.encode(codec)) // unit
        through = before + ARRAY
        assert found.range.end.character == len(through.encode(codec)) // unit


@pytest.mark.parametrize("name", ["neovim@v0.7", "neovim@v0.11", "emacs", "visual-studio-code"])
async def test_real_editors_capabilities(name: str) -> None:
    """Answers fit what editors declare; the client checks every message against it."""
    async with session(client_capabilities(name)) as editor:
        editor.open()
        if editor.started.capabilities.diagnostic_provider is None:
            found = await editor.first(lambda _: True)
        else:
            found = list((await editor.asked()).items)
        assert [one.code for one in found] == [CODE]
        actions = await editor.actions(found[0].range)
        assert actions[0].title.startswith("PLAN 1.10x")


async def test_a_cancelled_request_is_answered_and_the_next_one_too() -> None:
    async with session(capabilities(pull=True), command=COMMAND) as editor:
        editor.open()
        pending = editor.client.protocol.send_request(
            types.TEXT_DOCUMENT_DIAGNOSTIC,
            types.DocumentDiagnosticParams(types.TextDocumentIdentifier(URI)),
            msg_id="pull-1",
        )
        editor.client.cancel_request(types.CancelParams("pull-1"))
        with pytest.raises(JsonRpcException) as refused:
            await asyncio.wait_for(asyncio.wrap_future(pending), PATIENCE_S)
        assert refused.value.code == -32800
        assert len((await editor.asked()).items) == 1


async def test_wrong_annotations_are_told_where_they_are() -> None:
    async with session(capabilities()) as editor:
        editor.open(KERNEL.replace("@kernel(N=1000)", "@kernel(N=0)"))
        (found,) = await editor.pushed()
        assert found.message == "size N must be at least 1, not 0"
        assert found.range.start == types.Position(10, 8)
