"""Pages of the documentation site that are made from the project itself, never by hand.

Each module makes the pages of one folder of the site as Markdown, by their paths below ``docs``.
Nothing here needs MkDocs; ``docs/hooks.py`` hands the pages to it.
"""

from __future__ import annotations

from pathlib import Path

from generators import commands, examples, guides, machines, models, rules, schemas
from generators.sessions import Workshop

__all__ = ["generated_pages"]


def generated_pages(root: Path, workshop: Workshop) -> dict[str, str]:
    """Return every generated file of the site by its path below ``docs``.

    Parameters
    ----------
    root : Path
        The project's directory.
    workshop : Workshop
        Where commands run whose output is shown.
    """
    return {
        **guides.pages(root),
        **commands.pages(workshop),
        **rules.pages(root),
        **models.pages(root),
        **machines.pages(root),
        **examples.pages(root, workshop),
        **schemas.pages(root),
    }
