"""The page of a rule, as Markdown."""

from __future__ import annotations

from advisor.ir.rule import Rule


def page(rule: Rule) -> str:
    """Return the page of a rule as Markdown, headed by its code and name."""
    from inspect import cleandoc

    text = cleandoc(rule.documentation).strip()
    heading = "" if text.startswith("# ") else f"# {rule.code} {rule.name}\n\n"
    return f"{heading}{text}\n"
