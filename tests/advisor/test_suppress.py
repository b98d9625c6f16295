"""Comments leave out the findings they speak of, and are named when they leave out none."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.engine import Options, check_source
from advisor.finding import Finding, Remark
from advisor.frontend.comments import read_comments
from advisor.source import SourceProblem, Span
from advisor.suppress import UNUSED_SUPPRESSION, apply_suppressions
from tests.advisor.report.report_samples import SHIFTS

KERNEL = """\
@kernel{decorator}
def f(
    a,  # the image
):{head}
    for k in range(9):{loop}
        a = g(
            a,
        ){call}
        b = a{plain}
{above}    c = a{last}
"""
PLACES = ("decorator", "head", "loop", "call", "plain", "above", "last")
# The lines on which each comment leaves out what starts there.
REACH = {
    "decorator": range(1, 12),
    "head": range(1, 12),
    "loop": range(5, 10),
    "call": range(6, 9),
    "plain": range(9, 10),
    "above": range(10, 12),
    "last": range(10, 11),
}


def program(place: str, comment: str) -> str:
    texts = dict.fromkeys(PLACES, "")
    texts[place] = f"    {comment}\n" if place == "above" else f"  {comment}"
    return KERNEL.format(**texts)


def finding(line: int, code: str = "ADV201") -> Finding:
    return replace(SHIFTS, path="k.py", code=code, span=Span(line, 4, line, 9))


CODES = ("ADV101", "ADV201")


def applied(
    source: str, *findings: Finding, inactive: str = "", known: tuple[str, ...] = CODES
) -> tuple[tuple[Finding, ...], tuple[Remark, ...]]:
    comments, codes = read_comments(source), {code: code for code in known}
    active = inactive.__ne__
    return apply_suppressions("k.py", source, comments, findings, active, (), lambda: codes)


def kept(source: str, *findings: Finding) -> tuple[Finding, ...]:
    return applied(source, *findings)[0]


def unused(source: str, *findings: Finding, **how: Any) -> tuple[Remark, ...]:
    return applied(source, *findings, **how)[1]


@pytest.mark.parametrize("place", PLACES)
def test_a_comment_reaches_its_statement_and_no_further(place: str) -> None:
    source = program(place, "# advise: ignore[ADV201]")
    lines = range(1, source.count("\n") + 1)
    left = {one.span.start_line for one in kept(source, *map(finding, lines))}
    assert set(lines) - left == set(REACH[place]) & set(lines)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_only_the_codes_named(newline: str) -> None:
    source = newline.join(["x = 1", "y = 2  # advise: ignore[ADV201]", ""])
    both = (finding(2), finding(2, "ADV101"))
    assert kept(source, *both) == both[1:]
    everything = source.replace("[ADV201]", "")
    assert kept(everything, *both) == ()
    whole_file = newline.join(["# advise: ignore-file[ADV201]", source])
    assert kept(whole_file, finding(1), finding(3), finding(3, "ADV101")) == (finding(3, "ADV101"),)


def test_blocks() -> None:
    source = (
        "a = 1\n# advise: ignore-start[ADV201]\nb = 2\nc = 3\n# advise: ignore-end[ADV201]\nd = 4\n"
    )
    left = kept(source, *(finding(line) for line in (1, 3, 4, 6)))
    assert [one.span.start_line for one in left] == [1, 6]
    with pytest.raises(SourceProblem, match=r"^k\.py:2:1: ignore-start"):
        kept(source.replace("# advise: ignore-end[ADV201]", ""), finding(1))


def test_a_comment_without_effect_is_named_with_its_place() -> None:
    source = "x = 1\ny = 2  # advise: ignore[ADV201, ADV101]\n"
    (remark,) = unused(source, finding(2))
    assert remark.message.startswith(f"{UNUSED_SUPPRESSION} unused suppression: ")
    assert "ADV101" in remark.message and "ADV201" not in remark.message
    assert (remark.path, remark.span) == ("k.py", Span(2, 7, 2, 39))
    assert unused(source, finding(2), finding(2, "ADV101")) == ()
    assert unused(source, finding(2), inactive="ADV101") == ()
    assert unused(source, finding(2), inactive=UNUSED_SUPPRESSION) == ()
    (bare,) = unused("y = 2  # advise: ignore\n")
    assert "nothing to ignore, with" in bare.message


def test_a_code_that_no_rule_has_is_named_whatever_is_selected() -> None:
    source = "x = 1  # advise: ignore[ADV201, ADV102]\n"

    def told(*codes: str, inactive: str = "ADV102") -> list[str]:
        found = unused(source, finding(1), inactive=inactive, known=codes)
        return [remark.message for remark in found]

    (message,) = told("ADV201", "ADV101")
    assert "there is no rule ADV102: nearest are ADV101, ADV201" in message
    assert told("ADV201", "ADV102") == []
    assert told("ADV201", "ADV101", inactive=UNUSED_SUPPRESSION) == []


def test_text_that_python_does_not_know_still_has_lines() -> None:
    source = "new syntax here  # advise: ignore\nmore of it\n"
    assert kept(source, finding(1), finding(2)) == (finding(2),)


@given(st.lists(st.integers(1, 11), max_size=5), st.sampled_from(PLACES))
def test_what_is_left_keeps_its_order(lines: list[int], place: str) -> None:
    source = program(place, "# advise: ignore[ADV201]")
    findings = [finding(line) for line in lines]
    left = list(kept(source, *findings))
    assert left == [one for one in findings if one in left]
    assert bool(unused(source, *findings)) == (len(left) == len(findings))


COMMENTED = """\
import numpy as np


# advise: kernel N=1000
# advise: b: f8[N, N] over (none, block(x)) on mesh(x=4)
# advise: c: f8[N, N] over (none, block(x)) on mesh(x=4)
# advise: ignore[ADV201]
def f(b, c):
    c[:, 1:] = b[:, :-1]
    return c
"""


def test_a_suppression_of_what_is_not_there_is_idle() -> None:
    (remark,) = check_source("k.py", COMMENTED, Options("t3e", {}, (), (), 1.0)).remarks
    assert UNUSED_SUPPRESSION in remark.message
