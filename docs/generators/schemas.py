"""One page for each JSON Schema that the project ships, and the schema itself to download."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from generators.markdown import code, plain, table

_ROOMS = ("advisor", "costdb", "machine_profiles")
_SUFFIX = ".schema.json"
_LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "characters: at least {}",
    "maxLength": "characters: at most {}",
    "minItems": "items: at least {}",
    "maxItems": "items: at most {}",
    "minProperties": "entries: at least {}",
    "pattern": "matches `{}`",
}
_SIZES = frozenset(("minLength", "minItems", "minProperties"))

Schema = Mapping[str, Any]


def pages(root: Path) -> dict[str, str]:
    """Return a page for each schema, each schema as a file, and the index."""
    found: dict[str, str] = {}
    rows = []
    for path in schema_files(root):
        text = path.read_text(encoding="utf-8")
        schema: Schema = json.loads(text)
        name = path.name.removesuffix(_SUFFIX)
        found[f"schemas/{name}.md"] = _page(path.name, schema)
        found[f"schemas/{path.name}"] = text
        rows.append([f"[{plain(schema['title'])}]({name}.md)", f"[{path.name}]({path.name})"])
    index = (
        "# JSON Schemas\n\n"
        "What the program reads and writes as documents, by JSON Schema (draft 2020-12). "
        "A document that changes its meaning gets another `schema_version`.\n\n"
    )
    return {"schemas/index.md": index + table(("Document", "Schema"), rows), **found}


def schema_files(root: Path) -> list[Path]:
    """Return the schemas that the packages ship."""
    return sorted(path for room in _ROOMS for path in (root / room).rglob(f"*{_SUFFIX}"))


def _page(file: str, schema: Schema) -> str:
    parts = [f"# {plain(schema['title'])}\n"]
    if "description" in schema:
        parts.append(f"{plain(schema['description'])}\n")
    parts.append(f"The schema: [{file}]({file}).\n")
    parts.append(_entries(schema))
    for name, definition in schema.get("$defs", {}).items():
        parts.append(f"## {plain(name)} {{#{name}}}\n")
        if "description" in definition:
            parts.append(f"{plain(definition['description'])}\n")
        rows = list(_rows(definition, ""))
        parts.append(_entries(definition) if rows else f"{_sentence(_type(definition))}\n")
    return "\n".join(parts)


def _entries(schema: Schema) -> str:
    return table(("Entry", "Value", "Required", "Meaning"), _rows(schema, ""))


def _rows(schema: Schema, prefix: str) -> Iterator[list[str]]:
    """Yield a row for each entry, those of nested objects after their own."""
    required = frozenset(schema.get("required", ()))
    named = [(name, part) for name, part in schema.get("properties", {}).items()]
    named += [(f"/{name}/", part) for name, part in schema.get("patternProperties", {}).items()]
    rest = schema.get("additionalProperties")
    if isinstance(rest, dict):
        named.append(("*", rest))
    for name, part in named:
        place = f"{prefix}{name}"
        yield [
            code(place).replace("|", "\\|"),
            _type(part),
            "yes" if name in required else "",
            plain(part.get("description", "")) if isinstance(part, dict) else "",
        ]
        yield from _nested(part, place)
    for choice in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _rows(choice, prefix)


def _nested(part: Any, place: str) -> Iterator[list[str]]:
    if not isinstance(part, dict):
        return
    yield from _rows(part, f"{place}.")
    for choice in (part, *part.get("anyOf", ()), *part.get("oneOf", ())):
        if isinstance(items := choice.get("items"), dict):
            yield from _rows(items, f"{place}[].")


def _type(part: Any) -> str:
    """Return in words what a value may be."""
    if not isinstance(part, dict):
        return "anything" if part else "nothing"
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        return f"[{plain(name)}](#{name})"
    if "const" in part:
        return code(json.dumps(part["const"]))
    if "enum" in part:
        return ", ".join(code(json.dumps(value)).replace("|", "\\|") for value in part["enum"])
    choices = part.get("anyOf") or part.get("oneOf")
    if choices:
        return " or ".join(dict.fromkeys(_type(choice) for choice in choices))
    kinds = part.get("type", "anything")
    told = " or ".join([kinds] if isinstance(kinds, str) else kinds)
    items = part.get("items")
    if "array" in told and items is not None:
        inner = _type(items)
        told += f" of ({inner})" if ", " in inner else f" of {inner}"
    limits = [_limit(key, part[key]) for key in _LIMITS if key in part]
    if part.get("uniqueItems"):
        limits.append("all different")
    return f"{told}, {', '.join(limits)}" if limits else told


def _limit(key: str, value: object) -> str:
    if key in _SIZES and value == 1:
        return "not empty"
    return _LIMITS[key].format(str(value).replace("|", "\\|"))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
