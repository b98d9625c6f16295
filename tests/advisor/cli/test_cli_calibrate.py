"""``advise calibrate`` and the machine it makes the default."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from advisor.config.files import CommandError
from advisor.lsp.protocol import OptionsOfFiles, Settings
from costdb.documents import store_profile
from costdb.machines import load_machine
from tests.advisor.cli.commands import Advise, refused


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def calibrate_as(name: str) -> None:
    store_profile({**load_machine("t3e").document, "name": name}, "test")


def test_the_editor_means_the_calibrated_machine_too(tmp_path: Path) -> None:
    path = str(tmp_path / "k.py")
    calibrate_as("here")
    options = OptionsOfFiles(Settings())
    for _ in range(2):
        found = options.of(path)
        assert found is not None
        assert found.machine == "here"


def test_a_store_that_cannot_be_read_is_one_line(advise: Advise, data: Path) -> None:
    Path("k.py").write_text("kernel SLOW")
    calibrate_as("here")
    import sqlite3

    with sqlite3.connect(data / "advise.sqlite3") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    refused(advise("k.py", machine=None), "newer")
    with pytest.raises(CommandError, match="newer"):
        OptionsOfFiles(Settings()).of(str(data / "k.py"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--name", "../here"), '"../here" is not a name'),
        (("--name", "Here"), '"Here" is not a name'),
        (("--name", ""), '"" is not a name'),
        (("--name", "t3e"), "built-in"),
        (("--report", "no/such/page.html"), "No such file"),
        (("--report", "."), "Is a directory"),
    ],
)
def test_nothing_is_measured_for_what_could_not_be_kept(
    advise: Advise, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], said: str
) -> None:
    from costdb.calibration import campaign

    def measured(*_: object) -> NoReturn:
        raise AssertionError("a measurement has begun")

    monkeypatch.setattr(campaign, "alone", measured)
    refused(advise("calibrate", *options, machine=None), said)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "next: advise validate tells how far its predictions hold\n"),
        (("--quick",), "hold; advise calibrate in three minutes measures more"),
        (("--quick", "--name", "me"), "--machine me tells how far its predictions hold; advise"),
    ],
)
def test_the_end_says_what_to_do_next(
    advise: Advise, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], told: str
) -> None:
    from advisor.cli.commands import machine as calibrate

    nothing_said = SimpleNamespace(sections=(), skipped=())
    monkeypatch.setattr(calibrate, "_calibrated", lambda request, watcher: nothing_said)
    found = advise("calibrate", *options, machine=None)
    assert found.code == 0
    assert told in found.err
