"""The expressions of a function as parts with ranks, and what has to hold between them.

What NumPy's functions do to ranks the tables of its functions tell. An expression of which
nothing is known may be anything.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from advisor.frontend.ranks import MOST, Part, Rules
from advisor.source import KEY, OF_ARRAYS, each_of, every
from costdb.records import dataclass, field, replace

Key = tuple[str, str]
"""A function and its parameter, as calls give it or, in parentheses, as the function needs it; or
what it returns: all of it, or an item; a class and ``.attribute``."""


@dataclass(slots=True)
class Told:
    """What the functions of a file tell one another.

    Attributes
    ----------
    parameters : mapping of str to sequence of str
        Of functions and methods that alone have their names; of methods without the object.
    known : dict of (str, str) to Part
    read : mapping of str to frozenset of str
        Attributes of its parameters that a function reads, also in what it calls.
    settled : frozenset of str
        Attributes that are bound where an object is made, and nowhere else.
    mixed : set of (str, str)
        Parameters that calls give several ranks: what holds for one may not for another.
    shown : set of (str, str)
        Parameters for which all calls give arrays, and attributes that some method binds to one.
    """

    parameters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    known: dict[Key, Part] = field(default_factory=dict)
    read: Mapping[str, frozenset[str]] = field(default_factory=dict)
    settled: frozenset[str] = frozenset()
    mixed: set[Key] = field(default_factory=set)
    shown: set[Key] = field(default_factory=set)
    _told: dict[Key, list[Part]] = field(default_factory=dict)

    def tell(self, key: Key, part: Part) -> None:
        """Note what something is in one place, where ranks are settled."""
        self._told.setdefault(key, []).append(part)

    def settle(self, *, chosen: bool) -> None:
        """Know what all places agree on: calls may differ, attributes are what any use needs.

        What a place has `chosen` it may choose otherwise, once it knows what others are sure of.
        """
        for key, parts in self._told.items():
            held = key[1].startswith(".")
            arrays = (
                one.number and one.least and not (one.other or one.may_be_list) for one in parts
            )
            self.shown |= {key} if (any if held else all)(arrays) else set()
            if held:  # what others know goes over what one method takes it for
                parts = [one for one in parts if not (one.other and one.chosen)] or parts
            given = key[1] in self.parameters.get(key[0], ())
            returned = not (held or given or key[1].startswith("("))
            sure = [one.least for one in parts if one.least == one.most and not one.chosen]
            likely = sure or [one.least for one in parts if chosen or not one.chosen]
            if returned and any(one.listed for one in parts):
                self.known[key] = Part(other=True)
            elif given and len({*sure}) > 1:
                self.known[key] = Part(other=True)
                self.mixed.add(key)
            elif not any(one.other for one in parts):
                self.known[key] = Part(
                    (max if held else min)(likely, default=0),
                    max(sure, default=MOST),
                    number=(any if held else all)(one.number for one in parts),
                    whole=held and any(one.whole for one in parts),
                    chosen=not sure,
                )
            elif held or not any(one.number for one in parts):
                self.known[key] = Part(other=True)
        self._told.clear()
        names = Counter(name for of, name in self.known if of)
        self.known |= {
            ("", name): part
            for (of, name), part in self.known.items()
            if of and name.startswith(".") and names[name] == 1
        }

    def makes(self, name: str) -> bool:
        """Return whether a name is that of a class."""
        return any(of == name and one.startswith(".") for of, one in self.known)

    def about(self, of: str, name: str) -> Part:
        """Return a part that is what is known of something."""
        return replace(self.known.get((of, name), Part()))


NUMPY = {"np": "numpy", "numpy": "numpy", "math": "math"}
"""What names of modules mean where nothing imports them."""

PRODUCTS: Sequence[Sequence[int | None]] = ((0, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2, 2))
"""Ranks of a product and of its factors."""

_BUILTINS = frozenset(
    ["len", "range", "int", "float", "round", "sum", "min", "max", "abs", "isinstance"]
)
_KEEP_WHOLE = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_OF_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)
_NO_ARITHMETIC = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp


class Parts:
    """Reads expressions.

    Attributes
    ----------
    rules : Rules
    imports : mapping of str to str
        Modules and functions, by the names that a file gives them.
    dropped : frozenset of str
        Names of which no rank is asked: they fit none.
    given : dict of str to Part
        What names denote at the start, and attributes of them.
    now : dict of str to Part
        What names denote here.
    file : Told
    own : (str, str)
        The class that a method is of, and what it calls its object.
    made : dict of str to str
        Names that one object is bound to, which is made here, and their classes.
    used : frozenset of str
        What is used as no list is.
    put : dict of str to Part
        What attributes are bound to.
    """

    def __init__(
        self,
        given: Iterable[str],
        imports: Mapping[str, str],
        dropped: frozenset[str],
        file: Told,
        own: Key = ("", ""),
    ) -> None:
        self.rules, self.imports, self.dropped = Rules(), imports, dropped
        self.file, self.own, self.made = file, own, dict[str, str]()
        self.given = {name: Part(names=frozenset((name,)), listed=True) for name in given}
        self.now = dict(self.given)
        self.in_sum = False
        # names with subscripts of subscripts, and those that are used as only arrays are
        self.nested, self.sure, self.used = set[str](), set[str](), frozenset[str]()
        self.put = dict[str, Part]()

    def number(self, *, whole: bool = False, rank: int = 0) -> Part:
        """Return a part that is known to hold numbers."""
        return Part(rank, rank, number=True, whole=whole, array=rank > 0)

    def ranked(self, part: Part, least: int, most: int | None = None) -> Part:
        """Let a part have so many dimensions, exactly or within bounds."""
        forms = [(n,) for n in range(least, (least if most is None else most) + 1)]
        self.rules.one_of((part,), forms)
        return part

    def array(self, part: Part, least: int = 0) -> Part:
        """Let a part be used as arrays are."""
        part.number = part.array = True
        # what it is taken out of may hold it, as a list does
        self.sure |= part.names if not part.inside else frozenset()
        return self.ranked(part, least, MOST) if least else part

    def counted(self, node: ast.expr | None) -> None:
        """Let an expression be a whole number."""
        if node is not None:
            part = self.ranked(self.part(node), 0)
            part.number = part.whole = True

    def shaped(self, extents: Sequence[ast.expr]) -> Part:
        """Return an array of which the extents are stated."""
        for one in extents:
            self.counted(one)
        return self.number(rank=len(extents))

    def item(self, base: Part) -> Part:
        """Return what one step through a part gives."""
        made = Part(row=True, listed=base.listed)
        self.rules.taken(made, base, 1, 1, ())
        return made

    def operated(self, op: ast.operator | None, parts: Sequence[Part]) -> Part:
        """Return what comes out element by element."""
        if not parts or any(one.other for one in parts):
            return Part(other=True)
        row = any(one.row for one in parts)
        made = Part(number=op is not None and not isinstance(op, ast.Add), row=row)
        self.rules.largest(made, parts)
        self.rules.alike((made, *parts))
        if isinstance(op, _KEEP_WHOLE):
            self.rules.needs_whole(made, parts)
        if isinstance(op, _OF_BITS) and all(one.subscript == "mask" for one in parts):
            made.subscript = "mask"
        return made

    def test(self, node: ast.expr) -> None:
        """Read a condition: it is one value."""
        match node:
            case ast.BoolOp(values=values):
                for one in values:
                    self.test(one)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.test(operand)
            case ast.Compare(ops=ops) if not any(isinstance(one, _NO_ARITHMETIC) for one in ops):
                self.ranked(self.part(node), 0)
            case _:
                self.part(node)

    def part(self, node: ast.expr) -> Part:
        """Return the part that an expression is."""
        match node:
            case ast.Constant(value=int() | float() | complex() as value):
                return self.number(whole=type(value) is int)
            case ast.Constant() | ast.JoinedStr() | ast.Dict() | ast.Set():
                return Part(other=True)
            case ast.Name(id=name):
                return Part() if name in self.dropped else self.now.get(name, Part())
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript():
                return self._subscript(node)
            case ast.BinOp(left=left, op=op, right=right):
                outer = self.in_sum
                # of a product of several any factor may be what a sum goes through
                self.in_sum &= not isinstance(op, ast.Mult)
                parts = [self.part(left), self.part(right)]
                self.in_sum = outer
                if isinstance(op, ast.MatMult):
                    return self.formed(PRODUCTS, parts)
                if self.in_sum and isinstance(op, ast.Mult | ast.Sub):
                    self._swept((left, right), parts)
                match left, right:
                    case (
                        ast.Subscript(slice=ast.Name() | ast.Subscript() as i),
                        ast.Subscript(slice=ast.Name() | ast.Subscript() as j),
                    ) if isinstance(op, ast.Sub) and ast.dump(i) != ast.dump(j):
                        self.rules.apart(*parts)
                return self.operated(op, parts)
            case ast.UnaryOp(op=ast.Not()) | ast.BoolOp():
                self.test(node)
                return Part()
            case ast.UnaryOp(op=op, operand=operand):
                made = self.operated(ast.Sub(), [self.part(operand)])
                made.subscript = "mask" if isinstance(op, ast.Invert) else ""
                return made
            case ast.Compare(left=left, ops=ops, comparators=others):
                parts = [self.part(one) for one in (left, *others)]
                if any(isinstance(one, _NO_ARITHMETIC) for one in ops):
                    return Part()
                equal = any(isinstance(one, ast.Eq | ast.NotEq) for one in ops)
                made = self.operated(None if equal else ast.Div(), parts)
                made.subscript = "mask"
                return made
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.test(test)
                ways = [self.part(body), self.part(orelse)]
                made = self.operated(None, ways)
                made.listed = any(one.listed for one in ways)
                return made
            case ast.Call():
                return self.called(node)
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                for one in parts:
                    self.part(one)
                return Part(other=True)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                self.element(node)
                return Part(other=True)
            case ast.DictComp(value=value, generators=generators):
                self.element(ast.GeneratorExp(value, generators))
                return Part(other=True)
            case _:
                return Part()

    def held(self, node: ast.expr, attributes: Iterable[str]) -> Part:
        """Return the part that an attribute of an attribute of an expression is, and so on."""
        for one in attributes:
            node = ast.Attribute(node, one)
        return self.part(node)

    def formed(self, forms: Sequence[Sequence[int | None]], parts: Sequence[Part]) -> Part:
        """Return the result of what takes parts of the ranks that one of some forms states."""
        made = Part(number=True)
        taken = parts[: len(forms[0]) - 1]
        for one in taken:
            self.array(one)
        self.rules.one_of((made, *taken), [form[: len(taken) + 1] for form in forms])
        return made

    def ravelled(self, part: Part) -> Part:
        """Return the elements of a part, one after another."""
        made = self.formed([(1, None)], [self.array(part, 1)])
        self.rules.needs_whole(made, [part])
        return made

    def called(self, node: ast.Call) -> Part:
        """Return what a call gives: anything."""
        for one in (*node.args, *(one.value for one in node.keywords)):
            self.part(one)
        return Part()

    def element(self, node: _Comprehension) -> Part:
        """Return what a comprehension yields."""
        before = self.now
        self.now = dict(before)
        for one in node.generators:
            self.walked(one.target, one.iter)
            for test in one.ifs:
                self.test(test)
        found = self.part(node.elt)
        self.now = before
        return found

    def walked(self, target: ast.expr, node: ast.expr) -> None:
        """Bind a target to each step through an expression."""
        match node, target:
            case ast.Call(func=function, args=args), _ if self.path(function).endswith("range"):
                for one in args:
                    self.counted(one)
                self.unpack(target, self.number(whole=True))
            case ast.Call(func=function, args=[*args]), ast.Tuple(elts=parts) if (
                self.path(function) == "ndindex"
            ):
                for one in args:
                    if isinstance(one, ast.Attribute) and one.attr == "shape":
                        self.ranked(self.array(self.part(one.value)), len(parts))
                    self.part(one)
                for one in parts:
                    self.unpack(one, self.number(whole=True))
            case ast.Call(func=function, args=[one]), ast.Tuple(
                elts=[ast.Tuple(elts=parts), rest]
            ) if self.path(function) == "ndenumerate":
                self.ranked(self.part(one), len(parts)).number = True
                self.unpack(rest, self.number())
                for inner in parts:
                    self.unpack(inner, self.number(whole=True))
            case ast.Call(func=ast.Name(id="enumerate"), args=[one, *_]), ast.Tuple(elts=[i, rest]):
                self.unpack(i, self.number(whole=True))
                self.walked(rest, one)
            case ast.Call(func=ast.Name(id="zip"), args=args), ast.Tuple(elts=targets):
                for inner, one in zip(targets, args, strict=False):
                    self.walked(inner, one)
            case ast.Call(func=ast.Attribute(attr="items")), ast.Tuple(elts=[key, rest]):
                self.unpack(key, Part(subscript="key"))
                self.unpack(rest, Part())
            case ast.Call(func=ast.Attribute(attr="keys")), _:
                self.unpack(target, Part(subscript="key"))
            case ast.Call(func=ast.Name(id="list" | "reversed" | "sorted"), args=[one, *_]), _:
                self.walked(target, one)
            case _:
                self.unpack(target, self.item(self.part(node)))

    def unpack(self, target: ast.expr, part: Part) -> None:
        """Bind a target to a part."""
        match target:
            case ast.Name(id=name):
                self.bind(name, part)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for one in parts:
                    self.unpack(one, self.item(part))
            case ast.Subscript() | ast.Attribute(attr="flat"):
                self.rules.stored(part, self.part(target))
            case ast.Attribute():
                if part.number or part.array or part.names:
                    self.put[ast.unparse(target)] = part
                self.rules.same(part, self.part(target))

    def bind(self, name: str, part: Part) -> None:
        """Bind a name from here on."""
        self.now[name] = part

    def path(self, node: ast.expr) -> str:
        """Return the full name of a function or a constant of a module; empty where it is none."""
        match node:
            case ast.Name(id=name) if name not in self.now:
                plain = name if name in _BUILTINS or "*" in self.imports else ""
                return self.imports.get(name, plain).removeprefix("numpy.")
            case ast.Attribute(value=ast.Name() | ast.Attribute() as value, attr=attr):
                of = self.path(value)
                known = of and (isinstance(value, ast.Attribute) or value.id in self.imports)
                return f"{of}.{attr}".removeprefix("numpy.") if known else ""
        return ""

    def with_shape(self, node: ast.expr) -> ast.expr:
        """Return ``np.shape(x)`` as ``x.shape``, and others as they are."""
        match node:
            case ast.Call(func=func, args=[one], keywords=[]) if self.path(func) == "shape":
                return ast.Attribute(one, "shape", ast.Load())
        return node

    def _swept(self, nodes: Sequence[ast.expr], parts: Sequence[Part]) -> None:
        """What a sum goes through together with a part that an index chooses is as large."""
        for k, node in enumerate(nodes):
            chosen = isinstance(node, ast.Subscript) and any(every(ast.Name, node.slice))
            if chosen and isinstance(nodes[1 - k], ast.Name | ast.Attribute):
                self.rules.swept(parts[k], parts[1 - k])

    def _attribute(self, node: ast.Attribute) -> Part:
        value, attr = node.value, node.attr
        if self.path(node):
            return self.number() if attr in ("pi", "e", "inf", "nan") else Part()
        held = self.part(value)
        if attr == "flat" and not held.other:
            return self.ravelled(held)
        if attr in OF_ARRAYS and not held.other:
            whole = attr in ("size", "ndim")
            if attr in ("real", "imag"):
                return self.operated(None, [held])
            self.array(held, 2 if attr == "T" else 1)
            if attr == "T":
                return held
            return self.number(whole=True) if whole else Part(other=True)
        owner = ast.unparse(value)
        # an array that has keys is of records
        numbers = held.number and not attr.startswith(KEY)
        made = owner in self.made and attr in self.file.settled
        if numbers or (self.given.get(owner) is not held and not made):
            return Part()
        held.other = True
        name = f"{owner}.{attr}"
        if name in self.dropped:
            return Part()
        if name not in self.given:
            kind = self.own[0] if owner == self.own[1] else self.made.get(owner, "")
            self.given[name] = self.file.about(kind, f".{attr}")
            part = self.given[name]
            part.names = frozenset((name,))
            part.listed = (kind, f".{attr}") not in self.file.shown and name not in self.used
            if part.number and not part.chosen:
                self.sure.add(name)
        return self.given[name]

    def _subscript(self, node: ast.Subscript) -> Part:
        index, value = node.slice, self.with_shape(node.value)
        if isinstance(value, ast.Attribute) and value.attr == "shape":
            axis = index.value if isinstance(index, ast.Constant) else None
            least = max(axis + 1, -axis) if isinstance(axis, int) else 1
            self.array(self.part(value.value), least)
            return Part() if isinstance(index, ast.Slice) else self.number(whole=True)
        match value:
            case ast.Call(func=func, args=[one]) if self.path(func) in ("where", "nonzero"):
                self.array(self.part(one), 1)
                return self.number(whole=True, rank=1)
            case ast.Attribute(attr="c_" | "r_" as joins) if self.path(value):
                made, joined = Part(number=True), [self.number(rank=2 if joins == "c_" else 1)]
                for one in each_of(index):
                    joined += [] if isinstance(one, ast.Slice) else [self.part(one)]
                self.rules.largest(made, joined)
                return made
            case ast.Attribute(attr="mgrid") if isinstance(index, ast.Tuple):
                for one in index.elts:
                    if isinstance(one, ast.Slice) and one.step is None:
                        self.counted(one.lower)
                        self.counted(one.upper)
                return self.number(rank=len(index.elts) + 1)
        match index:
            case ast.Call(func=func, args=args) if self.path(func) == "ix_":
                for one in args:
                    self.array(self.part(one), 1).whole = True
                self.array(self.part(value), len(args))
                return self.number(rank=len(args))
        base, by, kept, added, masked = self.part(value), list[Part](), 0, False, False
        parts = each_of(index)
        for one in parts:
            match one:
                case ast.Slice(lower=lower, upper=upper, step=step):
                    for bound in (lower, upper, step):
                        self.counted(bound)
                    kept += 1
                case ast.Starred() | ast.Constant(value=str() | bytes()):
                    base.other = True
                case ast.Attribute(attr="newaxis"):
                    added = True
                case ast.Constant(value=known) if known is None or known is ...:
                    added = True
                    # whoever writes `...` leaves open how many axes there are
                    base.chosen |= known is ...
                case _:
                    by.append(self.part(one))
                    # what has keys is no array
                    base.other |= by[-1].subscript == "key"
                    if by[-1].subscript == "mask":
                        # beside others it chooses along one axis, which is kept
                        alone = len(parts) == 1
                        self.ranked(by.pop(), 1, MOST if alone else 1)
                        masked, kept = alone, kept + 1
                    else:
                        by[-1].whole = True
        if len(parts) > 1 or masked:
            self.array(base)
        if isinstance(value, ast.Subscript):
            self.nested |= base.names
        if added or masked:
            self.ranked(base, max(1, kept + len(by)), MOST)
            made = Part(int(masked), number=True)
            if masked:
                # elements, or rows
                self.rules.stored(made, base)
            return made
        made = Part(row=not kept, listed=base.listed and len(parts) == 1)
        self.rules.taken(made, base, len(by), kept + len(by), by)
        return made
