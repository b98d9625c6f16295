"""Descriptions for the shared-memory and the remote-access model say what their programs do."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from costdb import documents
from costdb.choosing import SubjectError, predict
from costdb.documents import description_problems, load_description
from costdb.expr import sym
from costdb.machines import load_machine
from costdb.pgas.partition import PartitionError

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SCHEMAS = {
    "supersteps": ROOT / "costdb" / "phases" / "supersteps.schema.json",
    "references": ROOT / "costdb" / "pgas" / "references.schema.json",
    "phases": ROOT / "costdb" / "phases" / "application.schema.json",
}
N, T = sym("N"), sym("T")


@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.rglob("*.toml")), ids=lambda path: str(path.relative_to(EXAMPLES))
)
def test_examples_keep_to_their_schema(path: Path) -> None:
    document = tomllib.loads(path.read_text())
    schema = json.loads(SCHEMAS[document.get("kind", "phases")].read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(document)
    assert load_description(path).head.title == document["title"]
    assert description_problems(path) == ()


def changed(document: object) -> Iterator[object]:
    """Yield a document with a key too many, and with one too few, in each of its tables."""
    if isinstance(document, dict):
        if not {"words", "when", "define", "rates", "parameters", "sets"} & {*document}:
            yield {**document, "none_such": 1}
        for key in document:
            yield {name: value for name, value in document.items() if name != key}
        for key, value in document.items():
            yield from ({**document, key: other} for other in changed(value))
    elif isinstance(document, list):
        for place, value in enumerate(document[:2]):
            for other in changed(value):
                yield [*document[:place], other, *document[place + 1 :]]


@pytest.mark.parametrize("name", ["pstswm/pstswm.toml", "sorts/sorts.toml", "pgas/matmul.toml"])
def test_schemas_refuse_the_keys_that_readers_refuse(name: str, tmp_path: Path) -> None:
    document = tomllib.loads((EXAMPLES / name).read_text())
    schema = json.loads(SCHEMAS[document.get("kind", "phases")].read_text())
    validator = jsonschema.Draft202012Validator(schema)
    refused = 0
    for other in changed(document):
        assert isinstance(other, dict)
        try:
            documents._description(other, "a.toml")
            said = ""
        except (SubjectError, PartitionError) as error:
            said = str(error)
        # what names stand for is no matter of a schema
        of_keys = "is missing" in said or "unknown key" in said
        if said and not of_keys:
            continue
        assert of_keys == (not validator.is_valid(other)), (said, other)
        refused += of_keys
    assert refused > 20


def test_schemas_share_what_descriptions_share() -> None:
    phases, supersteps, references = (
        json.loads(SCHEMAS[kind].read_text()) for kind in ("phases", "supersteps", "references")
    )
    for schema in (supersteps, references):
        for name, definition in schema["$defs"].items():
            assert definition == phases["$defs"][name]
        for key in ("parameters", "derived", "constraints", "repeat", "title", "source"):
            assert schema["properties"][key] == phases["properties"][key]


# --- what is refused ----------------------------------------------------------------------

SORT = (EXAMPLES / "sorts" / "sorts.toml").read_text()
MATMUL = (EXAMPLES / "pgas" / "matmul.toml").read_text()


@pytest.mark.parametrize(
    ("text", "old", "new", "problem"),
    [
        (SORT, 'kind = "supersteps"', 'kind = "steps"', "/kind: expected one of phases, superst"),
        (SORT, 'processors = "p"', "", '"processors" is missing'),
        (SORT, 'processors = "p"', 'processors = "q"', "/processors: nothing defines q"),
        (SORT, 'reads = "share"', 'reads = "shares"', "/supersteps/0: nothing defines shares"),
        (SORT, 'reads = "share"', 'red = "share"', "red: unknown key: nearest is reads"),
        (SORT, 'times = "passes"', 'times = "p +"', "/supersteps/0/times: "),
        (SORT, 'algorithm = ["radix"]', 'algorithm = ["bubble"]', "algorithm is never bubble"),
        (SORT, "samples = 100", "samples = 100\nshare = 9", "share is defined twice"),
        (SORT, "schema_version = 1", "schema_version = 2", "/schema_version: expected 1"),
        (MATMUL, 'spread = "cyclic"', 'spread = "diagonal"', "/arrays/0/spread: diagonal is not"),
        (MATMUL, "axis = 0", "axis = -1", "axes count from 0, got -1"),
        (MATMUL, "axis = 0", "axis = 5", "has more axes than the 2 subscripts"),
        (MATMUL, 'affinity = "i"', 'affinity = "x"', "/affinity: x is not one of i, j, k"),
        (MATMUL, '["i", "j"]', '["i", "q"]', "q is neither a loop's index nor irregular"),
        (MATMUL, '["i", "j"]', '["i", "i*j"]', "a sum of whole multiples of loop indices"),
        (MATMUL, '["i", "j"]', '["i", "j/2"]', "a sum of whole multiples of loop indices"),
        (MATMUL, '["i", "j"]', '["i", "1/j"]', "a sum of whole multiples of loop indices"),
        (MATMUL, 'array = "C"', 'array = "D"', "/references/0/array: D is not one of C, A, B"),
        (MATMUL, 'access = "write"', 'access = "both"', "both is not one of read, write"),
        (MATMUL, "depth = 2", "depth = 9", "at a depth of loops that are not there"),
        (MATMUL, 'from = "clear"', 'from = "x"', "x is not one of clear, sum so far, next sum"),
        (MATMUL, 'index = "j"', 'index = "i"', "two loops have the same index"),
        (MATMUL, 'name = "A"\nwhen = { spread = ["cyclic"] }', 'name = "C"', "declared twice"),
        (MATMUL, 'trips = "ceil(N/T)"', 'trips = "ceil(M/T)"', "/loops/0: nothing defines M"),
        (MATMUL, 'kind = "references"', 'kind = "references"\nirregular = ["i"]', "a loop's index"),
    ],
)
def test_a_wrong_description_is_refused_with_its_place(
    tmp_path: Path, text: str, old: str, new: str, problem: str
) -> None:
    assert old in text
    path = tmp_path / "a.toml"
    path.write_text(text.replace(old, new, 1))
    chosen = {"algorithm": "radix", "n": 9, "p": 2} if text == SORT else {"spread": "cyclic"}
    machine = load_machine("powerchallenge" if text == SORT else "mupc")
    with pytest.raises(SubjectError) as refusal:
        for algorithm in ("radix", "sample"):
            choice = {**chosen, "algorithm": algorithm} if text == SORT else {**chosen, "T": 2}
            predict(load_description(path).on(machine), choice)
    message = str(refusal.value)
    assert message.startswith(f"{path}: ") and "\n" not in message
    if problem != "/: ":
        assert problem in message
