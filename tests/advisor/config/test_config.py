"""The configuration: what is read, from where, and what is refused with which line."""

import json
import sys
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.config import files
from advisor.config.files import (
    OUTPUT_FORMATS,
    ConfigError,
    Layer,
    Origin,
    RuleOptions,
    configuration_of,
    configurations,
    line_of,
    matches,
    read_configuration,
    settle,
)
from advisor.report.model import FORMATS

SCHEMA = json.loads(
    resources.files("advisor.config").joinpath("config.schema.json").read_text("utf-8")
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture(autouse=True)
def in_empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configure(text: str, folder: str = ".") -> Path:
    path = Path(folder, "pyproject.toml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# --- the reader and the schema say the same -----------------------------------------------

_JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(allow_nan=False), st.text(max_size=3),
    st.lists(st.integers(), max_size=2), st.dictionaries(st.text(max_size=3), st.integers()),
)  # fmt: skip
_POSITIVE = st.one_of(st.integers(1, 10**18), st.floats(0, 1e18, exclude_min=True, allow_nan=False))
_CODES = st.lists(st.sampled_from(("ADV", "ADV2", "ADV201", "XYZ9")), max_size=2)
_PATHS = st.lists(st.sampled_from(("*.py", "src/**", "a b")), min_size=1, max_size=2)


def _mostly(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    # one in eight is wrong, or nearly no document would be right
    return st.integers(0, 7).flatmap(lambda draw: good if draw else _JUNK)


def _table(members: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    known = st.fixed_dictionaries({}, optional={k: _mostly(v) for k, v in members.items()})
    unknown = st.dictionaries(st.sampled_from(("Machine", "min_speedup", "")), _JUNK, max_size=1)
    both = st.tuples(known, unknown).map(lambda two: {**two[0], **two[1]})
    return st.integers(0, 9).flatmap(lambda draw: known if draw else both)


_RULES = st.dictionaries(
    st.sampled_from(("ADV201", "repeated-shifts", "Bad-Name", "ADV201\n")),
    _mostly(_table({"min-speedup": _POSITIVE, "fail-above": _POSITIVE})),
    max_size=2,
)
_SIZES = st.dictionaries(
    st.sampled_from(("N", "message.alpha", "_x", "2N", "N\n", "")), _mostly(_POSITIVE), max_size=2
)
_SETTINGS = {
    "machine": st.sampled_from(("t3e", "my.json")),
    "sizes": _SIZES,
    "select": _CODES,
    "ignore": _CODES,
    "extend-select": _CODES,
    "min-speedup": _POSITIVE,
    "fail-above": _POSITIVE,
    "rules": _RULES,
}
_DOCUMENTS = _mostly(
    _table(
        {
            **_SETTINGS,
            "exclude": _PATHS,
            "output-format": st.sampled_from(OUTPUT_FORMATS),
            "overrides": st.lists(_mostly(_table({"paths": _PATHS, **_SETTINGS})), max_size=2),
        }
    )
)


def _accepted(document: Any) -> bool:
    try:
        configuration_of(document, "/x/pyproject.toml")
    except files._Problem:
        return False
    return True


@given(_DOCUMENTS)
@settings(max_examples=120, deadline=None)
def test_schema_and_reader_accept_the_same(document: Any) -> None:
    assert _accepted(document) == VALIDATOR.is_valid(document)


def test_both_outcomes_are_tried() -> None:
    from hypothesis import find as find_example

    assert find_example(_DOCUMENTS, lambda one: _accepted(one) and len(one) > 2)
    find_example(_DOCUMENTS, lambda one: not _accepted(one))


def test_the_schema_is_a_schema_and_knows_all_formats() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert tuple(SCHEMA["properties"]["output-format"]["enum"]) == tuple(FORMATS) == OUTPUT_FORMATS
    own = set(SCHEMA["properties"]) - {"exclude", "output-format", "overrides"}
    overridden = set(SCHEMA["properties"]["overrides"]["items"]["properties"])
    assert overridden == own | {"paths"}


# --- what is wrong, and where -------------------------------------------------------------


@pytest.mark.parametrize(
    "text, line, parts",
    [
        ('[tool.advise]\nmachine = "t3e"\nslect = []\n', 3, ("slect", "nearest", "select")),
        ('[tool.advise]\nexclude = [\n  "a",\n  3,\n]\n', 2, ("exclude[1]", "string")),
        ("[tool.advise]\nsizes = { N = true }\n", 2, ("sizes.N", "number")),
        ("[tool.advise.sizes]\nN = 1\nM = nan\n", 3, ("sizes.M", "number")),
        ("[tool.advise.sizes]\nN = -1\n", 2, ("sizes.N", "positive")),
        ("[tool.advise]\nmin-speedup = inf\n", 2, ("min-speedup", "positive")),
        ('[tool.advise]\nselect = ["adv2"]\n', 2, ("select[0]", "code")),
        ('[tool.advise]\noutput-format = "yaml"\n', 2, ("output-format", "json-lines")),
        ('[[tool.advise.overrides]]\npaths = ["a"]\n\n[[tool.advise.overrides]]\nmachine = "a"\n',
         4, ("overrides[1]", "paths are missing")),
        ('[[tool.advise.overrides]]\npaths = []\n', 2, ("overrides[0].paths", "at least one")),
        ("[tool.advise.rules.ADV201]\nmin-speedup = 2\nspeed = 1\n", 3, ("ADV201.speed",)),
        ("[tool.advise.rules]\nADV201 = 3\n", 2, ("rules.ADV201", "table")),
        ("[tool]\nadvise = 3\n", 2, ("expected a table",)),
        ('[tool.advise]\n"\\u006dachne" = 1\n', 2, ("machne", "machine")),
        ("[tool.advise]\nmachine = \n", 2, ("not TOML",)),
        (f"[tool.advise]\nmin-speedup = {'9' * 5000}\n", 1, ("cannot be read",)),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_its_place(text: str, line: int, parts: tuple[str, ...]) -> None:
    configure(text)
    with pytest.raises(ConfigError) as caught:
        read_configuration(str(Path("pyproject.toml").resolve()))
    message = str(caught.value)
    assert message.startswith(f"pyproject.toml:{line}:")
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_values_nested_too_deeply_are_refused() -> None:
    configure(f"[tool.advise]\nmachine = {'[' * 5000}\n")
    kept = sys.getrecursionlimit()
    # generators of random programs raise it
    sys.setrecursionlimit(1000)
    try:
        with pytest.raises(ConfigError, match=r"^pyproject\.toml:1: not TOML: nested too deeply$"):
            read_configuration("pyproject.toml")
    finally:
        sys.setrecursionlimit(kept)


def test_bytes_that_are_no_text_are_refused() -> None:
    Path("pyproject.toml").write_bytes(b"# advise\nx = '\xff'\n")
    with pytest.raises(ConfigError, match=r"pyproject.toml:2: not TOML: not UTF-8"):
        read_configuration("pyproject.toml")


_TOML_KEYS = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=5, unique=True)
_TOML_VALUES = st.sampled_from(
    ("1", '"x"', "[1,\n 2,\n]", '"""one\n\ntwo"""', "{ x = 1 }", "[\n  # c\n]")
)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_line_of_a_key_is_where_its_statement_starts(data: st.DataObject) -> None:
    lines: list[str] = []
    places: dict[tuple[str, ...], int] = {}
    for table in data.draw(_TOML_KEYS):
        lines += data.draw(st.sampled_from(([], [""], ["# note"])))
        lines.append(f"[{table}]")
        places[(table,)] = len(lines)
        for key in data.draw(_TOML_KEYS):
            lines += data.draw(st.sampled_from(([], ["", "# = ["], ["# [x]"])))
            value = data.draw(_TOML_VALUES)
            places[(table, key)] = len(lines) + 1
            lines += f"{key} = {value}".split("\n")
    text = "\n".join(lines)
    for keys, line in places.items():
        assert line_of(text, keys) == line


# --- which file holds ---------------------------------------------------------------------


def test_the_nearest_file_with_the_table_holds_alone() -> None:
    configure('[tool.advise]\nmachine = "t3e"\nmin-speedup = 2.0\n')
    configure('[tool.advise]\nmachine = "sp2"\n', "inner")
    configure('[project]\nname = "other"\n', "inner/deep")
    found = configurations(Layer())
    assert found.of_file("k.py").machine == "t3e"
    assert found.of_file("k.py").min_speedup == 2.0
    for path in ("inner/k.py", "inner/deep/k.py", "inner/deep/deeper/k.py", "inner/deep/../k.py"):
        assert found.of_file(path).machine == "sp2"
        assert found.of_file(path).min_speedup is None  # nothing is merged
    assert found.of_file("inner/../k.py").machine == "t3e"


def test_a_file_without_the_word_costs_no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    configure('[project]\nname = "other"\n')
    monkeypatch.setattr(tomllib, "loads", lambda text: pytest.fail("parsed"))
    assert read_configuration("pyproject.toml") is None


def test_isolated_and_a_chosen_file() -> None:
    configure('[tool.advise]\nmachine = "t3e"\n')
    chosen = configure('[tool.advise]\nmachine = "profile.json"\n', "elsewhere")
    assert configurations(Layer(), isolated=True).of_file("k.py").machine is None
    settings_ = configurations(Layer(), file=str(chosen)).of_file("k.py")
    assert settings_.machine == str(chosen.resolve().parent / "profile.json")
    configure("[project]\n", "empty")
    with pytest.raises(ConfigError, match=r"no table \[tool.advise\]"):
        configurations(Layer(), file="empty/pyproject.toml")
    with pytest.raises(ConfigError, match="No such file"):
        configurations(Layer(), file="nowhere.toml")


def test_overrides_by_path_in_order() -> None:
    configure(
        """
        [tool.advise]
        machine = "t3e"
        sizes = { N = 1, P = 2 }
        [[tool.advise.overrides]]
        paths = ["solver/**"]
        sizes = { N = 10 }
        min-speedup = 1.5
        [[tool.advise.overrides]]
        paths = ["test_*.py", "solver/old"]
        min-speedup = 3.0
        """
    )
    found = configurations(Layer())
    assert dict(found.of_file("k.py").sizes) == {"N": 1, "P": 2}
    assert dict(found.of_file("solver/k.py").sizes) == {"N": 10, "P": 2}
    assert found.of_file("solver/k.py").min_speedup == 1.5
    assert found.of_file("solver/old/k.py").min_speedup == 3.0
    assert found.of_file("deep/test_k.py").min_speedup == 3.0
    assert found.of_file("./solver/../solver/k.py").min_speedup == 1.5


# --- what goes over what ------------------------------------------------------------------


def test_later_layers_go_over_earlier_ones() -> None:
    file = Layer(
        machine="t3e",
        sizes={"N": 1, "P": 2},
        select=("ADV1",),
        ignore=("ADV102",),
        min_speedup=2.0,
        rules={"ADV201": RuleOptions(3.0, 4.0)},
        origin=Origin("pyproject.toml"),
    )
    settled = settle((file, Layer(sizes={"N": 9})))
    assert (settled.machine, dict(settled.sizes)) == ("t3e", {"N": 9, "P": 2})
    assert dict(settled.size_origins) == {"N": "-D", "P": "pyproject.toml"}
    assert settled.rules["ADV201"] == RuleOptions(3.0, 4.0)
    strict = settle((file, Layer(min_speedup=1.1)))
    assert strict.rules["ADV201"] == RuleOptions(None, 4.0)
    anew = settle((file, Layer(select=("ADV102",))))
    assert (anew.select, anew.ignore) == (("ADV102",), ())
    more = settle((file, Layer(ignore=())))
    assert (more.select, more.ignore) == (("ADV1",), ())


# --- patterns -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern, path, expected",
    [
        ("*.py", "a/b.py", True),
        ("b", "a/b/c.py", True),
        ("b", "a/bb/c.py", False),
        ("a/*.py", "a/b.py", True),
        ("a/*.py", "a/b/c.py", False),
        ("a/*.py", "x/a/b.py", False),
        ("**/a/*.py", "x/y/a/b.py", True),
        ("**/a/*.py", "a/b.py", True),
        ("a/**", "a/b/c.py", True),
        ("a/**", "a", False),
        ("a/**/z.py", "a/z.py", True),
        ("a/**/z.py", "a/b/c/z.py", True),
        ("a/", "x/a/b.py", True),
        ("./a/b", "a/b/c.py", True),
        ("k?.py", "k1.py", True),
        ("k[0-9].py", "k1.py", True),
        ("k[!0-9].py", "k1.py", False),
        ("k[]x].py", "k].py", True),
        ("a.b", "aXb", False),
        ("a[", "a[", True),
        ("a(b|c)+", "a(b|c)+", True),
        ("[^a].py", "^.py", True),
    ],
)
def test_patterns(pattern: str, path: str, expected: bool) -> None:
    assert matches(path, [pattern]) is expected


@given(st.text("ab*?[]!-/.\\^$(){}|+\n", min_size=1, max_size=8), st.text("ab/", min_size=1))
@settings(max_examples=100, deadline=None)
def test_no_pattern_is_an_error(pattern: str, path: str) -> None:
    assert matches(path, [pattern]) in (True, False)


def test_show_settings_can_be_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    from advisor.cli.app import main

    configure(
        '[tool.advise]\nmachine = "t3e"\nsizes = { N = 8, "message.alpha" = 1.5 }\n'
        'select = ["ADV2"]\nexclude = ["a \\"b\\""]\nfail-above = 1.2\n'
        "[tool.advise.rules.repeated-shifts]\nmin-speedup = 1.5\n"
    )
    Path("k.py").touch()
    assert main(["k.py", "--show-settings", "-D", "N=9", "--no-cache"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# k.py: pyproject.toml")
    table = tomllib.loads(shown)["tool"]["advise"]
    VALIDATOR.validate(table)
    again = configuration_of(table, "x").layer
    assert again.machine == "t3e"
    assert dict(again.sizes) == {"N": 9, "message.alpha": 1.5}
    assert again.select == ("ADV2",)
    assert again.fail_above == 1.2
    assert again.rules == {"repeated-shifts": RuleOptions(1.5, None)}
    assert table["exclude"] == ['a "b"']
