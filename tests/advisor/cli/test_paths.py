"""Which files a folder stands for: those that git does not ignore, by git's own word."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.cli.scope import python_files

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

FILES = (
    "a.py",
    "b.ipynb",
    "build/a.py",
    "src/a.py",
    "src/build/c.py",
    "src/x/y/a.py",
    "src/[b].py",
)
PATTERNS = (
    r"a.py /a.py *.py !a.py build build/ /build/ src/ src/* src/**/a.py **/y/ !src/x x/y x? [ab].*"
    r" [!a].py [^s]rc \[b].py # src/build/ *.ipynb !b.ipynb src/** **"
)
LINES = st.lists(st.sampled_from(PATTERNS.split(" ")), max_size=5)


@given(LINES, LINES, LINES)
def test_what_git_ignores_is_left_out(
    tmp_path_factory: pytest.TempPathFactory, outer: list[str], inner: list[str], own: list[str]
) -> None:
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", root], check=True)
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / ".gitignore").write_text("\n".join(outer) + "  \n")
    (root / "src" / ".gitignore").write_text("\n".join(inner))
    (root / ".git" / "info" / "exclude").write_text("\n".join(own))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    listed = subprocess.run(
        ["git", "-c", "core.excludesFile=", "ls-files", "-z", "-o", "--exclude-standard"],
        cwd=root,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    wanted = {name for name in listed.stdout.split("\0") if name.endswith((".py", ".ipynb"))}
    complaints: list[Exception] = []
    found = {os.path.relpath(file, root) for file in python_files([str(root)], complaints.append)}
    assert found == wanted


def test_a_file_that_is_named_is_read_all_the_same(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("a.py\n")
    (tmp_path / "a.py").touch()
    named = str(tmp_path / "a.py")
    assert list(python_files([named], lambda error: None)) == [named]
