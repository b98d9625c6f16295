"""The pages on editors: what they tell a user to write down is what the server accepts.

The pages on Neovim and Emacs are held to by those editors themselves.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest
from lsp_session import capabilities, session
from real_editor import PAGES, ROOT, setup

from advisor.lsp.server import AdviseServer
from advisor.lsp.settings import SECTION, Settings, read_settings

VSCODE = ROOT / "advisor" / "editors" / "vscode" / "package.json"
PYCHARM = ROOT / "advisor" / "editors" / "pycharm"


def accepted(given: Any) -> Settings:
    settings, problems = read_settings(given, Settings())
    assert problems == ()
    return settings


def table(page: str, title: str) -> set[str]:
    """The first cells of the table below a heading."""
    section = (PAGES / page).read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `([^`]+)`", section, re.MULTILINE))


def test_the_page_names_every_setting_and_command() -> None:
    server = AdviseServer("0", Settings())
    assert table("index.md", "Commands") == set(server.protocol.fm.commands)
    contributed = json.loads(VSCODE.read_text())["contributes"]["configuration"]["properties"]
    named = {name.removeprefix(f"{SECTION}.") for name in contributed}
    assert table("index.md", "Settings") == named - {"server.command"}
    for name in table("index.md", "Settings"):
        # each is known: a value that none can have is refused as that, not as unknown
        (problem,) = read_settings({name: [1]}, Settings())[1]
        assert "unknown" not in problem


def test_vs_code() -> None:
    given = json.loads(setup("vscode.md", "settings.json"))
    contributed = json.loads(VSCODE.read_text())["contributes"]
    assert given.keys() == contributed["configuration"]["properties"].keys()
    assert given.pop("advise.server.command")[1:] == ["lsp"]
    sent = {name.removeprefix(f"{SECTION}."): value for name, value in given.items()}
    assert accepted(sent) == Settings("t3e", {"N": 4096}, 1.2, True)
    titles = {f"{one['category']}: {one['title']}" for one in contributed["commands"]}
    named = set(re.findall(r"\*\*(Advise: [^*]+)\*\*", (PAGES / "vscode.md").read_text()))
    assert named and named <= titles


@pytest.mark.asyncio
async def test_helix() -> None:
    document = tomllib.loads(setup("helix.md", "languages.toml"))
    server = document["language-server"]["advise"]
    (language,) = document["language"]
    assert language["name"] == "python" and "advise" in language["language-servers"]
    assert [server["command"], *server["args"]] == ["advise", "lsp"]
    assert accepted(server["config"]) == Settings("t3e", {"N": 4096})
    # Helix hands `config` over as the server starts, and answers null when asked for a section
    options = {**server["config"], "sizes": {"N": 64}}
    async with session(capabilities(), options=options, arguments=()) as editor:
        editor.client.set_configuration({})
        editor.open()
        (found,) = await editor.pushed()
        assert "of t3e" in found.message


def test_pycharm() -> None:
    shipped = {path.name: json.loads(path.read_text()) for path in PYCHARM.glob("*.json")}
    assert set(shipped) == {"template.json", "initializationOptions.json", "settings.json"}
    for name in ("initializationOptions.json", "settings.json"):
        assert shipped[name] == json.loads(setup("pycharm.md", name))
    assert accepted(shipped["initializationOptions.json"]) == Settings("t3e", {"N": 4096})
    assert accepted(shipped["settings.json"]) == Settings(min_speedup=1.2, inlay_hints=True)
    template = shipped["template.json"]
    assert template["programArgs"] == {"default": "advise lsp"}
    (mapping,) = template["fileTypeMappings"]
    assert mapping == {
        "fileType": {"name": "Python", "patterns": ["*.py"]}, "languageId": "python"
    }  # fmt: skip


@pytest.mark.parametrize("page", sorted(path.name for path in PAGES.glob("*.md")))
def test_every_page_says_what_to_install(page: str) -> None:
    text = (PAGES / page).read_text()
    assert "pip install 'kernel-advisor[lsp]'" in text
    assert page == "index.md" or f"({page})" in (PAGES / "index.md").read_text()
