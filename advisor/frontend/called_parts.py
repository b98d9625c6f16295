"""What calls need of the parts of a function, and what they give."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from advisor.frontend.parts import PRODUCTS, Key, Parts
from advisor.frontend.ranks import MOST, Part
from advisor.ir.effects import DRAWS
from advisor.numpy_functions import FUNCTIONS, SIZE_AT
from advisor.numpy_table import COPIES, ELEMENTWISE, PARAMETERS, REDUCTIONS, ROWS, SAME_AS, SCANS
from advisor.source import OF_ARRAYS

_Rank = int | None
_ALONG = REDUCTIONS.keys() | {name for name, one in FUNCTIONS.items() if one.rule == "along"}
_LIKE = frozenset(
    [
        *("zeros_like", "empty_like", "ones_like", "full_like", "astype", "fft.fft", "fft.ifft"),
        *("argsort", "round"),
    ]
)
_OF_DATA = ("flatnonzero", "argwhere", "unique")
_KEPT = (SCANS.keys() | COPIES.keys() | frozenset(["flip", "roll", "sort"])) - _LIKE
_FILLED = frozenset(["zeros", "ones", "empty", "full"])
_ALIKE = [(n, n) for n in range(MOST + 1)]
_FORMS: Mapping[str, Sequence[Sequence[_Rank]]] = {
    **{"dot": PRODUCTS, "matmul": PRODUCTS, "inner": PRODUCTS[:1]},
    **{"outer": [(2, 1, 1)], "arange": [(1, 0, 0, 0)], "linspace": [(1, 0, 0, 0)]},
    **{"column_stack": [(2, None)], "vstack": [(2, None)]},
    **{"eye": [(2, 0)], "bincount": [(1, 1)], "diff": [(n, n) for n in range(1, MOST)]},
}
"""Ranks of results, and of operands, of functions that the table has no forms of."""


_OWN = frozenset(
    [
        *("clip", "conj", "dot", "ravel", "flatten", "fill", "reshape", "tolist", "item"),
        *("transpose", "nonzero"),
    ]
)
_KEYED = frozenset({"collections", "dict", "set", "frozenset"})
"""What gives things that have keys, or none, in the place of subscripts."""
_LISTED = frozenset({"recv", "gather", "allgather", "alltoall"})
_OF_MESSAGES = _LISTED | {"sendrecv", "bcast"}
"""Of communicators: what comes is anything, or a list of that."""
METHODS = _ALONG | _KEPT | _LIKE | _OWN
OF_OTHERS = frozenset({"copy", "sort", "index", "count"})
"""Methods that not only arrays have."""


class Calls(Parts):
    """Reads expressions with the calls in them.

    Attributes
    ----------
    passed : list of ((str, str), Part)
        What calls give to parameters of functions of the file.
    kinds : frozenset of str
        Names of what is appended to, and of what is asked how many dimensions it has.
    """

    def __init__(self, *read: Any) -> None:
        super().__init__(*read)
        self.passed: list[tuple[Key, Part]] = []
        self.kinds = frozenset[str]()

    def called(self, node: ast.Call) -> Part:
        """Return what a call gives."""
        name = self.path(node.func)
        match node.func:
            case ast.Name(id=own) if own in self.now:
                self.now[own].other = True
            case ast.Name(id=own) if own in self.file.parameters:
                return self._own(own, node)
            case ast.Name(id=head) | ast.Attribute(value=ast.Name(id=head)) if (
                self.imports.get(head, head).partition(".")[0] in _KEYED
            ):
                return Part(other=True)
            case ast.Name(id="list" | "sorted" | "tuple" | "zip" | "map" | "filter"):
                for one in node.args:
                    self.part(one)
                return Part(other=True)
            case ast.Name() if own_part := self._builtin(name, node.args):
                return own_part
            case ast.Attribute(value=value, attr=attr) if not name:
                outer, self.in_sum = self.in_sum, self.in_sum or attr in _ALONG
                base = self.part(value)
                self.in_sum = outer
                if attr in METHODS:
                    if attr not in OF_OTHERS and isinstance(value, ast.Call):
                        # NumPy's numbers have most of them, too
                        self.rules.needed(self.array(base), Part(1, number=True))
                    elif attr not in OF_OTHERS:
                        self.array(base, 1)
                    return self._numpy(attr, base, node.args, node.keywords)
                base.other |= attr not in OF_OTHERS
                if attr in _OF_MESSAGES:
                    made, given = Part(other=attr in _LISTED), [*map(self.handed, node.args)]
                    for sent in given[:1]:
                        self.rules.received(made, sent)
                    return made
                if attr in DRAWS and not base.number:
                    return self._drawn(
                        attr, node.args, {one.arg or "": one.value for one in node.keywords}
                    )
                if attr in self.file.parameters:
                    for path in self.file.read.get(attr, ()) if base.other else ():
                        # what a method reads of its object
                        root, *attributes = path.split(".")
                        if root not in self.file.parameters[attr]:
                            self.held(value, attributes)
                    return self._own(attr, node)
        if name.startswith("math."):
            for one in node.args:
                self.ranked(self.part(one), 0).number = True
            return self.number()
        return self._numpy(name, None, node.args, node.keywords)

    def handed(self, node: ast.expr) -> Part:
        """Return the part that is handed on: of what is a list, or of several ranks, anything."""
        match node:
            case ast.Name(name) | ast.Subscript(ast.Name(name), ast.Slice()) if name in self.kinds:
                return Part(other=True)
        return self.part(node)

    def _own(self, name: str, node: ast.Call) -> Part:
        """Return what a function of the file gives, and note what it is given."""
        given = [*zip(self.file.parameters[name], node.args, strict=False)]
        given += [(one.arg or "", one.value) for one in node.keywords]
        parts = [(parameter, self.handed(one)) for parameter, one in given]
        if not any(isinstance(one, ast.Starred) for one in node.args):
            self.passed += (((name, parameter), part) for parameter, part in parts)
            held = [
                (path, self.held(argument, attributes))
                for path in self.file.read.get(name, ())
                for root, *attributes in [path.split(".")]
                for parameter, argument in given
                if parameter == root and isinstance(argument, ast.Name | ast.Attribute)
                if OF_ARRAYS.isdisjoint(attributes)
            ]
            # what is taken out by a number may be of a tuple
            items = [one for one, argument in given if _is_item(argument)]
            for path, part in (*parts, *held):
                if path not in items:
                    self.rules.needed(part, self.file.about(name, f"({path})"))
        return self.file.about(name, "")

    def _builtin(self, name: str, args: Sequence[ast.expr]) -> Part | None:
        """Return what a function of Python gives; None where it is none."""
        if not args:
            return None
        match name, args[0]:
            case "len", one:
                self.ranked(self.part(one), 1, MOST)
                return self.number(whole=True)
            case "isinstance", one:
                # of several types
                self.part(one).other = True
                return Part()
            case "int" | "float" | "round", one:
                self.ranked(self.part(one), 0)
                return self.number()
            case "sum", ast.GeneratorExp() | ast.ListComp() as one:
                return self.operated(ast.Sub(), [self.element(one)])
            case "sum", one:
                return self.operated(ast.Sub(), [self.item(self.part(one))])
            case "min" | "max", one if len(args) == 1:
                return self.item(self.part(one))
            case "min" | "max", _:
                return self.ranked(self.operated(None, [self.part(one) for one in args]), 0)
            case "abs", one:
                return self.operated(ast.Sub(), [self.part(one)])
            case "range", _:
                for one in args:
                    self.counted(one)
                # it has elements, and is no array
                return Part(1, 1)
        return None

    def _numpy(
        self,
        name: str,
        base: Part | None,
        nodes: Sequence[ast.expr],
        keywords: Sequence[ast.keyword],
    ) -> Part:
        """Return what a function of NumPy gives, or the method of a part."""
        name = SAME_AS.get(name, name)
        named = {one.arg: one.value for one in keywords if one.arg}
        first = [] if base is None else [base]
        if not (first or nodes) and name in PARAMETERS and PARAMETERS[name][0] in named:
            nodes = [named.pop(PARAMETERS[name][0])]
        if any(one.startswith("ret") for one in named) or _of_objects(named.get("dtype")):
            # it returns several, or what may hold arrays of many lengths
            return Part(other=True)
        if name in _ALONG:
            return self._reduced(name, first, nodes, named)
        if name in _FILLED and nodes:
            return self._filled(nodes[0])
        match name, nodes:
            case "hstack" | "concatenate", [ast.List(elts=joined) | ast.Tuple(elts=joined), *_]:
                made = Part(number=True)
                for one in [self.array(self.part(one), 1) for one in joined]:
                    self.rules.one_of((made, one), _ALIKE)
                return made
            case "einsum", [ast.Constant(str(subscripts)), *arrays] if "." not in subscripts:
                operands, _, result = subscripts.replace(" ", "").partition("->")
                for axes, array in zip(operands.split(","), arrays, strict=False):
                    self.ranked(self.array(self.part(array)), len(axes))
                return self.number(rank=len(result))
        if name in ("where", "nonzero") and len(nodes) + len(first) == 1:
            self.array([*first, *map(self.part, nodes)][0], 1)
            return Part(other=True, subscript="mask")
        if name in _OF_DATA and len(nodes) == 1 and "axis" not in named:
            self.array(self.part(nodes[0]), 1)
            return self.number(whole=name != "unique", rank=1 + (name == "argwhere"))
        if name == "indices" and isinstance(nodes[0], ast.Tuple):
            for extent in nodes[0].elts:
                self.counted(extent)
            return self.number(whole=True, rank=len(nodes[0].elts) + 1)
        if name == "tolist":
            return Part(other=True)
        if name == "reshape":
            shape = nodes[base is None :]
            match shape:
                case [ast.Tuple(elts=extents) | ast.List(elts=extents)]:
                    return self.number(rank=len(extents))
                case [ast.Name() | ast.Attribute() | ast.Call() as whole]:
                    return self._filled(whole)
            return self.number(rank=len(shape))
        if name in ("array", "asarray") and nodes:
            match named.get("ndmin"):
                case None:
                    return self._stacked(nodes[0])
                case ast.Constant(int(least)):
                    self.part(nodes[0])
                    return Part(least, number=True, array=True)
        if name.startswith("random."):
            return self._drawn(name.removeprefix("random."), nodes, named)
        parts = [*first, *(self.part(one) for one in nodes)]
        for value in named.values():
            self.part(value)
        # who says along which axis has more of them in mind
        for one in parts[:1] if "axis" in named else ():
            one.chosen = True
        if name == "where" and len(parts) == 3:
            chosen = self.operated(ast.Mult(), parts[1:])
            made = self.operated(None, [parts[0], chosen])
            self.rules.needs_whole(made, [chosen])
            return made
        if name in ELEMENTWISE or name == "clip":
            made = self.operated(ast.Mult(), parts)
            if name in ROWS and ROWS[name].result == "truth":
                made.subscript = "mask"
            return made
        if name in ("cumsum", "cumprod") and len(parts) == 1 and "axis" not in named:
            return self.ravelled(parts[0])
        if name in _KEPT and parts:
            return parts[0]
        if name in _LIKE and parts:
            made = Part(number=True)
            # nobody asks for zeros like a number
            least = int(name.startswith("fft.") or name.endswith("_like"))
            self.rules.largest(made, [self.array(parts[0], least)])
            return made
        if name == "vdot":
            for one in parts:
                # whatever the number of its axes
                self.array(one, 1).chosen = True
            return self.number()
        if name in ("ravel", "flatten") and parts:
            return self.ravelled(parts[0])
        if name in _FORMS and parts:
            return self.formed(_FORMS[name], parts)
        if name in FUNCTIONS and parts:
            # what the table has no parameter for may give another shape
            known = named.keys() <= {*PARAMETERS[name]} and len(parts) <= len(PARAMETERS[name])
            return self._tabled(name, parts) if known else Part()
        if name.endswith(".at") and len(parts) > 1:
            for one in parts[:2]:
                self.array(one, 1)
            parts[1].whole = True
        return Part()

    def _stacked(self, node: ast.expr) -> Part:
        """Return the array that something is made."""
        made = Part(1, number=True, array=True)
        match node:
            case ast.List(elts=[first, *_]) | ast.Tuple(elts=[first, *_]):
                inner = isinstance(first, ast.List | ast.Tuple)
                item = self._stacked(first) if inner else self.part(first)
            case ast.ListComp():
                item = self.element(node)
            case _:
                part = self.part(node)
                return made if part.other else part
        self.rules.taken(item, made, 1, 1, ())
        return made

    def _reduced(
        self,
        name: str,
        first: Sequence[Part],
        nodes: Sequence[ast.expr],
        named: Mapping[str, ast.expr],
    ) -> Part:
        place = PARAMETERS[name].index("axis")
        placed = nodes[place - len(first)] if len(nodes) > place - len(first) else None
        axis = named.get("axis", placed)
        outer, self.in_sum = self.in_sum, True
        listed = ast.ListComp | ast.List | ast.Tuple
        parts = [
            *first,
            *(self._stacked(one) if isinstance(one, listed) else self.part(one) for one in nodes),
        ]
        self.in_sum = outer
        if nodes and isinstance(nodes[0], ast.GeneratorExp):
            # as the builtin one does
            return self.operated(ast.Sub(), [self.element(nodes[0])])
        base = self.array(parts[0], 1)
        if isinstance(axis, ast.UnaryOp):
            axis = axis.operand
        match axis:
            case _ if "keepdims" in named:
                return Part(number=True)
            case None | ast.Constant(value=None):
                # whatever the number of its axes
                for one in base.names & self.now.keys() if base.row else ():
                    self.now[one].chosen = True
                return self.number()
            case ast.Constant(value=int(k)):
                made = Part(number=True)
                self.rules.taken(made, base, 1, k + 1 - (axis is not named.get("axis", placed)), ())
                return made
        return Part(number=True)

    def _filled(self, shape: ast.expr) -> Part:
        """Return what has a shape that is stated."""
        match shape:
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return self.shaped(parts)
            case ast.Attribute(value=value, attr="shape"):
                return self.formed(_ALIKE, [self.part(value)])
            case ast.Constant() | ast.Call(ast.Name("len")):
                self.part(shape)
                return self.number(rank=1)
        made, part = Part(1, number=True, array=True), self.part(shape)
        match shape:
            case ast.Name(name) | ast.Attribute(attr=name) if name.endswith("shape"):
                # nobody calls a number so
                part.other = made.chosen = True
        if not part.other:
            self.rules.filled(made, part)
        return made

    def _drawn(self, name: str, nodes: Sequence[ast.expr], named: Mapping[str, ast.expr]) -> Part:
        """Return random numbers."""
        if name == "choices" or (name == "sample" and len(nodes) > 1):
            return Part(other=True)  # Python's own give lists
        if name in ("rand", "randn"):
            return self.shaped(nodes)
        place = SIZE_AT.get(name)
        given = [self.part(one) for one in nodes[:place]]
        for part in given:
            part.number = True
        if place is None:
            return Part()
        size = named.get("size", nodes[place] if len(nodes) > place else None)
        if size is None:
            given += [self.part(one) for one in named.values()]
            return self.operated(ast.Sub(), given) if given else self.number()
        return self._filled(size)

    def several(self, node: ast.Call, many: int) -> list[Part]:
        """Return the results of a call of what gives several; nothing where it gives an array."""
        name = self.path(node.func)
        if name in ("where", "nonzero") and len(node.args) == 1:
            self.array(self.part(node.args[0]), 1)
            return [self.number(whole=True, rank=1) for _ in range(many)]
        made = self.part(node)
        if name == "unique":
            # what there is, and where
            rest = (self.number(whole=True, rank=1) for _ in range(many - 1))
            return [Part(1, number=True, array=True), *rest]
        if made.number:
            return []
        if made.other:
            return [Part(other=True) for _ in range(many)]
        forms = FUNCTIONS[name].forms if name in FUNCTIONS else ()
        results = [one.results for one in forms if len(one.results) >= many]
        ranks = [{len(one[k]) for one in results} for k in range(many)]
        # what comes with others is likely an array
        return [self.number(rank=one.pop()) if len(one) == 1 else Part(array=True) for one in ranks]

    def _tabled(self, name: str, parts: Sequence[Part]) -> Part:
        """Return what a function of the table gives."""
        row = FUNCTIONS[name]
        if row.rule == "last":
            return self.array(parts[0], 1)
        forms = [one for one in row.forms if not one.where] or row.forms
        most = max(len(one.operands) for one in forms)
        taken = [self.array(one) for one in parts[:most]]
        forms = [one for one in forms if len(one.operands) == len(taken)] or forms
        wide = [one for k, one in enumerate(taken) if forms[0].operands[k:][:1] == ("...",)]
        several = len(forms[0].results) > 1
        made = Part(number=not several)
        of_any = several or any("..." in one for one in forms[0].results)
        ranks = [
            (None if of_any else len(one.results[0]), *map(_rank_of, one.operands), *[None] * most)
            for one in forms
        ]
        self.rules.one_of((made, *taken), [one[: len(taken) + 1] for one in ranks])
        if wide and of_any and not several:
            self.rules.largest(made, wide)
        return made


def _rank_of(operand: str) -> _Rank:
    return None if operand in ("...", "any") else 0 if operand == "." else len(operand)


def _of_objects(dtype: ast.expr | None) -> bool:
    match dtype:
        case ast.Name("object") | ast.Attribute(attr="object_") | ast.Constant("O" | "object"):
            return True
    return False


def _is_item(node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
