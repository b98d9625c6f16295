"""Both hooks with the real pre-commit and git: a commit is stopped, fixed, and then passes.

Nothing is downloaded: the repository with the hooks is made here, and pre-commit's pip builds
the package with what the tests run on, which is lent to the hooks through ``PYTHONPATH``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytest.importorskip("pre_commit", reason="needs pre-commit, of the extra `test`")
pytest.importorskip("hatchling", reason="needs hatchling, of the extra `test`")
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

ROOT = Path(__file__).parent.parent
PACKAGED = (
    "advisor", "transforms", "costdb", "machine_profiles", "examples",
    "pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml",
)  # fmt: skip
UNCERTAIN = (ROOT / "examples" / "box_sum.py").read_text()
LOSING = UNCERTAIN.replace("b=3", "b=9")


class Project:
    """A git repository in an environment of its own."""

    def __init__(self, folder: Path, home: Path) -> None:
        folder.mkdir()
        self.folder = folder
        kept = {
            name: value
            for name, value in os.environ.items()
            # the tests may run from a hook of git's, with an editor's or a user's settings
            if not name.startswith(("GIT_", "ADVISE_", "PRE_COMMIT", "PIP_"))
        }
        self.environment = {
            **kept,
            "HOME": str(home),
            "PRE_COMMIT_HOME": str(home / "pre-commit"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            **{
                f"GIT_{who}_{what}": value
                for who in ("AUTHOR", "COMMITTER")
                for what, value in (("NAME", "Tester"), ("EMAIL", "tester@example.invalid"))
            },
            "PYTHONPATH": sysconfig.get_path("purelib"),
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as the value of --build-isolation
            "VIRTUALENV_NO_DOWNLOAD": "1",
        }
        self.run("git", "init", "--quiet", "--initial-branch=main")

    def run(self, *command: str, fails: bool = False) -> str:
        ended = subprocess.run(
            command, cwd=self.folder, env=self.environment, text=True, timeout=300,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        assert (ended.returncode != 0) == fails, ended.stdout
        return ended.stdout

    def pre_commit(self, *arguments: str, fails: bool = False) -> str:
        return self.run(sys.executable, "-m", "pre_commit", *arguments, fails=fails)

    def commit(self, message: str, *, fails: bool = False) -> str:
        self.run("git", "add", "--all")
        return self.run("git", "commit", "--quiet", "--message", message, fails=fails)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a repository whose commits both hooks look at."""
    folder = tmp_path_factory.mktemp("hooks")
    home = folder / "home"
    home.mkdir()
    hooks = Project(folder / "kernel-advisor", home)
    for name in PACKAGED:
        source, target = ROOT / name, hooks.folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    hooks.commit("The hooks")
    revision = hooks.run("git", "rev-parse", "HEAD").strip()

    project = Project(folder / "project", home)
    (project.folder / ".pre-commit-config.yaml").write_text(
        f"""\
repos:
  - repo: {hooks.folder.as_uri()}
    rev: {revision}
    hooks:
      - id: advise
        exclude: ^vendored/
      - id: advise-fix
        stages: [manual]
"""
    )
    (project.folder / "pyproject.toml").write_text(
        '[tool.advise]\nmachine = "t3e"\nexclude = ["generated"]\n'
    )
    project.pre_commit("install", "--install-hooks")
    project.commit("Use the hooks")
    return project


def test_a_losing_choice_is_stopped_fixed_and_passes(project: Project) -> None:
    kernel = project.folder / "kernel.py"
    kernel.write_text(LOSING)
    stopped = project.commit("Add a kernel", fails=True)
    assert re.search(r"ADV201 .* GAIN", stopped) and "of t3e)" in stopped
    assert "kernel.py" not in project.run("git", "ls-tree", "--name-only", "HEAD")

    fixed = project.pre_commit("run", "advise-fix", "--hook-stage", "manual", fails=True)
    assert "files were modified by this hook" in fixed
    assert kernel.read_text() != LOSING
    assert "ADV201" not in project.commit("Add a kernel")
    assert "kernel.py" in project.run("git", "ls-tree", "--name-only", "HEAD")
    again = project.pre_commit("run", "advise-fix", "--hook-stage", "manual", "--all-files")
    assert "Passed" in again
    assert ".advise_cache" not in project.run("git", "status", "--short", "--ignored=no")


def test_what_is_uncertain_passes_and_is_shown(project: Project) -> None:
    (project.folder / "uncertain.py").write_text(UNCERTAIN)
    said = project.commit("Add a kernel that may gain")
    assert re.search(r"ADV201 .* UNCERTAIN", said) and "1 uncertain" in said
    assert "uncertain.py" in project.run("git", "ls-tree", "--name-only", "HEAD")


def test_excluded_files_stay_excluded(project: Project) -> None:
    for folder in ("generated", "vendored"):
        (project.folder / folder).mkdir()
        (project.folder / folder / "kernel.py").write_text(LOSING)
    project.commit("Add what is none of our business")
    assert "generated/kernel.py" in project.run("git", "ls-tree", "-r", "--name-only", "HEAD")
    project.pre_commit(
        "run", "advise-fix", "--hook-stage", "manual", "--files", "generated/kernel.py"
    )
    assert (project.folder / "generated" / "kernel.py").read_text() == LOSING


def test_a_files_problem_stops_the_commit_with_its_line(project: Project) -> None:
    broken = project.folder / "broken.py"
    broken.write_text("# advise: kernel\ndef broken(:\n")
    assert "broken.py:2:" in project.commit("Add what does not parse", fails=True)
    broken.unlink()
    project.run("git", "reset", "--quiet")


def test_the_manifest_is_one() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-manifest", ".pre-commit-hooks.yaml"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
