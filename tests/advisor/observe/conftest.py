"""A user who types commands in a folder of files, and what is kept of their runs."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from advisor.cli.app import main
from advisor.codec import decode
from advisor.observed import FUNCTION, MESSAGE, SEEN, Seen, SeenMessages

BIN = Path(sys.executable).parent
RANKS = [str(BIN / "mpiexec"), "-n", "2"]


class User:
    """Somebody with a folder of files, who types commands there."""

    def __init__(
        self, folder: Path, patched: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]
    ) -> None:
        self.folder, self.patched, self.captured = folder, patched, captured
        kept = {n: v for n, v in os.environ.items() if not n.startswith("ADVISE_")}
        kept.pop("PYTHONPATH", None)
        self.environment = {
            **kept,
            "ADVISE_DATA_DIR": str(folder / "kept" / "data"),
            "ADVISE_MACHINE": "t3e",
        }

    def types(
        self, *command: str, ranks: int = 1, code: int = 0, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*(RANKS if ranks > 1 else []), str(BIN / command[0]), *command[1:]],
            cwd=self.folder,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == code, (done.stdout, done.stderr)
        return done

    def advises(
        self, *arguments: str, ranks: int = 1, code: int = 0
    ) -> subprocess.CompletedProcess[str]:
        """Run what runs programs as a process; what only reads, in this one."""
        if arguments[0] == "run":
            return self.types("advise", *arguments, ranks=ranks, code=code)
        with self.patched.context() as here:
            here.chdir(self.folder)
            for name, value in self.environment.items():
                here.setenv(name, value)
            ended = main(arguments)
        out, err = self.captured.readouterr()
        assert ended == code, (out, err)
        return subprocess.CompletedProcess(arguments, ended, out, err)

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return name

    def observed(self, kind: str = "") -> dict[str, Any]:
        with sqlite3.connect(self.folder / "kept" / "data" / "advise.sqlite3") as store:
            rows = store.execute("SELECT kind, name, document FROM observations")
            kinds = {FUNCTION: Seen, MESSAGE: SeenMessages}
            return {
                name: decode(kinds[of], json.loads(text)[SEEN])
                for of, name, text in rows
                if kind in ("", of)
            }


@pytest.fixture
def user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> User:
    return User(tmp_path, monkeypatch, capsys)
