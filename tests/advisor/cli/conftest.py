"""The program in an empty directory, on a made-up engine."""

import io
import os
import sys
from pathlib import Path

import pytest

from advisor import engine
from advisor.cli.app import main
from tests.advisor.cli import marker_engine
from tests.advisor.cli.commands import Advise, Ended, Program, isolated


@pytest.fixture
def program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Program:
    """Return the program in an empty directory, on the engine."""
    return isolated(monkeypatch, capsys, tmp_path)


@pytest.fixture
def advise(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Advise:
    """Return a function that runs the program in an empty directory on a made-up engine."""
    monkeypatch.setattr(engine, "check_source", marker_engine.check_source, raising=False)
    monkeypatch.setattr(engine, "needs_reading", marker_engine.needs_reading, raising=False)
    monkeypatch.setattr(engine, "needs_decoding", marker_engine.needs_decoding, raising=False)
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("ADVISE_")]:
        if name != "ADVISE_DATA_DIR":
            monkeypatch.delenv(name)

    def run(*arguments: str, machine: str | None = "t3e", stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        chosen = [] if machine is None else ["--machine", machine]
        code = main([*arguments, *chosen])
        shown = capsys.readouterr()
        return Ended(code, shown.out, shown.err)

    return run
