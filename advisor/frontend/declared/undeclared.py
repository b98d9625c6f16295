"""What to write for parameters that nothing declares, as far as their uses tell."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from advisor.frontend.expressions.regions import is_new_axis
from advisor.frontend.syntax.walking import show

_EXTENTS = ("N", "M", "K", "L")


def hints(
    node: cst.FunctionDef, parameters: Iterable[cst.Param], *, in_types: bool
) -> dict[str, str]:
    """Return for each of some parameters why it is not known, and what makes it so.

    Parameters
    ----------
    node : libcst.FunctionDef
    parameters : iterable of libcst.Param
        Those of which neither an annotation nor a comment says what they are.
    in_types : bool
        Whether the kernel is marked by a decorator, not by a comment.
    """
    lacks = {
        parameter.name.value: f"`{parameter.name.value}` has no annotation"
        if parameter.annotation is None
        else f"the annotation of `{parameter.name.value}` states no extents"
        for parameter in parameters
    }
    uses = _Uses(frozenset(lacks))
    show(node.body, uses)
    return {
        name: f"{lack}: write "
        + (
            _count(name)
            if name in uses.numbers
            else _array(name, uses.ranks[name], in_types) + _or_number(name, uses.ranks[name])
        )
        for name, lack in lacks.items()
    }


def _count(name: str) -> str:
    return f"`{name}: int` for a whole number"


def _or_number(name: str, rank: int) -> str:
    """Return what else may be meant where nothing takes an element of it."""
    return "" if rank else f"; or, if it is a number, only `{name}: float`"


def _array(name: str, rank: int, in_types: bool) -> str:
    known = 1 <= rank <= len(_EXTENTS)
    extents = _EXTENTS[: rank if known else 1]
    whole = ["none"] * (len(extents) - 1)
    if in_types:
        parts = [*(f'"{extent}"' for extent in extents), 'Block("row")', *["None"] * len(whole)]
        dist = f'Dist({", ".join(parts)}, on=Mesh(row="P"))'
        text = f"`{name}: Annotated[NDArray[np.float64], {dist}]`"
    else:
        over = ", ".join(["block(row)", *whole])
        text = f"`# advise: {name}: f8[{', '.join(extents)}] over ({over}) on mesh(row=P)` above it"
    each = "" if known else ", an extent for each dimension"
    return f"{text}, with its own element type and distribution{each}"


class _Uses(cst.CSTVisitor):
    """Counts the dimensions by which names are subscripted, and sees which of them count."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__()
        self.names = names
        self.ranks = dict.fromkeys(names, 0)
        self.numbers: set[str] = set()

    def on_visit(self, node: cst.CSTNode) -> bool:
        match node:
            case cst.Subscript(value=cst.Name(value=name)) if name in self.names:
                rank = sum(not is_new_axis(element) for element in node.slice)
                self.ranks[name] = max(self.ranks[name], rank)
            case cst.Call(func=cst.Name(value="range" | "prange")):
                for argument in node.args:
                    self._counts(argument.value)
            case cst.Slice():
                for bound in (node.lower, node.upper, node.step):
                    if bound is not None:
                        self._counts(bound)
            case _:
                pass
        return True

    def _counts(self, node: cst.BaseExpression) -> None:
        """Note the names of a sum or product of names and numbers."""
        if isinstance(node, cst.Name) and node.value in self.names:
            self.numbers.add(node.value)
        elif isinstance(node, cst.UnaryOperation):
            self._counts(node.expression)
        elif isinstance(node, cst.BinaryOperation):
            self._counts(node.left)
            self._counts(node.right)
