"""The page on editors: what it tells a user to write down is what the server accepts.

What it says of Neovim and Emacs is held to by those editors themselves.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest
from lsp_session import capabilities, session
from real_editor import PAGE, ROOT, section, setup

from advisor.lsp.protocol import SECTION, Settings, read_settings
from advisor.lsp.server import AdviseServer

VSCODE = ROOT / "advisor" / "editors" / "vscode" / "package.json"
PYCHARM = ROOT / "advisor" / "editors" / "pycharm"


def accepted(given: Any) -> Settings:
    settings, problems = read_settings(given, Settings())
    assert problems == ()
    return settings


def table(heading: str) -> set[str]:
    """The first cells of the table whose first heading is this."""
    rows = PAGE.read_text().partition(f"| {heading} |")[2].partition("\n\n")[0]
    return set(re.findall(r"^\| `([^`]+)`", rows, re.MULTILINE))


def test_the_page_names_every_setting_and_command() -> None:
    server = AdviseServer("0", Settings())
    assert table("command") == set(server.protocol.fm.commands)
    contributed = json.loads(VSCODE.read_text())["contributes"]["configuration"]["properties"]
    named = {name.removeprefix(f"{SECTION}.") for name in contributed}
    assert table("setting") == named - {"server.command"}
    for name in table("setting"):
        # each is known: a value that none can have is refused as that, not as unknown
        (problem,) = read_settings({name: [1]}, Settings())[1]
        assert "unknown" not in problem


def test_vs_code() -> None:
    given = json.loads(setup("VS Code", "settings.json"))
    contributed = json.loads(VSCODE.read_text())["contributes"]
    assert given.keys() == contributed["configuration"]["properties"].keys()
    assert given.pop("advise.server.command")[1:] == ["lsp"]
    sent = {name.removeprefix(f"{SECTION}."): value for name, value in given.items()}
    assert accepted(sent) == Settings("t3e", {"N": 4096}, 1.2, True)
    titles = {f"{one['category']}: {one['title']}" for one in contributed["commands"]}
    named = set(re.findall(r"\*\*(Advise: [^*]+)\*\*", section("VS Code")))
    assert named and named <= titles


@pytest.mark.asyncio
async def test_helix() -> None:
    document = tomllib.loads(setup("Helix", "languages.toml"))
    server = document["language-server"]["advise"]
    (language,) = document["language"]
    assert language["name"] == "python" and "advise" in language["language-servers"]
    assert [server["command"], *server["args"]] == ["advise", "lsp"]
    assert accepted(server["config"]) == Settings("t3e", {"N": 4096})
    # Helix hands `config` over as the server starts, and answers null when asked for a section
    options = {**server["config"], "sizes": {"N": 64}}
    async with session(capabilities(), options=options, machine=None) as editor:
        editor.client.set_configuration({})
        editor.open()
        (found,) = await editor.pushed()
        assert "of t3e" in found.message


def test_pycharm() -> None:
    shipped = {path.name: json.loads(path.read_text()) for path in PYCHARM.glob("*.json")}
    assert set(shipped) == {"template.json", "initializationOptions.json", "settings.json"}
    for name in ("initializationOptions.json", "settings.json"):
        assert shipped[name] == json.loads(setup("PyCharm", name))
    assert accepted(shipped["initializationOptions.json"]) == Settings("t3e", {"N": 4096})
    assert accepted(shipped["settings.json"]) == Settings(min_speedup=1.2, inlay_hints=True)
    template = shipped["template.json"]
    assert template["programArgs"] == {"default": "advise lsp"}
    (mapping,) = template["fileTypeMappings"]
    assert mapping == {
        "fileType": {"name": "Python", "patterns": ["*.py"]}, "languageId": "python"
    }  # fmt: skip


@pytest.mark.parametrize("editor", ["VS Code", "Neovim", "Emacs", "PyCharm", "Helix", "Others"])
def test_the_page_has_every_editor(editor: str) -> None:
    assert section(editor).strip()
    assert "pip install '.[lsp]'" in PAGE.read_text()
