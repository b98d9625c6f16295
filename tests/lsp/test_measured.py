"""An editor has a kernel measured, and its findings then say what that showed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from lsp_session import COMMAND, PATIENCE_S, capabilities, session
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from costdb.documents import store_profile
from costdb.machines import load_machine

pytestmark = pytest.mark.asyncio

KERNEL = """\
import numpy as np

# advise: kernel N=60
# advise: a: i8[N, N]
def columns(a):
    out = np.zeros(a.shape[1], dtype=np.int64)
    for j in range(a.shape[1]):
        for i in range(a.shape[0]):
            out[j] += a[i, j]
    return out
"""


async def test_a_kernel_is_measured_where_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path / "data"))
    profile = json.loads(json.dumps(load_machine("t3e").document))
    store_profile({**profile, "name": "here"}, "made up")
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL)
    uri = file.as_uri()
    async with session(capabilities(), machine="here", command=COMMAND) as editor:
        editor.open(KERNEL, uri)
        before = await editor.pushed(uri)
        given = await editor.client.text_document_code_action_async(
            types.CodeActionParams(
                types.TextDocumentIdentifier(uri), before[0].range, types.CodeActionContext([])
            )
        )
        # of what has a command the client's library makes one, whatever else it has
        offered = [one.title for one in given or () if isinstance(one, types.Command)]
        assert offered == ["Measure columns and its rewrites on this machine"]
        editor.published.clear()
        done = await editor.command("advise.measure", uri, "columns")
        assert "as written" in done["measured"]
        async with asyncio.timeout(PATIENCE_S):
            after = await editor.pushed(uri)
        # the study's machine is predicted; what runs here is said to be measured
        assert [one.message for one in after] != [one.message for one in before]

        editor.change(types.TextDocumentContentChangeWholeDocument(f"{KERNEL}\n"), uri=uri)
        with pytest.raises(JsonRpcException, match="not saved"):
            await editor.command("advise.measure", uri, "columns")
        with pytest.raises(JsonRpcException, match="the URI of an open file"):
            await editor.command("advise.measure", "file:///nowhere.py", "columns")


async def test_a_machine_of_the_studies_is_not_measured() -> None:
    async with session(capabilities(), machine="t3e") as editor:
        editor.open(KERNEL)
        (first, *_) = await editor.pushed()
        actions = await editor.actions(first.range)
        assert actions and not any(one.title.startswith("Measure") for one in actions)
