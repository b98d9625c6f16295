import copy
import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import machine_profiles
from costdb.documents import check_profile
from costdb.machines import built_in_names

FOLDER = Path(machine_profiles.__file__).parent
PROFILES = {
    name: json.loads((FOLDER / f"{name}.json").read_text("utf-8")) for name in built_in_names()
}


def places(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*path, index))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def changed(document, path, new):
    document = copy.deepcopy(document)
    at(document, path[:-1])[path[-1]] = new
    return document


def assert_refused(document, part=""):
    problems = check_profile(document, "here.json")
    assert problems
    for problem in problems:
        assert problem.startswith("here.json: /")
        assert "\n" not in problem
    assert any(part in problem for problem in problems), problems


def test_the_schema_is_valid():
    text = (FOLDER / "profile.schema.json").read_text("utf-8")
    jsonschema.Draft202012Validator.check_schema(json.loads(text))


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_every_built_in_profile_is_sound(name):
    assert check_profile(PROFILES[name], name) == []


DRAWN = {name: profile for name, profile in PROFILES.items() if name != "cluster2026"}
"""What places are drawn of: that one takes a tenth of a second, and has the parts of others."""


def places_of_any(wanted):
    """Draw a profile, then a place in it: most places are in the two that take longest to check."""
    of_each = [
        [(name, path) for path in places(profile) if wanted(profile, path)]
        for name, profile in DRAWN.items()
    ]
    return st.sampled_from(of_each).flatmap(st.sampled_from)


def is_quantity(profile, path):
    return isinstance(at(profile, path), dict) and "value" in at(profile, path)


quantity_places = places_of_any(is_quantity)
GONE = "gone"
BAD_VALUES = ("12", None, [], {}, float("nan"), float("inf"), float("-inf"), True, 10**400, "9**9")
WRONG_PARTS = (
    *(("value", bad) for bad in BAD_VALUES),
    *((key, GONE) for key in ("value", "unit", "provenance", "source")),
    ("provenance", "guessed"),
    ("source", "nobody"),
    ("unit", ""),
    ("low", 1e200),
    ("high", -1e200),
    ("value_", 1),
    ("note", 3),
    ("note", "two\nlines"),
)


@settings(max_examples=50, deadline=None)
@given(quantity_places, st.sampled_from(WRONG_PARTS))
def test_a_quantity_with_a_wrong_part_or_without_one_is_refused(place, part):
    name, path = place
    key, bad = part
    document = changed(PROFILES[name], (*path, key), bad)
    if bad is GONE:
        del at(document, path)[key]
    assert_refused(document, "/".join(map(str, path)) if key == "value" and bad != GONE else "")


structural = places_of_any(
    lambda _, path: path and not (isinstance(path[-1], int) or path[0] in ("sources", "notes"))
)


@settings(max_examples=30, deadline=None)
@given(structural, st.sampled_from([None, True, {"x": []}, [[]], [None]]))
def test_a_part_of_a_wrong_shape_is_refused(place, bad):
    name, path = place
    if path[-1] == "max_bytes":
        assume(bad is not None)
    assert_refused(changed(PROFILES[name], path, bad))


@settings(max_examples=30, deadline=None)
@given(structural)
def test_an_unknown_name_for_a_known_part_is_refused(place):
    name, path = place
    document = copy.deepcopy(PROFILES[name])
    parent = at(document, path[:-1])
    parent["not a name!"] = parent.pop(path[-1])
    assert_refused(document)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


PLACES = {name: [place for place in places(profile) if place] for name, profile in DRAWN.items()}


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(DRAWN)), st.data())
def test_no_corruption_crashes_the_check(name, data):
    path = data.draw(st.sampled_from(PLACES[name]))
    document = changed(PROFILES[name], path, data.draw(json_values))
    for problem in check_profile(document, "here"):
        assert problem.startswith("here: /")
        assert "\n" not in problem


@given(json_values)
@settings(max_examples=30, deadline=None)
def test_anything_else_is_refused(value):
    assert check_profile(value, "here")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("lines", "message", "alpha_us", "value"), 0, "positive"),
        (("lines", "message", "beta_us_per_byte", "value"), 1e-12, "not plausible"),
        (("hardware", "link_mb_per_s", "value"), 1e9, "not plausible"),
        (("hardware", "cache_line_bytes", "value"), 48, "power of two"),
        (("lines", "range", "message_bytes"), [9, 4], "range is empty"),
        (("lines", "message", "beta_us_per_byte", "value"), -1, "must not be negative"),
        (("lines", "scan", "phi_us_per_operation", "provenance"), "published", "estimated"),
        (("name",), "T3E", "/name"),
        (("schema_version",), 7, "/schema_version"),
    ],
)
def test_what_physics_or_honesty_forbids_is_refused(path, value, message):
    document = changed(PROFILES["t3e"], path, value)
    if path[-1] == "value":
        leaf = at(document, path[:-1])
        leaf["low"] = leaf["high"] = value
    assert_refused(document, message)


def test_pieces_must_grow_and_end_without_limit():
    (piece, *_) = PROFILES["node2026"]["pickle"]["dump"]["pieces"]
    place = "pickle", "dump", "pieces"
    for limits in ([100, 50, None], [100, 200], [None, 100, None], [None, None]):
        pieces = [{**piece, "max_bytes": limit} for limit in limits]
        assert_refused(changed(PROFILES["node2026"], place, pieces), "/pickle/dump/pieces")
    good = [{**piece, "max_bytes": limit} for limit in (100, 200, None)]
    assert check_profile(changed(PROFILES["node2026"], place, good), "here") == []


def test_a_function_of_supersteps_that_no_model_reads_is_refused():
    """The study's own spelling has a dash; what nobody reads must not pass as stated."""
    good = PROFILES["powerchallenge"]["smp"]["good"]
    document = changed(PROFILES["powerchallenge"], ("smp", "good"), {"HrHwM-c": good["HrHwM_c"]})
    assert_refused(document, "/smp/good: 'HrHwM-c' is not one of")


@pytest.mark.parametrize("text", ["__import__('os')", "9**9**9**9", "PX*", "(" * 100_000])
def test_expressions_are_parsed_by_the_grammar_alone(text):
    path = ("phases", "applications", "pstswm", "ranges", "processors", "quantity")
    assert_refused(changed(PROFILES["paragon"], path, text), "/quantity")
