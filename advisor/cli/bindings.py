"""What ``-D``, ``--over`` and ``--where`` say."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from advisor.cli.common import split_binding
from advisor.config.errors import wrong_use
from costdb.choosing import MOST_CANDIDATES
from costdb.subject import Chosen
from costdb.wording import NAME_PART, NAME_START, read_number

if TYPE_CHECKING:
    from costdb.expr import Expr

_NAME = re.compile(rf"[{NAME_START}][{NAME_PART}.]*")
_RANGE = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})")


def parse_given(definitions: Iterable[str]) -> Mapping[str, str]:
    """Return what ``-D NAME=VALUE`` options say; the last one of a name holds.

    A value is a number or a word; what it is for decides.
    """
    given: dict[str, str] = {}
    for definition in definitions:
        name, text = split_binding(definition)
        if not text:
            raise wrong_use(f"-D {definition}: a value is missing")
        given[name] = text
    return given


def parse_over(texts: Iterable[str]) -> Mapping[str, tuple[Chosen, ...] | None]:
    """Return what ``--over`` options say: ``NAME``, ``NAME=a,b,c`` and ``NAME=a..b``, by commas.

    A name without values stands for all that are allowed (None). Values go on until the next
    ``NAME=``.

    Raises
    ------
    CommandError
        Malformed, a name twice, or too long a range.
    """
    over: dict[str, tuple[Chosen, ...] | None] = {}
    for text in texts:
        listing = ""
        for piece in text.split(","):
            name, equals, rest = (part.strip() for part in piece.partition("="))
            value = piece.strip()
            if equals or not listing:
                if not _NAME.fullmatch(name):
                    raise wrong_use(
                        f"--over {text}: expected NAME, NAME=a,b,c or NAME=a..b, by commas"
                    )
                if name in over:
                    raise wrong_use(f"--over {text}: {name} is named twice")
                over[name] = () if equals else None
                listing, value = (name, rest) if equals else ("", "")
            if listing:
                over[listing] = (*(over[listing] or ()), *_values(value, text))
    return {name: tuple(dict.fromkeys(v)) if v else v for name, v in over.items()}


def _values(value: str, text: str) -> Iterable[Chosen]:
    ends = _RANGE.fullmatch(value)
    if ends is not None:
        low, high = int(ends[1]), int(ends[2])
        if high < low:
            raise wrong_use(f"--over {text}: the range {value} is empty")
        if high - low >= MOST_CANDIDATES:
            raise wrong_use(f"--over {text}: {value} is more than {MOST_CANDIDATES} values")
        return range(low, high + 1)
    if not value:
        raise wrong_use(f"--over {text}: a value is missing")
    number = read_number(value)
    if number is None:
        return (value,)
    if not math.isfinite(number):
        raise wrong_use(f"--over {text}: {value} is too large")
    return (number,)


def parse_where(text: str | None) -> Expr | None:
    """Return the condition that ``--where`` states.

    Raises
    ------
    CommandError
        It is no expression of the cost language.
    """
    if text is None:
        return None
    from costdb.expr import ExprError, parse

    try:
        return parse(text)
    except ExprError as error:
        raise wrong_use(f"--where: {error}") from error
