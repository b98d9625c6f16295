"""Choosing among variants of a function at run time, by predicted cost at the actual sizes."""

from advisor.selection.choosing import Selection, select

__all__ = ["Selection", "select"]
