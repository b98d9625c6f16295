"""``advise rule``: what a rule does, why, and when its fix is safe."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

import typer

from advisor.cli import options
from advisor.cli.common import JSON, TEXT, write_out
from advisor.config.effective import installed_rules
from advisor.config.layer import wrong_use
from advisor.ir.rule import Rule
from advisor.report.model import page
from costdb.wording import nearest


def rule(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="CODE",
            help="Code or name, such as ADV201; none: list all.",
            autocompletion=options.rules,
        ),
    ] = None,
    output_format: options.TextOrJson = TEXT,
) -> None:
    """List the rules, or show the page of one."""
    rules = installed_rules()
    chosen = rules if name is None else (_find(name, rules),)
    if output_format == JSON:
        write_out(_as_json(chosen))
    elif name is None:
        write_out("".join(f"{one.code}  {one.name}: {_headline(one)}\n" for one in chosen))
    else:
        write_out(page(chosen[0]))


def _find(word: str, rules: Sequence[Rule]) -> Rule:
    for rule in rules:
        if word.upper() == rule.code or word.lower() == rule.name:
            return rule
    known = [word for rule in rules for word in (rule.code, rule.name)]
    raise wrong_use(f"unknown rule {word!r}{nearest(word, known)}")


def _headline(rule: Rule) -> str:
    """Return the first sentence of the page, without a lead such as ``**What it does.**``."""
    from inspect import cleandoc

    paragraphs = cleandoc(rule.documentation).split("\n\n")
    text = next((" ".join(p.split()) for p in paragraphs if p and not p.startswith("#")), "")
    sentence = re.sub(r"^\*\*[^*]*\*\* *", "", text).partition(". ")[0]
    return sentence.rstrip(".")


def _as_json(rules: Sequence[Rule]) -> str:
    import json

    document = {
        "schema_version": 1,
        "rules": [
            {"code": rule.code, "name": rule.name, "documentation": rule.documentation.strip()}
            for rule in rules
        ],
    }
    return json.dumps(document, indent=2) + "\n"
