"""Choosing among variants of a function at run time, by predicted cost at the actual sizes."""

from advisor.selection.plans import Selection, select

__all__ = ["Selection", "select"]
