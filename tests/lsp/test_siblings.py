"""Programs in the editor whose modules change beside them."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsp_session import Session, capabilities, session
from lsprotocol import types

pytestmark = pytest.mark.asyncio

MAIN = """\
from mpi4py import MPI
import numpy as np
from config import N

comm = MPI.COMM_WORLD
x = np.zeros(N)
if comm.Get_rank() == 0:
    for i in range(N):
        comm.Send(x[i : i + 1], dest=1)
elif comm.Get_rank() == 1:
    for i in range(N):
        comm.Recv(x[i : i + 1], source=0)
"""
ONE_MESSAGE, MANY = "N = 1\n", "N = 5000\n"


def written(folder: Path, size: str) -> tuple[str, str]:
    (folder / "main.py").write_text(MAIN)
    (folder / "config.py").write_text(size)
    return (folder / "main.py").as_uri(), (folder / "config.py").as_uri()


async def told(editor: Session, uri: str) -> list[str]:
    """Wait for diagnostics that were not there when `published` was last emptied."""
    return [str(one.code) for one in await editor.first(lambda one: one.uri == uri)]


async def test_a_module_that_changes_on_disk_changes_what_is_said(tmp_path: Path) -> None:
    main, config = written(tmp_path, MANY)
    async with session(capabilities(watches=True)) as editor:
        editor.open(MAIN, uri=main)
        assert await told(editor, main) == ["ADV603"]
        assert "workspace/didChangeWatchedFiles" in editor.registered
        for size, expected in ((ONE_MESSAGE, []), (MANY, ["ADV603"])):
            (tmp_path / "config.py").write_text(size)
            editor.published.clear()
            editor.on_disk(config)
            assert await told(editor, main) == expected
        (tmp_path / "config.py").unlink()
        editor.published.clear()
        editor.on_disk(config)
        # the size is not known any more: said is where it pays
        assert await told(editor, main) == ["ADV603"]
        (said,) = editor.published[-1].diagnostics
        assert "faster for" in said.message


async def test_an_editor_that_watches_nothing_says_what_it_saves(tmp_path: Path) -> None:
    main, config = written(tmp_path, MANY)
    async with session(capabilities()) as editor:
        sync = editor.started.capabilities.text_document_sync
        assert isinstance(sync, types.TextDocumentSyncOptions) and sync.save
        editor.open(MAIN, uri=main)
        assert await told(editor, main) == ["ADV603"]
        assert editor.registered == ["workspace/didChangeConfiguration"]
        editor.open(ONE_MESSAGE, uri=config)
        assert await told(editor, config) == []
        editor.published.clear()
        (tmp_path / "config.py").write_text(ONE_MESSAGE)
        editor.save(config)
        assert await told(editor, main) == []
        # nothing new is there to say of the saved file itself
        assert [params.uri for params in editor.published] == [main]


async def test_an_editor_that_asks_is_told_to_ask_again(tmp_path: Path) -> None:
    main, config = written(tmp_path, MANY)
    (tmp_path / "apart").mkdir()
    async with session(capabilities(pull=True, watches=True)) as editor:
        editor.open(MAIN, uri=main)
        first = await editor.asked(uri=main)
        assert first.items
        count = editor.client.diagnostic_refresh_count
        # files elsewhere, and the file itself, change nothing
        editor.on_disk((tmp_path / "apart" / "config.py").as_uri(), main)
        again = await editor.pulled(first.result_id, uri=main)
        assert isinstance(again, types.RelatedUnchangedDocumentDiagnosticReport)
        assert editor.client.diagnostic_refresh_count == count
        (tmp_path / "config.py").write_text(ONE_MESSAGE)
        editor.on_disk(config)
        assert not (await editor.asked(first.result_id, uri=main)).items
        assert editor.client.diagnostic_refresh_count == count + 1
