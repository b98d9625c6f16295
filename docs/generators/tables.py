"""Tables in pages that are made from the project: its rules and its machines.

They stand in the committed pages between ``<!-- table NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from advisor.report.model import page
from advisor.transform_registry import rules as installed_rules
from costdb.machines import Json, Machine, built_in_names, load_machine
from costdb.quantity import Provenance

_SPECIAL = re.compile(r"([\\|*_<>\[\]])")
_BACKTICKED = re.compile(r"(`[^`]*`)")
_TABLE = re.compile(
    r"^(?P<head><!-- table (?P<name>\w+) -->\n)(?P<body>.*?)^(?P<tail><!-- end -->)$",
    re.MULTILINE | re.DOTALL,
)
_HEAD = frozenset(("schema_version", "name", "title", "library", "date", "sources", "notes"))


def with_tables(markdown: str) -> str:
    """Return a page with its tables made anew."""
    return _TABLE.sub(
        lambda found: f"{found['head']}{TABLES[found['name']]()}{found['tail']}", markdown
    )


def rules() -> str:
    """Return a line for each installed rule."""
    rows = []
    for rule in installed_rules():
        text = re.sub(r"^\*\*[^*]*\*\* *", "", page(rule).split("\n", 1)[1].strip())
        rows.append([f"`{rule.code}`", f"`{rule.name}`", plain(first_clause(text))])
    return table(("Code", "Name", "What it looks at"), rows)


def machines() -> str:
    """Return a line for each machine that comes with the package."""
    rows = []
    for machine in map(load_machine, built_in_names()):
        count = Counter(str(stated["provenance"]) for stated in quantities(machine))
        sections = [key for key in machine.document if key not in _HEAD and key != "hardware"]
        rows.append(
            [
                f"`{machine.name}`",
                plain(machine.title),
                ", ".join(sections),
                *(str(count[provenance.value] or "") for provenance in Provenance),
            ]
        )
    headings = ("Name", "Machine", "States", *(provenance.value for provenance in Provenance))
    return table(headings, rows)


TABLES: Mapping[str, Callable[[], str]] = {"rules": rules, "machines": machines}


def rule_pages() -> dict[str, str]:
    """Return the page of each installed rule, by its path below ``docs``."""
    return {f"rules/{rule.code}.md": page(rule) for rule in installed_rules()}


def quantities(machine: Machine) -> list[Mapping[str, Json]]:
    """Return every number of a profile with what it states of it."""

    def below(found: Json) -> Iterator[Mapping[str, Json]]:
        if isinstance(found, dict):
            if "value" in found:
                yield found
            else:
                for inner in found.values():
                    yield from below(inner)
        elif isinstance(found, list):
            for inner in found:
                yield from below(inner)

    return [
        stated
        for key, section in machine.document.items()
        if key not in _HEAD
        for stated in below(section)
    ]


def plain(text: str) -> str:
    """Return text from elsewhere so that it reads as it is; code in backticks stays code."""
    parts = _BACKTICKED.split(" ".join(text.split()))
    return "".join(
        part.replace("|", "\\|") if part.startswith("`") else _SPECIAL.sub(r"\\\1", part)
        for part in parts
    )


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose cells are Markdown already."""
    lines = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def first_clause(text: str) -> str:
    """Return the first sentence of running text, up to a colon or to what it proposes."""
    ends = r"(?<=[.:;])\s|, and (?:proposes|compares|tries|names|adds|gives|sends|reduces|deals) "
    return re.split(ends, " ".join(text.split()) + " ", maxsplit=1)[0].rstrip(" :;.")
