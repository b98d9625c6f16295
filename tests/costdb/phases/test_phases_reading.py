"""Application descriptions: what is read, and that every wrong one is refused in one line."""

from pathlib import Path

import pytest

from costdb.choosing import SubjectError
from costdb.documents import description_problems
from tests.costdb.phases.choices import load_application, parse_application

GOOD = """
schema_version = 1
name = "stencil"
title = "A stencil"
source = "made up"
repeat = "STEPS"

[parameters.problem]
sets = { small = { N = 100, STEPS = 10 }, large = { N = 1000, STEPS = 10 } }
default = "small"

[parameters.method]
words = ["fast", "slow"]

[parameters.P]
minimum = 1
maximum = "N"

[[derived]]
[derived.define]
rows = "ceil(N/P)"

[[derived]]
when = { method = ["slow"] }
[derived.define]
passes = 3

[[constraints]]
require = "P <= N"
because = "a processor needs a row"

[[phases]]
name = "update"
unit = "flop"
count = "5*rows*N"
rate = "update"

[[phases]]
name = "extra"
when = { method = ["slow"] }
unit = "byte"
count = "passes*rows"
per_op = "a + b*N"
rate = "extra"

[[messages]]
name = "halo"
count = 2
bytes = "8*N"
"""


def read(text: str):
    return parse_application(text.encode(), "app.toml")


def test_a_good_description_keeps_to_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "app.toml"
    path.write_text(GOOD)
    assert description_problems(path) == ()


BAD = {
    "unknown key": (
        'count = "5*rows*N"',
        'coutn = "5*rows*N"',
        "/phases/0/coutn: unknown key: nearest is count",
    ),
    "missing key": ('unit = "flop"\n', "", '/phases/0: "unit" is missing'),
    "bad expression": (
        '"5*rows*N"',
        '"5*rows*"',
        "/phases/0/count: column 8: the expression ends too early",
    ),
    "attribute access": ('"5*rows*N"', "\"__import__('os')\"", "/phases/0/count: "),
    "towering power": ('"5*rows*N"', '"9**9**9**9"', "/phases/0/count: "),
    "not a number": ("count = 2", "count = nan", "/messages/0/count: expected a finite number"),
    "spelt not a number": ("count = 2", 'count = "nan"', "/messages/0/count: "),
    "infinite": ("count = 2", "count = inf", "/messages/0/count: expected a finite number"),
    "undefined name": ('"8*N"', '"8*M"', "/messages/0: nothing defines M"),
    "unknown word": (
        'when = { method = ["slow"] }\nunit',
        'when = { method = ["slw"] }\nunit',
        "/phases/1/when/method/0: method is never slw",
    ),
    "condition on a number": (
        'when = { method = ["slow"] }\nunit',
        'when = { P = ["slow"] }\nunit',
        "/phases/1/when/P: is not a parameter that takes words",
    ),
    "negative size": ("N = 100,", "N = -100,", "/parameters/problem/sets/small/N: a size must be"),
    "fractional size": (
        "N = 100,",
        "N = 1.5,",
        "/parameters/problem/sets/small/N: expected a whole",
    ),
    "shadowed size": ("rows = ", "N = ", "/derived/0/define/N: is a parameter or a size already"),
    "unit": ('unit = "byte"', 'unit = "furlong"', "/phases/1/unit: furlong is not one of flop"),
    "version": ("schema_version = 1", "schema_version = 2", "/schema_version: expected 1"),
    "default": (
        'default = "small"',
        'default = "tiny"',
        "/parameters/problem/default: tiny is not",
    ),
    "not a table": (
        "[parameters.P]\nminimum = 1\n",
        "[parameters]\nP = 3\n#",
        "/parameters/P: expected a table",
    ),
    "broken TOML": (
        "schema_version = 1",
        "schema_version = ",
        "not TOML: Invalid value (at line 2",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_description_is_refused_in_one_line_with_its_place(case: str) -> None:
    old, new, expected = BAD[case]
    assert GOOD.count(old) == 1
    with pytest.raises(SubjectError) as refusal:
        read(GOOD.replace(old, new))
    message = str(refusal.value)
    assert message.startswith("app.toml: ")
    assert expected in message
    assert "\n" not in message


def test_hostile_documents_are_refused() -> None:
    deep = "(" * 100_000 + "1" + ")" * 100_000
    for text in (
        GOOD.replace('"5*rows*N"', f'"{deep}"'),
        GOOD + "x = " + "[" * 100_000 + "]" * 100_000,
        "\n" * 2_000_000,
    ):
        with pytest.raises(SubjectError) as refusal:
            read(text)
        assert len(str(refusal.value)) < 300
    with pytest.raises(SubjectError, match="not UTF-8"):
        parse_application(b"\xff\xfe", "app.toml")


def test_an_unreadable_path_is_named(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path / "none.toml", "No such file or directory"),
        (tmp_path, "Is a directory"),
    ):
        for read in (load_application, description_problems):
            with pytest.raises(SubjectError) as refusal:
                read(path)
            assert str(refusal.value) == f"{path}: {reason}"


def test_the_full_check_names_the_first_breach(tmp_path: Path) -> None:
    path = tmp_path / "app.toml"
    path.write_text(GOOD.replace('unit = "flop"', 'unit = "mile"').replace("count = 2", "cont = 2"))
    (problem,) = description_problems(path)
    assert problem.split(": ")[1] == "/phases/0/unit"


def test_the_full_check_finds_names_that_one_variant_lacks(tmp_path: Path) -> None:
    path = tmp_path / "app.toml"
    path.write_text(GOOD.replace('"5*rows*N"', '"5*rows*passes"'))
    (problem,) = description_problems(path)
    assert "/phases/0: passes is not defined for this choice" in problem
    path.write_text(GOOD.replace("passes = 3", "passes = 3\nrows = 1"))
    small, large = description_problems(path)
    assert "/derived/1/define/rows: rows is defined twice for problem = small" in small
    assert "method = slow" in large
