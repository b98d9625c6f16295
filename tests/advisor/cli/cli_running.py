"""How a run of the program ended, and what a refusal looks like."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


Advise = Callable[..., Ended]


def refused(ended: Ended, *parts: str) -> None:
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1, ended.err
    assert ended.err.startswith("advise: ")
    for part in parts:
        assert part in ended.err
