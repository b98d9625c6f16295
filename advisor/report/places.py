"""Places and sentences as build servers want them."""

from __future__ import annotations

from advisor.finding import Finding
from advisor.source import Span


def last_line(span: Span) -> int:
    """Return the last line of which a span holds some text."""
    ends_above = span.end_column == 0 and span.end_line > span.start_line
    return span.end_line - 1 if ends_above else span.end_line


def full_message(finding: Finding) -> str:
    """Return the message, which starts with the gain, and the reason after it."""
    message = finding.message.rstrip()
    if message and message[-1] not in ".!?":
        message += "."
    return f"{message} {finding.reason}".strip()
