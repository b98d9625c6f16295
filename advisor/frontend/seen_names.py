"""Names of a function that a run showed besides its parameters, and attributes as such names.

``self.u`` where ``self`` is a parameter is an array like any other once a run showed it to be one
that the instance itself holds. So it is read as a name, ``self.u``, which edits write as the source
does. What it denotes, any function that is called may change, as it may what module-level names do.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, reduce

import libcst as cst

from advisor.frontend.bindings import NameScope, dotted
from advisor.ir.kernel import DeclaredArray
from advisor.ir.waiting import assigned_names
from advisor.numpy_table import PYTHON_COMPLEX, PYTHON_FLOAT, PYTHON_INTEGER
from advisor.observed import READ, Seen, SeenArray, SeenBinding, SeenNumber, What, either
from advisor.source import Span
from costdb.records import dataclass, field

SpanOf = Callable[[cst.CSTNode], Span]

_PYTHONS = {"int": PYTHON_INTEGER, "float": PYTHON_FLOAT, "complex": PYTHON_COMPLEX}


def names_around(seen: Seen, own: NameScope, parameters: Iterable[str]) -> frozenset[str]:
    """Return what a function was seen to read or bind that is no name of its own.

    Parameters
    ----------
    seen : Seen
    own : NameScope
        Names of the function.
    parameters : iterable of str
    """
    kept = {name for name in parameters if len(own.bound.get(name, ())) == 1}
    shown: tuple[SeenArray | SeenNumber | SeenBinding, ...]
    shown = (*seen.arrays, *seen.numbers, *seen.bindings)
    return frozenset(
        name
        for name in (root_of(one.name) for one in shown)
        if (name.partition(".")[0] in kept if "." in name else name not in own.bound)
        and name.partition(".")[0] in own.used
    )


def as_names(
    node: cst.FunctionDef, names: frozenset[str], span_of: SpanOf
) -> tuple[cst.FunctionDef, SpanOf]:
    """Return a function with attributes as names, and what tells where its nodes stand."""
    if not any("." in name for name in names):
        return node, span_of

    def named(one: cst.CSTNode) -> str | None:
        name = dotted(one) if isinstance(one, cst.Attribute) else None
        return name if name in names else None

    reader = Naming(named)
    made = node.visit(reader)
    assert isinstance(made, cst.FunctionDef)
    return made, lambda one: span_of(reader.originals.get(one, one))


def name_node(
    name: str, lpar: Sequence[cst.LeftParen] = (), rpar: Sequence[cst.RightParen] = ()
) -> cst.Name:
    """Return the name that an attribute or an item of a tuple is read as."""
    made = cst.Name("_", lpar, rpar)
    # LibCST's own checks let no dot into a name
    object.__setattr__(made, "value", name)
    return made


class Naming(cst.CSTTransformer):
    """Puts names in the places of expressions, and keeps where each node came from."""

    def __init__(self, named: Callable[[cst.CSTNode], str | None]) -> None:
        super().__init__()
        self.named = named
        self.originals: dict[cst.CSTNode, cst.CSTNode] = {}

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Return whether there may be something within: names stay what they are."""
        return not isinstance(node, cst.Name)

    def on_leave(
        self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT
    ) -> cst.CSTNodeT | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNodeT]:
        """Put a name in the place of an expression that has one."""
        made: cst.CSTNode = updated_node
        name = self.named(original_node)
        if name is not None and isinstance(original_node, cst.Name | cst.Attribute):
            made = name_node(name, original_node.lpar, original_node.rpar)
        match original_node, made:
            # what they hold is no name by itself
            case cst.Attribute(attr=attr), cst.Attribute():
                made = made.with_changes(attr=attr)
            case cst.Arg(keyword=keyword), cst.Arg():
                made = made.with_changes(keyword=keyword)
        self.originals[made] = original_node
        return made  # type: ignore[return-value]  # an expression takes the place of one


@dataclass(frozen=True, slots=True)
class SeenNames:
    """What a run showed of the names that a function binds.

    Attributes
    ----------
    bindings : tuple of SeenBinding
    lines : tuple of str
        Of the file.
    around : frozenset of str
        Attributes and names from around the function, which any function may change.
    arrays : mapping of str to DeclaredArray
        Of names that were seen to denote arrays of one type and shape, wherever they did.
    assumed : mapping of str to str
        Attributes that are numbers whatever is called, as far as their use in the text tells, and
        their types.
    fixed : frozenset of str
        Attributes that are numbers, and that only stand for others where an object is made.
    """

    bindings: tuple[SeenBinding, ...] = ()
    lines: tuple[str, ...] = ()
    around: frozenset[str] = frozenset()
    arrays: Mapping[str, DeclaredArray] = field(default_factory=dict)
    assumed: Mapping[str, str] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()

    def bound(self, name: str, span: Span) -> What | None:
        """Return what a name was seen to denote after statements of some lines bound it."""
        texts = {line.strip() for line in self.lines[span.start_line - 1 : span.end_line]}
        found = [one.what for one in self.bindings if one.name == name and one.text in texts]
        return reduce(either, found) if found else None

    @property
    def unsettled(self) -> frozenset[str]:
        """What came to denote something else than when a call began."""
        return frozenset(one.name for one in self.bindings if not one.text)


@lru_cache(maxsize=1)
def settled(source: str) -> frozenset[str]:
    """Return the attributes that a file binds where an object is made, and nowhere else.

    Also options of a command line. Empty where code of other files may bind them.
    """
    made, own, again = set[str](), set[ast.AST](), set[str]()
    tree = ast.parse(source)
    classes = {one.name for one in ast.walk(tree) if isinstance(one, ast.ClassDef)}
    for node in ast.walk(tree):
        match node:
            case ast.Name("setattr" | "vars") | ast.Attribute(_, "__dict__"):
                return frozenset()
            case ast.ClassDef(bases=bases, body=body):
                if not {ast.unparse(one) for one in bases} <= {*classes, "NamedTuple", "object"}:
                    return frozenset()
                fields = (one for one in body if isinstance(one, ast.AnnAssign | ast.Assign))
                made.update(name for one in fields for name in assigned_names(one))
            case ast.FunctionDef("__init__", ast.arguments(args=[first, *_])):
                kept = (one for one in ast.walk(node) if isinstance(one, ast.Attribute))
                own.update(one for one in kept if ast.unparse(one.value) == first.arg)
            case ast.Attribute(_, name, ast.Store() | ast.Del()):
                (made if node in own else again).add(name)
            case ast.Call(ast.Attribute(_, "add_argument"), [*_, ast.Constant(str(option))]):
                made.add(option.lstrip("-").replace("-", "_"))
    return frozenset(made - again)


def array_bindings(seen: Seen) -> dict[str, SeenArray]:
    """Return the names that denote arrays of one type and shape wherever they were bound to one.

    Sizes are positive: one that was seen without elements tells none.
    """
    found: dict[str, What] = {array.name: array for array in seen.arrays}
    given = frozenset(found)
    for one in seen.bindings:
        if isinstance(one.what, SeenArray):
            found[one.name] = either(found.get(one.name, one.what), one.what)
    return {
        name: what
        for name, what in found.items()
        if isinstance(what, SeenArray)
        and (what.shape is not None or seen.source in READ)
        and (0 not in (what.shape or ()) or name in given)
    }


def root_of(name: str) -> str:
    """Return what holds an item, ``a[0]`` or ``a[:]``, or has a length, ``len(a)``."""
    return name.removeprefix("len(").removesuffix(")").partition("[")[0]


def held_in(seen: Seen, names: Iterable[str]) -> dict[str, tuple[SeenNumber, ...]]:
    """Return which of some names denote tuples or lists, and what was seen of the numbers."""
    found: dict[str, tuple[SeenNumber, ...]] = {}
    for number in seen.numbers:
        name = root_of(number.name)
        if name != number.name and name in names:
            found[name] = (*found.get(name, ()), number)
    return found


def number_type(what: SeenNumber) -> str:
    """Return the element type of a number, Python's own as such."""
    return _PYTHONS.get(what.dtype, what.dtype)
