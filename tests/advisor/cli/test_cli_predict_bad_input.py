"""What is hostile or absurd, wherever it stands, is refused in one line and soon."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.advisor.cli.commands import EXAMPLES, ROOT, Program

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
HEAD = """
schema_version = 1
name = "a"
title = "A"
source = "nobody"
[parameters.N]
minimum = 1
"""
MESSAGES = """
[[messages]]
name = "rows"
count = "{count}"
bytes = 8
"""
# Generous: these take some hundredths of a second, on a machine that does other things too.
SOON_S = 5.0


def refused_soon(program: Program, *arguments: str) -> str:
    begun = time.monotonic()
    refusal = program.refusal(*arguments)
    assert time.monotonic() - begun < SOON_S
    assert len(refusal) < 500
    return refusal


def profile(**changed: object) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / "machine_profiles" / "t3e.json").read_text())
    document["name"] = "mine"
    document["lines"]["message"]["alpha_us"].update(changed)
    return document


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_in_a_description(program: Program, text: str) -> None:
    Path("a.toml").write_text(HEAD + MESSAGES.format(count=text))
    refusal = refused_soon(program, "predict", "a.toml", "-m", "paragon", "-D", "N=3")
    assert refusal.startswith("advise: a.toml: ")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_in_a_process_model(program: Program, text: str) -> None:
    Path("a.pam").write_text(f"numeric parameter N\nprocess main = delay({text})\n")
    assert "a.pam" in refused_soon(program, "predict", "a.pam", "-D", "N=3")


def test_a_sum_of_any_length_is_answered_soon(program: Program) -> None:
    Path("a.pam").write_text(
        "numeric parameter N\nprocess main = delay(sum(i = 1, 10**18) log2(N + i))\n"
    )
    begun = time.monotonic()
    assert "5.83e+19 s" in program("predict", "a.pam", "-D", "N=3").out
    assert time.monotonic() - begun < SOON_S


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_in_a_profile(program: Program, text: str) -> None:
    document = json.loads((ROOT / "machine_profiles" / "paragon.json").read_text())
    document["name"] = "mine"
    ranges = {"x": {"quantity": text, "low": 1, "high": 2}}
    document["phases"]["applications"]["pstswm"]["ranges"] = ranges
    Path("a.json").write_text(json.dumps(document))
    given = ("-D", "problem=T42", "-D", "algorithm=TH", "-D", "PX=4", "-D", "PY=4")
    pstswm = str(EXAMPLES / "pstswm" / "pstswm.toml")
    refused_soon(program, "predict", pstswm, "-m", "a.json", *given)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_in_a_condition(program: Program, text: str) -> None:
    Path("a.pam").write_text("numeric parameter N\nprocess main = delay(N)\n")
    refused_soon(program, "choose", "a.pam", "--over", "N=1,2", "--where", text)


@pytest.mark.parametrize("text", ["__import__('os')", "9**9**9**9", "nan", "-1", "1e999", "((1))"])
def test_in_a_binding(program: Program, text: str) -> None:
    Path("a.pam").write_text("numeric parameter N\nprocess main = delay(N)\n")
    Path("a.toml").write_text(HEAD + MESSAGES.format(count="N"))
    assert f"N = {text}" in refused_soon(program, "predict", "a.pam", "-D", f"N={text}")
    refused_soon(program, "predict", "a.toml", "-m", "paragon", "-D", f"N={text}")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, "5", None, True, [1], 10**400])
def test_a_number_in_a_profile(program: Program, value: object) -> None:
    Path("a.json").write_text(json.dumps(profile(value=value, low=value, high=value)))
    place = "/lines/message/alpha_us"
    sorts = str(EXAMPLES / "sorts" / "sorts.toml")
    assert place in refused_soon(program, "predict", sorts, "-m", "a.json")
    assert place in refused_soon(program, "machine", "import", "a.json")
    ended = program("machine", "validate", "a.json")
    assert ended.code == 2 and place in ended.out


@pytest.mark.parametrize("time_s", ["-2", "0 - 1", "-N/N"])
def test_a_negative_time_in_a_process_model(program: Program, time_s: str) -> None:
    Path("a.pam").write_text(f"numeric parameter N\nprocess main = delay({time_s})\n")
    assert "negative" in refused_soon(program, "predict", "a.pam", "-D", "N=3")


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
