"""Names of files that no current folder and no machine changes, and what rests on them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from advisor.cli.app import main
from advisor.files import lasting_name, listed_path, project_path, project_root, reported_path

ROOT = Path(__file__).parents[2]
KERNEL = (ROOT / "examples/box_sum.py").read_text()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a folder in no project."""
    home = tmp_path.resolve() / "home"
    home.mkdir()
    if (root := project_root(str(home))) is not None:
        pytest.skip(f"temporary files lie in the project {root}")
    return home


def project(folder: Path, mark: str = ".git") -> Path:
    """Make a project with the same kernel at two depths."""
    for place in (folder, folder / "src" / "deep"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "k.py").write_text(KERNEL)
    if mark == "git":
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    elif mark.endswith(".toml"):
        (folder / mark).write_text("")
    elif mark:
        (folder / mark).mkdir()
    return folder


def ways(file: Path) -> Iterator[tuple[Path, str]]:
    """Yield folders to stand in, and how the file is named there."""
    for folder in (file.parent, file.parent.parent, Path("/"), *file.parents):
        yield folder, os.path.relpath(file, folder)
        yield folder, str(file)
    yield file.parent, f"../{file.parent.name}/./{file.name}"


@pytest.mark.parametrize("mark", [".git", ".hg", "pyproject.toml", "git"])
def test_a_file_has_one_name_in_its_project(
    mark: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project(home / "here", mark) / "src" / "deep" / "k.py"
    (home / "link").symlink_to(home / "here" / "src")
    for folder, path in (*ways(file), (home, "link/deep/k.py")):
        monkeypatch.chdir(folder)
        assert project_path(path) == lasting_name(path) == "src/deep/k.py"
        assert listed_path(path, "anywhere") == "src/deep/k.py"
        assert reported_path(path) == (str(home / "here"), "src/deep/k.py")


def test_a_repository_is_a_wider_project_than_a_package(home: Path) -> None:
    project(home / "all")
    package = project(home / "all" / "package", "pyproject.toml")
    assert project_path(str(package / "k.py")) == "package/k.py"
    # but a repository in it is one of its own: its state is a file in a submodule
    (package / "src" / ".git").write_text("gitdir: ../../.git/modules/src\n")
    assert project_path(str(package / "src/deep/k.py")) == "deep/k.py"


def test_files_in_no_project(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(home / "loose", "")
    file = home / "loose" / "src" / "deep" / "k.py"
    for folder, path in ways(file):
        monkeypatch.chdir(folder)
        assert project_path(path) is None
        assert lasting_name(path) == "k.py"
        # a list that is kept beside them finds them wherever both lie
        assert listed_path(path, str(home / "loose")) == "src/deep/k.py"
        below = file.is_relative_to(folder)
        shown = (str(folder), file.relative_to(folder).as_posix())
        assert reported_path(path) == (shown if below else (None, str(file)))


def test_what_is_read_from_a_pipe_has_its_name_everywhere(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project(home / "here") / "src")
    assert lasting_name("<stdin>") == listed_path("<stdin>", ".") == "<stdin>"
    assert reported_path("<stdin>") == (None, "<stdin>")
    # a file that an editor has not written yet
    assert lasting_name("new/k.py") == "src/new/k.py"


# --- what rests on it ---------------------------------------------------------------------


def report(capsys: pytest.CaptureFixture[str], output_format: str, path: str) -> str:
    main([path, "--machine", "t3e", "--no-cache", "--output-format", output_format])
    return capsys.readouterr().out


def test_reports_name_findings_and_files_alike_from_anywhere(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = set()
    for root in (project(home / "mine"), project(home / "theirs")):
        file = root / "src" / "deep" / "k.py"
        for folder, path in ((root, "src/deep/k.py"), (root / "src", str(file)), (home, str(file))):
            monkeypatch.chdir(folder)
            (run,) = json.loads(report(capsys, "sarif", path))["runs"]
            assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": f"{root.as_uri()}/"}}
            (result,) = run["results"]
            place = result["locations"][0]["physicalLocation"]["artifactLocation"]
            assert place == {"uri": "src/deep/k.py", "uriBaseId": "%SRCROOT%"}
            assert result["fixes"][0]["artifactChanges"][0]["artifactLocation"] == place
            (issue,) = json.loads(report(capsys, "gitlab", path))
            assert issue["location"]["path"] == "src/deep/k.py"
            (own,) = json.loads(report(capsys, "json", path))["findings"]
            hashed = result["partialFingerprints"]["primaryLocationLineHash"]
            seen.add((own["fingerprint"], hashed, issue["fingerprint"]))
    assert len(seen) == 1


def test_a_log_about_two_projects_says_which_is_which(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    roots = (project(home / "one"), project(home / "tw o%"), project(home / "loose", "") / "src")
    monkeypatch.chdir(home / "one")
    arguments = [str(root) for root in roots]
    main([*arguments, "--machine", "t3e", "--no-cache", "--output-format", "sarif"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    bases = {name: base["uri"] for name, base in run["originalUriBaseIds"].items()}
    found = set()
    for result in run["results"]:
        place = result["locations"][0]["physicalLocation"]["artifactLocation"]
        whole = bases.get(place.get("uriBaseId"), "") + place["uri"]
        found.add(unquote(urlsplit(whole).path))
    assert found == {str(file) for root in roots for file in root.rglob("*.py")}


def test_a_baseline_holds_from_anywhere_and_for_a_pipe(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for mark in (".git", ""):
        root = project(home / f"project{mark}", mark)
        monkeypatch.chdir(root / "src")
        assert main(["deep", "--machine", "t3e", "--write-baseline", "../known.json"]) == 0
        # both go to another place
        moved = root.rename(home / f"moved{mark}")
        known = str(moved / "known.json")
        for folder, path in tuple(ways(moved / "src" / "deep" / "k.py"))[:5]:
            monkeypatch.chdir(folder)
            assert main([path, "--machine", "t3e", "--no-cache", "--baseline", known]) == 0
        monkeypatch.chdir(moved)
        ended = subprocess.run(
            [sys.executable, "-m", "advisor", "-", "--stdin-filename", "src/deep/k.py", "--machine",
             "t3e", "--no-cache", "--baseline", "known.json"],
            input=KERNEL, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert (ended.returncode, ended.stderr) == (0, "")
        # the same kernel in another file is not accepted
        capsys.readouterr()
        assert main([".", "--machine", "t3e", "--no-cache", "--baseline", known]) == 1
        assert "UNCERTAIN" in capsys.readouterr().out
