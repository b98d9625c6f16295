"""Schemas that others publish, from packages that ship them; nothing is fetched."""

from __future__ import annotations

import json
import shutil
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema

SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
# what the committee calls it, wherever it is copied
SARIF_ID = (
    "https://raw.githubusercontent.com/oasis-tcs/sarif-spec/master/Schemata/sarif-schema-2.1.0.json"
)


def _folder(package: str) -> Path:
    """Return where a package is, found and not imported: only its data are wanted."""
    found = find_spec(package)
    assert found is not None and found.origin is not None, f"{package} is not installed"
    return Path(found.origin).parent


@cache
def sarif() -> Any:
    """Return a validator of SARIF 2.1.0 as OASIS published it, out of SchemaStore's answers."""
    from requests_cache import SQLiteCache

    with tempfile.TemporaryDirectory() as folder:
        # a copy, because opening a cache writes to it
        shutil.copy(_folder("schemastore") / "cache.sqlite", folder)
        kept = SQLiteCache(str(Path(folder) / "cache"))
        (schema,) = [json.loads(one.content) for one in kept.responses.values() if one.url == SARIF]
        kept.close()
    assert schema["$id"] == SARIF_ID
    return _validator(schema)


@cache
def pipeline(name: str) -> Any:
    """Return a validator of a build server's configuration: github-workflows or gitlab-ci."""
    vendored = _folder("check_jsonschema") / "builtin_schemas" / "vendor"
    return _validator(json.loads((vendored / f"{name}.json").read_text("utf-8")))


def _validator(schema: Any) -> Any:
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema, format_checker=kind.FORMAT_CHECKER)
