"""A team's machine lies in its repository: nothing hangs on whose computer it is."""

from pathlib import Path

import pytest

from costdb.documents import store_profile
from costdb.evaluate import Ratio
from costdb.store.database import writing
from costdb.store.evidence import Evidence, add_evidence
from tests.advisor.cli.commands import EXAMPLES, Program

KERNEL = (EXAMPLES / "box_sum.py").read_text()
HOOK = (
    "check",
    "--force-exclude",
    "--named-machine",
    "--fail-above",
    "1.2",
    "--output-format",
    "concise",
    "src/k.py",
)


@pytest.fixture
def repository(program: Program, tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "profiles").mkdir()
    (tmp_path / "src" / "k.py").write_text(KERNEL)
    return tmp_path


def calibrated(name: str) -> None:
    """Keep a machine as calibrated, with runs of the kernel that gained a lot."""
    from costdb.machines import load_machine

    store_profile({**load_machine("t3e").document, "name": name}, "calibration", replace=True)
    for machine in (name, "t3e"):
        circumstances = {
            "date": "2026-11-21", "ranks": "1", "file": "k.py", "title": "", "results": "differ",
        }  # fmt: skip
        gain = Ratio(8.0, 9.0, 10.0)
        one = Evidence(machine, "box_sum", "ADV201", {"N": 1000, "b": 3}, gain, gain, circumstances)
        with writing() as connection:
            add_evidence(connection, one)


def test_what_is_exported_is_everybodys_machine(
    program: Program, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = program("machine", "export", "T3E", "-o", "profiles/ci.json")
    assert said.code == 0 and 'machine = "profiles/ci.json"' in said.err
    (repository / "pyproject.toml").write_text('[tool.advise]\nmachine = "profiles/ci.json"\n')
    elsewhere = program(*HOOK)
    assert elsewhere.code == 0 and "16 ranks of t3e" in elsewhere.out
    calibrated("here")
    assert program(*HOOK) == elsewhere
    # without the option what was measured here counts
    assert program(*HOOK[:2], *HOOK[3:]).out != elsewhere.out
    # the path counts from the file that says it
    monkeypatch.chdir(repository / "src")
    assert "16 ranks of t3e" in program(*HOOK[:-1], "k.py").out


def test_where_no_machine_is_named_a_line_says_so(program: Program, repository: Path) -> None:
    for _ in range(2):
        said = program(*HOOK)
        assert (said.code, said.out, said.err.count("\n")) == (0, "", 1)
        assert "no machine is named here" in said.err and "nothing was checked" in said.err
        calibrated("here")
    assert program("check", "src/k.py").code != 2
    assert program(*HOOK, "--machine", "t3e").out


def test_the_hooks_ask_for_that() -> None:
    hooks = (EXAMPLES.parent / ".pre-commit-hooks.yaml").read_text()
    assert hooks.count("--named-machine") == hooks.count("- id:") == 2
