"""Loops in a function whose arguments have types: their edits, and what a function leaves."""

from __future__ import annotations

import warnings
from typing import Any

from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Proposal
from advisor.source import apply_edits
from transforms.loops.raised import TRANSFORM as ROWS
from transforms.loops.vectorise import TRANSFORM as ELEMENTS


def source(head: str, body: str, dtype: str = "f8") -> str:
    """Return a program of a head, in which ``{t}`` is an element type, and a function's body."""
    return head.format(t=dtype) + "\n".join(f"    {line}" for line in body.splitlines()) + "\n"


def edited(text: str) -> list[tuple[Proposal, str]]:
    """Return what is proposed of a program, each with the program that it becomes."""
    (kernel,) = read_kernels("f.py", text)
    made = [(one, one.edits()) for rule in (ELEMENTS, ROWS) for one in rule.propose(kernel)]
    return [(one, apply_edits(text, edits)) for one, edits in made if edits]


def results(text: str, values: list[Any]) -> list[Any] | type[Exception]:
    """Return what a program leaves in its arguments, or why it leaves nothing."""
    names: dict[str, Any] = {}
    exec(compile(text, "f.py", "exec"), names)
    arrays = [one if isinstance(one, int) else one.copy() for one in values]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            names["f"](*arrays)
        except Exception as error:
            return type(error)
    return arrays
