"""The rules that are installed, and which of them a run is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from advisor.config.errors import wrong_use
from advisor.ir.rule import Rule
from costdb.wording import nearest


def installed_rules() -> tuple[Rule, ...]:
    """Return the transforms that installed packages offer, by code.

    Raises
    ------
    CommandError
        When the metadata of the distribution, which names them, is missing.
    """
    from advisor.transform_registry import rules

    try:
        return rules()
    except LookupError as error:
        raise wrong_use(str(error)) from error


def split_codes(options: Iterable[str]) -> tuple[str, ...]:
    """Return the codes in repeated options whose values may hold several, by commas."""
    words = (word.strip() for option in options for word in option.split(","))
    return tuple(dict.fromkeys(word for word in words if word))


def resolve(
    select: Sequence[str], extend: Sequence[str], ignore: Sequence[str], known: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the codes to select (none: all) and to ignore, with prefixes spelt out.

    The longer of two prefixes that disagree wins, and of equal ones ``--ignore``.

    Raises
    ------
    CommandError
        When a code or prefix stands for no known rule.
    """
    chosen = [*select, *extend] if select else []
    for prefix in (*chosen, *extend, *ignore):
        if not any(code.startswith(prefix) for code in known):
            raise wrong_use(f"unknown rule {prefix!r}{nearest(prefix, known)}")

    def wanted(code: str) -> bool:
        for_it = _longest_match(code, [*chosen, *extend])
        if not chosen:
            for_it = max(for_it, 0)
        return for_it > _longest_match(code, ignore)

    unwanted = tuple(code for code in known if not wanted(code))
    return (tuple(code for code in known if wanted(code)) if chosen else ()), unwanted


def _longest_match(code: str, prefixes: Iterable[str]) -> int:
    return max((len(prefix) for prefix in prefixes if code.startswith(prefix)), default=-1)
