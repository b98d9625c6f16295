"""``advise machine``: what is known of machines, what is wrong with a profile, in and out."""

import json
from pathlib import Path
from typing import Any

import pytest

from costdb.documents import check_profile
from costdb.machines import built_in_names, load_machine
from tests.advisor.cli.commands import ROOT, Program

PROFILES = ROOT / "machine_profiles"


def write_profile(path: str, name: str, **changed: object) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((PROFILES / "t3e.json").read_text())
    document["name"] = name
    document["lines"]["message"]["alpha_us"].update(changed)
    Path(path).write_text(json.dumps(document))
    return document


def count_quantities(value: object) -> int:
    if isinstance(value, dict):
        return 1 if "value" in value else sum(map(count_quantities, value.values()))
    return sum(map(count_quantities, value)) if isinstance(value, list) else 0


# --- list and show ------------------------------------------------------------------------


def test_all_machines_are_listed(program: Program) -> None:
    found = program.json("machine", "list")
    assert found["schema_version"] == 1
    assert tuple(machine["name"] for machine in found["machines"]) == built_in_names()
    assert {machine["origin"] for machine in found["machines"]} == {"built-in"}
    lines = program("machine", "list").out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(built_in_names())


@pytest.mark.parametrize("name", built_in_names())
def test_every_number_of_a_machine_is_shown_with_its_origin(program: Program, name: str) -> None:
    machine = load_machine(name)
    document = program.json("machine", "show", name)["machine"]
    assert document["name"] == name
    quantities = {quantity["place"]: quantity for quantity in document["quantities"]}
    assert len(quantities) == len(document["quantities"]) == count_quantities(machine.document)
    for place, shown in quantities.items():
        parts = place.split("/")[1:]
        if any(part.isdecimal() for part in parts):
            continue  # inside a list, which a machine gives out whole
        quantity = machine.quantity(*parts)
        assert quantity is not None
        assert (shown["value"], shown["low"], shown["high"], shown["unit"]) == (
            quantity.value,
            quantity.low,
            quantity.high,
            quantity.unit,
        )
        assert shown["provenance"] == quantity.provenance
        assert shown["source"] == quantity.source
        assert shown.get("fitted_to", "") == quantity.fitted_to
    text = program("machine", "show", name).out
    lines = text.splitlines()
    for place, shown in quantities.items():
        (row,) = [line for line in lines if line.startswith(f"{place} ")]
        assert f" {shown['value']:g} " in row
        assert f" {shown['unit']} " in row and f" {shown['provenance']} " in row
    for key, citation in machine.sources.items():
        assert f"{key}: {' '.join(citation.split())}" in lines


# --- validate -----------------------------------------------------------------------------


def test_all_problems_are_listed_with_their_places(program: Program) -> None:
    document = write_profile("mine.json", "mine", value=-5, low=-5)
    document["lines"]["message"]["beta_us_per_byte"]["provenance"] = "guessed"
    document["title"] = ""
    Path("mine.json").write_text(json.dumps(document))
    ended = program("machine", "validate", "mine.json")
    assert (ended.code, ended.err) == (2, "")
    lines = ended.out.splitlines()
    assert lines == check_profile(document, "mine.json")
    assert len(lines) >= 3
    for place in ("/title", "/lines/message/alpha_us", "/lines/message/beta_us_per_byte"):
        assert any(line.startswith(f"mine.json: {place}") for line in lines)
    as_json = program("machine", "validate", "mine.json", "--output-format", "json")
    assert as_json.code == 2
    assert json.loads(as_json.out) == {
        "schema_version": 1,
        "file": "mine.json",
        "problems": lines,
    }


def test_what_is_no_profile_at_all_costs_one_line(program: Program) -> None:
    Path("text.json").write_text("{,}")
    Path("list.json").write_text("[]")
    Path("deep.json").write_text("[" * 100_000)
    for command in ("validate", "import"):
        assert "text.json:1:2: not JSON" in program.refusal("machine", command, "text.json")
        assert "list.json: /: expected an object" in program.refusal(
            "machine", command, "list.json"
        )
        assert "deep.json: nested too deeply" in program.refusal("machine", command, "deep.json")
        assert "none.json: No such file" in program.refusal("machine", command, "none.json")


# --- import and export --------------------------------------------------------------------


def test_what_is_exported_can_be_imported_again(program: Program) -> None:
    write_profile("mine.json", "mine")
    program("machine", "import", "mine.json")
    assert program("machine", "export", "mine", "-o", "again.json").out == ""
    assert "imported before" in program.refusal("machine", "import", "again.json")
    found = program.json("machine", "import", "again.json", "--replace")
    assert found["imported"] == "mine"
    assert Path(found["store"]).is_file()
    assert program("machine", "validate", "again.json").code == 0


def test_a_machine_that_is_removed_is_forgotten(program: Program) -> None:
    write_profile("mine.json", "mine")
    program("machine", "import", "mine.json")
    ended = program("machine", "remove", "mine")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith("removed mine from ")
    assert 'unknown machine "mine"' in program.refusal("machine", "remove", "mine")
    assert "built-in" in program.refusal("machine", "remove", "t3e")
    assert "no store holds" in program.refusal("machine", "remove", "./mine.json")
    assert Path("mine.json").is_file()
    names = [machine["name"] for machine in program.json("machine", "list")["machines"]]
    assert tuple(names) == built_in_names()


def test_a_damaged_store_is_told_and_left_alone(program: Program) -> None:
    write_profile("mine.json", "mine")
    assert program("machine", "import", "mine.json").code == 0
    (store,) = Path("data").glob("*.sqlite3")
    damaged = b"no database " * 1000
    store.write_bytes(damaged)
    assert "damaged" in program.refusal("machine", "list")
    assert store.read_bytes() == damaged
