"""What is hostile or absurd, wherever it stands, is refused in one line and soon."""

import json
import time
from pathlib import Path

import pytest

from tests.advisor.cli.commands import EXAMPLES, Program

DEEP = "(" * 100_000 + "N" + ")" * 100_000
TEXTS = {
    "code": "__import__('os')",
    "deep": DEEP,
    "power": "9**9**9**9",
    "nan": "nan",
    "infinite": "1e999",
    "attribute": "N.__class__",
    "nothing": "1/0*N",
}
# Of this process: they take some hundredths, whatever else the machine does.
SOON_S = 5.0


def refused_soon(program: Program, *arguments: str) -> str:
    begun = time.process_time()
    refusal = program.refusal(*arguments)
    assert time.process_time() - begun < SOON_S
    assert len(refusal) < 500
    return refusal


def test_a_sum_of_any_length_is_answered_soon(program: Program) -> None:
    Path("a.pam").write_text(
        "numeric parameter N\nprocess main = delay(sum(i = 1, 10**18) log2(N + i))\n"
    )
    begun = time.process_time()
    assert "5.83e+19 s" in program("predict", "a.pam", "-D", "N=3").out
    assert time.process_time() - begun < SOON_S


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_in_a_condition(program: Program, text: str) -> None:
    Path("a.pam").write_text("numeric parameter N\nprocess main = delay(N)\n")
    refused_soon(program, "choose", "a.pam", "--over", "N=1,2", "--where", text)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.toml", "x = " + "[" * 100_000),
        ("a.toml", "kind = 'other'"),
        ("a.toml", "\x00"),
        ("a.toml", "x = '" + "y" * 2_000_000 + "'"),
        ("a.pam", "process main = " + "{" * 100_000),
        ("a.pam", "process main = delay(" + "-" * 40_000 + "1)"),
        ("a.pam", "process main = " + ";".join(["delay(1)"] * 50_000)),
        ("a.pam", "process main = main"),
        ("a.pam", "\x00"),
        ("a.pam", ""),
        ("a.py", "\x00"),
        ("a.py", "# advise: kernel\ndef f(:"),
        ("a.json", "{" * 100_000),
    ],
)
def test_files_that_are_nothing(program: Program, name: str, content: str) -> None:
    Path(name).write_text(content)
    assert "a." in refused_soon(program, "predict", name, "-m", "t3e")


def test_files_that_are_no_text(program: Program) -> None:
    for name in ("a.toml", "a.pam", "a.py"):
        Path(name).write_bytes(b"\xff\xfe# advise: kernel")
        assert name in refused_soon(program, "predict", name, "-m", "t3e")
        Path(name).unlink()
        Path(name).mkdir()
        assert name in refused_soon(program, "predict", name, "-m", "t3e")


def test_descriptions_can_be_checked_without_a_machine(program: Program) -> None:
    good = str(EXAMPLES / "pstswm" / "pstswm.toml")
    assert program("predict", "--validate", good).code == 0
    Path("bad.toml").write_text(Path(good).read_text().replace("count =", "coutn ="))
    ended = program("predict", "--validate", good, "bad.toml")
    assert (ended.code, ended.err) == (2, "")
    assert all(line.startswith("bad.toml: /") for line in ended.out.splitlines())
    found = program("predict", "--validate", "bad.toml", "--output-format", "json")
    assert found.code == 2
    assert json.loads(found.out)["problems"] == ended.out.splitlines()
    assert "is for descriptions" in program.refusal("predict", "--validate", "k.py")
    assert "No such file" in program.refusal("predict", "--validate", "none.toml")
