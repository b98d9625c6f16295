"""One page for each rule, from the rule's own documentation, and an index by family."""

from __future__ import annotations

import re
from pathlib import Path

from advisor.report.model import page
from advisor.transform_registry import transforms
from generators.markdown import code, first_sentence, plain, table

FAMILIES = {
    "1": "Distribution",
    "2": "Communication",
    "3": "Shared memory",
    "4": "Remote access",
    "5": "Local traversal",
    "9": "Annotations",
}
_MODELS_USED = re.compile(r"(\*\*Models used\.\*\*)(.*?)(?=\n\n|\Z)", re.DOTALL)


def pages(root: Path) -> dict[str, str]:
    """Return a page for each installed rule, and the index."""
    models = sorted(path.stem for path in (root / "docs" / "models").glob("*.md"))
    found = {f"rules/{rule.code}.md": _linked(page(rule), models) for rule in transforms()}
    return {"rules/index.md": _index(), **found}


def family_of(rule_code: str) -> str:
    """Return the name of a rule's family, told by the first digit of its code."""
    digit = rule_code.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")[:1]
    return FAMILIES.get(digit, "Other")


def _index() -> str:
    parts = [
        "# Rules\n",
        "Each rule compares a kernel as written with a variant of it, on the machine that was "
        "asked for. It speaks when the variant is predicted to be faster. `advise rule CODE` "
        "prints the same pages; `--select` and `--ignore` take codes and prefixes of codes.\n",
    ]
    by_family: dict[str, list[list[str]]] = {}
    for rule in transforms():
        text = re.sub(r"^\*\*[^*]*\*\* *", "", _body(page(rule)))
        row = [f"[{rule.code}]({rule.code}.md)", code(rule.name), plain(first_sentence(text))]
        by_family.setdefault(family_of(rule.code), []).append(row)
    for family, rows in by_family.items():
        parts.append(f"## {family}\n")
        parts.append(table(("Code", "Name", "What it does"), rows))
    parts.append("## Comments that do nothing\n")
    parts.append(
        "`ADV901` is no rule of cost: it is reported for an `# advise: ignore` that nothing "
        "needed; see [the comments that leave findings out]"
        "(../annotations.md#findings-that-are-not-wanted).\n"
    )
    return "\n".join(parts)


def _body(markdown: str) -> str:
    return markdown.split("\n", 1)[1].strip()


def _linked(markdown: str, models: list[str]) -> str:
    """Link the first mention of each model among the models used to its page."""

    def linked(match: re.Match[str]) -> str:
        text = match[2]
        for model in models:
            text = re.sub(
                rf"\b{model}\b", rf"[\g<0>](../models/{model}.md)", text, count=1, flags=re.I
            )
        return match[1] + text

    return _MODELS_USED.sub(linked, markdown)
