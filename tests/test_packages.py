"""What is built for others holds all that it needs: the wheel to run, the archive to be tested."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from configparser import ConfigParser
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="needs hatchling, of the extra `test`")

ROOT = Path(__file__).parent.parent
PACKAGES = ("advisor", "costdb", "machine_profiles", "transforms")

pytestmark = pytest.mark.skipif(
    shutil.which("git") is None or not (ROOT / ".git").exists(), reason="needs a clone"
)


@pytest.fixture(scope="module")
def listed() -> frozenset[str]:
    """The files of this clone, those included that are not committed yet."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return frozenset(name for name in found.stdout.split("\0") if name and (ROOT / name).is_file())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, listed: frozenset[str]) -> Path:
    source = tmp_path_factory.mktemp("source")
    for name in listed:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    folder = tmp_path_factory.mktemp("built")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=source, check=True, capture_output=True,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    (path,) = built.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_every_file_of_its_packages(
    wheel: zipfile.ZipFile, listed: frozenset[str]
) -> None:
    inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    own = {name for name in listed if name.partition("/")[0] in PACKAGES}
    examples = {f"advisor/{name}" for name in listed if name.startswith("examples/")}
    assert inside == own | examples
    assert {f"{package}/py.typed" for package in PACKAGES} <= inside


def test_every_entry_point_names_a_module_of_the_wheel(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    points = ConfigParser(delimiters=("=",))
    points.read_string(wheel.read(name).decode())
    modules = [
        value.partition(":")[0] for group in points.sections() for value in points[group].values()
    ]
    assert len(modules) > 20
    for module in modules:
        assert f"{module.replace('.', '/')}.py" in wheel.namelist(), module


def test_the_archive_holds_all_that_tests_and_documentation_read(
    built: Path, listed: frozenset[str]
) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert inside == listed | {"PKG-INFO"}
