"""Programs in a partitioned global address space as documents: references to shared arrays.

Parameters, derived quantities, constraints and variants are those of application descriptions
(:mod:`costdb.phases.application`); in place of phases there is what one thread does between two
sequence points. Its groups are found by :mod:`costdb.pgas.partition`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from costdb.choosing import SubjectError
from costdb.expr import Expr, free_symbols, sym
from costdb.expr.nodes import Num
from costdb.expr.polynomials import affine_in
from costdb.pgas.partition import (
    Affine,
    Dependence,
    DependenceKind,
    Interval,
    Irregular,
    Loop,
    Reference,
    SharedArray,
    Spread,
    Subscript,
)
from costdb.phases.application import (
    HEAD_KEYS,
    OPTIONAL_HEAD_KEYS,
    Application,
    Used,
    When,
    Word,
    check_names,
    derived_quantities,
    listed,
    read_head,
    read_when,
    written_out,
)
from costdb.phases.document import Node, read
from costdb.records import dataclass, replace


def program_of(
    document: dict[str, object], origin: str
) -> tuple[Application, tuple[Used, ...], Callable[[Mapping[str, Word]], Interval]]:
    """Return what a parsed document describes: head, expressions, and the interval of words.

    Raises
    ------
    SubjectError
        With the place of what cannot be used.
    """
    top = Node(document, "", origin)
    keys = top.known(
        (*HEAD_KEYS, "kind", "threads", "arrays", "loops", "references"),
        (*OPTIONAL_HEAD_KEYS, "affinity", "irregular", "dependences", "neighbours"),
    )
    head = read_head(keys, origin)
    loops = tuple(_loop(node) for node in listed(keys, "loops"))
    indices = tuple(loop.index for loop in loops)
    if len(set(indices)) < len(indices):
        raise keys["loops"].refuse("two loops have the same index")
    arrays = tuple(_array(node, head) for node in listed(keys, "arrays"))
    names = tuple(dict.fromkeys(array.name for array, _ in arrays))
    irregular = frozenset(node.name() for node in listed(keys, "irregular"))
    if irregular & set(indices):
        raise keys["irregular"].refuse(f"{min(irregular & set(indices))} is a loop's index")
    reader = _Read(names, indices, irregular)
    references: list[Reference] = []
    numbered: dict[str, list[int]] = {}
    for node in listed(keys, "references"):
        found = reader.references(node)
        label = node.table()["name"].text() if "name" in node.table() else ""
        if label:
            positions = range(len(references), len(references) + len(found))
            numbered.setdefault(label, []).extend(positions)
        references += found
    if not references:
        raise keys["references"].refuse("there is no reference")
    own = {index: index for index in indices}
    sides = keys["neighbours"].known((), ("below", "above")) if "neighbours" in keys else {}
    interval = Interval(
        threads=keys["threads"].expression(),
        arrays=tuple(array for array, _ in arrays),
        loops=loops,
        references=tuple(references),
        dependences=tuple(
            dependence
            for node in listed(keys, "dependences")
            for dependence in _dependences(node, numbered)
        ),
        affinity=keys["affinity"].one_of(own) if "affinity" in keys else "",
        below=sides["below"].expression() if "below" in sides else None,
        above=sides["above"].expression() if "above" in sides else None,
    )
    used = tuple(_expressions(interval))
    check_names(head, used)

    def interval_for(words: Mapping[str, Word]) -> Interval:
        spread = tuple(array for array, when in arrays if when.holds(words))
        of_words = [array.name for array in spread]
        for name in of_words:
            if of_words.count(name) > 1:
                raise SubjectError(f"{origin}: /arrays: {name} is declared twice for this choice")
        derived = derived_quantities(head, words)
        whole = {one.place: written_out(head, one.expr, derived, one.place) for one in used}
        return replace(
            interval,
            threads=whole["/threads"],
            arrays=spread,
            loops=tuple(Loop(one, whole[f"/loops/{at}"]) for at, one in enumerate(indices)),
            below=whole.get("/neighbours/below"),
            above=whole.get("/neighbours/above"),
        )

    return head, used, interval_for


def _loop(node: Node) -> Loop:
    table = node.known(("index", "trips"), ())
    return Loop(table["index"].name(), table["trips"].expression())


def _array(node: Node, head: Application) -> tuple[SharedArray, When]:
    table = node.known(("name", "spread"), ("axis", "fastest", "when"))
    array = SharedArray(
        table["name"].name(),
        read(Spread, table["spread"]),
        _axis(table, "axis"),
        _axis(table, "fastest"),
    )
    return array, read_when(table, head.parameters)


def _axis(table: Mapping[str, Node], key: str) -> int:
    if key not in table:
        return 0
    axis = table[key].whole()
    if axis < 0:
        raise table[key].refuse(f"axes count from 0, got {axis}")
    return axis


def _dependences(node: Node, numbered: Mapping[str, list[int]]) -> Iterator[Dependence]:
    table = node.known(("from", "to", "kind"), ())
    kind = read(DependenceKind, table["kind"])
    sources, sinks = (table[end].one_of(numbered) for end in ("from", "to"))
    for source in sources:
        for sink in sinks:
            yield Dependence(source, sink, kind)


@dataclass(frozen=True, slots=True)
class _Read:
    """What references may mention."""

    arrays: tuple[str, ...]
    indices: tuple[str, ...]
    irregular: frozenset[str]

    def references(self, node: Node) -> list[Reference]:
        """Return the references of an entry: each of its elements, read, written or both."""
        table = node.known(("array", "elements", "access", "statement"), ("name", "depth"))
        array = table["array"].one_of({name: name for name in self.arrays})
        stores = table["access"].one_of({"read": False, "write": True})
        statement = table["statement"].text()
        depth = table["depth"].whole() if "depth" in table else None
        return [
            Reference(
                array,
                tuple(self.subscript(axis) for axis in element.items()),
                statement,
                store=stores,
                depth=depth,
            )
            for element in table["elements"].items()
        ]

    def subscript(self, node: Node) -> Subscript:
        """Return a subscript: affine in loop indices, or the name of an irregular one."""
        expr = node.expression()
        names = sorted(free_symbols(expr))
        for name in names:
            if name in self.irregular:
                if expr != sym(name):
                    raise node.refuse(f"{name} is irregular, so a subscript of its own")
                return Irregular(name)
            if name not in self.indices:
                raise node.refuse(f"{name} is neither a loop's index nor irregular")
        parts: list[Expr] = [expr]
        for name in names:
            parts[-1:] = affine_in(parts[-1], name) or (expr, expr)
        whole = [int(one.value) for one in parts if isinstance(one, Num) and one.is_whole()]
        if len(whole) < len(parts):
            raise node.refuse("a subscript is a sum of whole multiples of loop indices")
        return Affine(tuple(zip(names, whole, strict=False)), whole[-1])


def _expressions(interval: Interval) -> Iterator[Used]:
    yield Used("/threads", interval.threads)
    for number, loop in enumerate(interval.loops):
        yield Used(f"/loops/{number}", loop.trips)
    for side, expr in (("below", interval.below), ("above", interval.above)):
        if expr is not None:
            yield Used(f"/neighbours/{side}", expr)
