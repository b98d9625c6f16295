"""From a fresh clone: the README's two commands, then pre-commit in a scratch repository, then an
editor session, all with what those commands have installed.

Packages come from the registry, which takes most of a minute, so this runs in CI, and elsewhere
when ``ADVISE_TEST_CLONE`` is set. ``test_pre_commit`` and ``lsp`` hold the same without a network.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Tester"), ("EMAIL", "tester@example.invalid"))
}
LOSING = (ROOT / "examples" / "box_sum.py").read_text().replace("b=3", "b=9")

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="needs git"),
    pytest.mark.skipif(
        not (os.environ.get("CI") or os.environ.get("ADVISE_TEST_CLONE")),
        reason="installs from the registry: runs in CI, or where ADVISE_TEST_CLONE is set",
    ),
]


def environment(home: Path) -> dict[str, str]:
    """The environment of somebody who has nothing of this project yet."""
    foreign = ("GIT_", "ADVISE_", "PRE_COMMIT", "PYTEST_", "PYTHONPATH", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {
        **kept,
        **IDENTITY,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "PRE_COMMIT_HOME": str(home / "pre-commit"),
        "XDG_DATA_HOME": str(home / "data"),
    }


def run(command: str, folder: Path, home: Path, *, code: int = 0) -> str:
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command], cwd=folder, env=environment(home), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False,
    )  # fmt: skip
    assert ended.returncode == code, f"$ {command}\n{ended.stdout}"
    return ended.stdout


def documented(marker: str) -> str:
    """A command of the README."""
    text = (ROOT / "README.md").read_text()
    block = re.search(rf"<!-- {marker} -->\n```sh\n(.*?)\n```", text, re.DOTALL)
    assert block is not None
    return block[1]


def copied(folder: Path, home: Path) -> Path:
    """A clone of what is here, as it would be once it is committed."""
    origin = folder / "origin"
    listed = run("git ls-files -z --cached --others --exclude-standard", ROOT, home)
    for name in listed.split("\0"):
        if name and (ROOT / name).is_file():
            (origin / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, origin / name)
    run("git init -q -b main && git add -A && git commit -q -m 'All of it'", origin, home)
    run("git clone -q origin kernel-advisor", folder, home)
    return folder / "kernel-advisor"


def test_from_a_fresh_clone_to_the_editor(tmp_path: Path) -> None:
    clone = copied(tmp_path, tmp_path)

    shown = run(documented("run-command"), clone, tmp_path)
    # wherever its lines are broken
    told = " ".join(shown.split())
    assert re.search(r"ADV504 .*GAIN .*x .*one process on node2026", told), shown
    # measured beside predicted
    assert re.search(r"distances as written equal .* ADV504 equal .* ranked right: ", told), shown

    # the command as it stands, on some of the tests
    tested = f"{documented('test-command')} tests/test_readme.py tests/test_architecture.py"
    assert re.search(r"\d+ passed", run(tested, clone, tmp_path))

    commits_are_looked_at(clone, tmp_path)
    asyncio.run(an_editor_is_served(clone))


def commits_are_looked_at(clone: Path, home: Path) -> None:
    """A losing choice is stopped, fixed, and passes."""
    project = home / "project"
    project.mkdir()
    (project / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {clone.as_uri()}\n    rev: HEAD\n"
        "    hooks:\n      - id: advise\n      - id: advise-fix\n        stages: [manual]\n"
    )
    (project / "pyproject.toml").write_text('[tool.advise]\nmachine = "t3e"\n')
    pre_commit = clone / ".venv" / "bin" / "pre-commit"
    run("git init -q -b main", project, home)
    run(f"{pre_commit} autoupdate --bleeding-edge && {pre_commit} install", project, home)
    (project / "kernel.py").write_text(LOSING)
    assert "ADV201" in run("git add -A && git commit -q -m 'A kernel'", project, home, code=1)
    run(f"{pre_commit} run advise-fix --hook-stage manual", project, home, code=1)
    assert (project / "kernel.py").read_text() != LOSING
    run("git add -A && git commit -q -m 'A kernel'", project, home)
    assert "kernel.py" in run("git ls-tree --name-only HEAD", project, home)


async def an_editor_is_served(clone: Path) -> None:
    """The program that the commands installed shows the finding and rewrites it."""
    from tests.lsp.lsp_session import CODE, KERNEL, capabilities, session

    program = str(clone / ".venv" / "bin" / "advise")
    async with session(capabilities(), command=(program, "lsp")) as editor:
        editor.open()
        (found,) = await editor.pushed()
        assert found.code == CODE
        offered, _ = await editor.actions(found.range)
        resolved = await editor.client.code_action_resolve_async(offered)
        assert resolved.edit is not None
        assert editor.applied(resolved.edit) == KERNEL.replace(
            'None, Block("rank")', 'Block("rank"), None'
        )
