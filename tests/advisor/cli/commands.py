"""Runs the program in this process, as the tests of its commands do."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from advisor.cli.app import main

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
SCHEMAS = ROOT / "advisor" / "report"
KERNEL = """
from typing import Annotated
import numpy as np
from numpy.typing import NDArray
from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(row="PX", col="PY")


@kernel(N=1000)
def moved(
    image: Annotated[NDArray[np.int32], Dist("N", "N", Block("row"), Block("col"), on=mesh)],
) -> None:
    image[1:, :] = image[:-1, :]
"""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


Advise = Callable[..., Ended]


def refused(ended: Ended, *parts: str) -> None:
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1, ended.err
    assert ended.err.startswith("advise: ")
    for part in parts:
        assert part in ended.err


@dataclass(frozen=True)
class Program:
    """The program, with a data directory of its own and no settings from outside."""

    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str) -> Ended:
        code = main(arguments)
        shown = self.capsys.readouterr()
        return Ended(code, shown.out, shown.err)

    def json(self, *arguments: str) -> Any:
        """Return the document of a run that must succeed, checked against its schema."""
        ended = self(*arguments, "--output-format", "json")
        assert (ended.code, ended.err) == (0, "")
        document = json.loads(ended.out)
        name = {"predict": "prediction", "choose": "choices"}.get(arguments[0])
        if name is not None:
            schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
            jsonschema.Draft202012Validator(schema).validate(document)
        return document

    def refusal(self, *arguments: str) -> str:
        """Return the one line of a run that must be refused."""
        ended = self(*arguments)
        assert (ended.code, ended.out) == (2, ""), ended
        assert ended.err.count("\n") == 1, ended.err
        assert "Traceback" not in ended.err
        return ended.err


def isolated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> Program:
    """Return the program in an empty directory."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ADVISE_DATA_DIR", str(folder / "data"))
    monkeypatch.delenv("ADVISE_MACHINE", raising=False)
    return Program(capsys)
