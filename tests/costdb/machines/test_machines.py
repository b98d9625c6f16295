import json

import pytest

from costdb.machines import (
    BUILT_IN,
    MachineError,
    built_in_names,
    load_machine,
    machine_names,
    machine_of,
    parse_document,
)


@pytest.fixture(autouse=True)
def no_store(tmp_path, monkeypatch):
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def document(**changes):
    return {
        "schema_version": 1,
        "name": "mine",
        "title": "My machine",
        "library": "MPI",
        "sources": {"m": "a measurement"},
        "notes": ["a note"],
        "hardware": {"cache_line_bytes": quantity(64, unit="byte")},
        "lines": {"message": {"alpha_us": quantity(3.5, low=3, high=5)}},
    } | changes


def quantity(value, **more):
    return {"value": value, "unit": "us", "provenance": "published", "source": "m"} | more


def written(tmp_path, text):
    path = tmp_path / "profile.json"
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return path


def test_asking_for_the_wrong_shape_names_the_place():
    machine = machine_of(document(lines={"message": [1]}), "here.json")
    with pytest.raises(MachineError, match=r"here\.json: /lines/message: expected an object"):
        machine.section("lines", "message")
    with pytest.raises(MachineError, match=r"here\.json: /hardware: expected a quantity"):
        machine.quantity("hardware")


def test_a_machine_without_a_cache_line_says_so():
    with pytest.raises(MachineError, match="cache_line_bytes"):
        _ = machine_of(document(hardware={}), "here").cache_line_bytes


@pytest.mark.parametrize("size_bytes", [64.5, 0, 48, 2**40])
def test_a_cache_line_of_a_size_that_no_machine_has_is_refused(size_bytes):
    """Counting lines takes as long as a line is large."""
    odd = document(hardware={"cache_line_bytes": quantity(size_bytes, unit="byte")})
    with pytest.raises(MachineError, match="power of two from 8 to 4096, got"):
        _ = machine_of(odd, "here").cache_line_bytes


def test_every_built_in_machine_loads_under_its_own_name():
    assert built_in_names()
    for name in built_in_names():
        machine = load_machine(name)
        assert (machine.name, machine.origin) == (name, BUILT_IN)
    assert set(built_in_names()) <= set(machine_names())


REFUSED = [
    ("", "not JSON"),
    ("[]", "expected an object"),
    ('{"a": 1, "a": 2}', 'the key "a" is given twice'),
    ("[" * 100_000, "nested too deeply"),
    ("9" * 5000, "digits"),
    (document(schema_version=None), "schema_version is missing"),
    (document(schema_version=2), "/schema_version: expected 1, got 2"),
    (document(schema_version=True), "/schema_version"),
    (document(name="Big Iron"), "/name"),
    (document(title=""), "/title"),
    (document(sources=[]), "/sources"),
    (document(sources={"m": 3}), "/sources/m"),
    (document(notes="note"), "/notes"),
    (document(lines={"a_us": quantity(float("nan"))}), "/lines/a_us/value: expected a finite"),
    (document(lines={"a_us": quantity(float("inf"))}), "/lines/a_us/value: expected a finite"),
    (document(lines={"a_us": quantity(-1)}), "/lines/a_us: us must not be negative, got -1"),
    (document(lines={"a_us": quantity(1, low=-1)}), "/lines/a_us: us must not be negative"),
    (document(lines={"a_us": quantity(1, low=2)}), "/lines/a_us: needs low <= value <= high"),
    (document(lines={"a_us": quantity("9**9**9")}), "/lines/a_us/value: expected a number"),
    (document(lines={"a_us": quantity(True)}), "/lines/a_us/value: expected a number"),
    (document(lines={"a_us": quantity(10**400)}), "/lines/a_us/value: expected a finite"),
    (document(lines={"a_us": quantity(1, unit="")}), "/lines/a_us/unit"),
    (document(lines={"a_us": quantity(1, unit="ms")}), "/lines/a_us/unit: expected us, alone"),
    (document(lines={"a_us": quantity(1, provenance="guessed")}), "/lines/a_us/provenance"),
    (document(lines={"a_us": quantity(1, source="x")}), "/lines/a_us/source"),
    (document(lines={"a_us": quantity(1, fitted_to="f")}), "fitted to a figure is estimated"),
    (document(lines={"a_us": quantity(1, vlaue=1)}), 'a quantity has no "vlaue"'),
    (document(lines=[]), "/lines: expected an object"),
    (document(lines={"range": [1, float("inf")]}), "/lines/range/1: expected a finite"),
    (document(lines=json.loads('{"a":' * 30 + "1" + "}" * 30)), "nested too deeply"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_wrong_profiles_are_refused_in_one_line_with_the_place(tmp_path, text, message):
    if isinstance(text, dict) and text["schema_version"] is None:
        del text["schema_version"]
    path = written(tmp_path, text)
    with pytest.raises(MachineError) as refusal:
        load_machine(str(path))
    assert message in str(refusal.value)
    assert str(refusal.value).startswith(str(path))
    assert "\n" not in str(refusal.value)


OTHER_UNITS = [
    ("lines", ("message", "beta_us_per_byte"), "us/byte", "ns/byte"),
    ("lines", ("message", "gamma_us_per_line"), "us/line", "us/byte"),
    ("hardware", ("l1_bytes",), "byte", "KiB"),
    ("pgas", ("rates", "vector", "t4", "read"), "double words/s", "MB/s"),
    ("pgas", ("call_us", "vector", "t4", "read"), "us", "ms"),
    ("smp", ("good", "HrHwM-c", "p2", "R0", "ghrc"), "us/element", "ns/element"),
    ("smp", ("bad", "HrHwM", "p2", "L"), "us", "s"),
    ("arrays", ("rates", "copy", "float64", "line_us", "beyond"), "us/line", "ns/line"),
    ("arrays", ("rates", "copy", "float64", "rows_residual"), "1", "%"),
    ("arrays", ("levels", "b32768"), "byte", "KiB"),
    ("hardware", ("barrier_us",), "us", "ms"),
    ("pickle", ("dump", "pieces", 0, "us_per_byte"), "us/byte", "us/KiB"),
]


@pytest.mark.parametrize(("section", "path", "read", "other"), OTHER_UNITS)
def test_a_number_in_a_unit_that_no_model_reads_is_refused(section, path, read, other):
    def holding(unit):
        held = quantity(3, unit=unit)
        for key in reversed(path):
            held = [held] if isinstance(key, int) else {key: held}
        return document(**{section: held})

    machine_of(holding(read), "here")
    place = "/".join(map(str, (section, *path)))
    with pytest.raises(MachineError, match=f'^here: /{place}/unit: .*got "{other}"$'):
        machine_of(holding(other), "here")


def test_published_intercepts_may_be_negative():
    machine = machine_of(document(smp={"L": quantity(-33137)}), "here")
    assert machine.quantity("smp", "L").value == -33137


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(MachineError, match="here: not JSON"):
        parse_document(b'{"a": "\xff\xfe"}', "here")
