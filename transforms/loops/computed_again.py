"""# ADV506 computed-again

**What it does.** Finds values that are computed again from arrays that did not change. They stand
more than once in one block, or in a loop that computes the same in every iteration.

**Why it costs.** Each time costs the whole pass over the arrays, and an array of its own.

**Example**

```python
p = np.exp(x) / np.exp(x).sum()
```

**Use instead**

```python
exp_x = np.exp(x)
p = exp_x / exp_x.sum()
```

**When it stays quiet.** Where the prediction gains nothing; where names that it is computed from
are bound again, or arrays stored to; where it may not be computed at all; where it is an array that
something else gets a name for, and might change.

**Fix safety.** Safe in one block: the value is the one that was computed there first. Unsafe where
a loop may not run, which would then compute it for nothing, or fail; and where what is stored to
may share memory with what is read.

**Models used.** Those of the two ways to write the kernel.

**References.** Aho, Lam, Sethi and Ullman, Compilers, on common subexpressions and on code motion.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from advisor.ir.concrete import with_part
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.shapes import whole
from advisor.ir.statements import (
    Bind,
    Choice,
    Loop,
    ScalarBind,
    Statement,
    Store,
    Unknown,
    Unrolled,
    mentioned,
    walk,
    within,
    written,
)
from advisor.ir.values import (
    Along,
    Called,
    Chosen,
    Copy,
    Elementwise,
    Fourier,
    Gather,
    MatMul,
    Read,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Sort,
    Tally,
    Value,
    operands,
    parts_of,
    reads,
)
from advisor.source import Edit, Span
from costdb.expr.nodes import Num
from transforms.kit.kernels import (
    apart,
    blocks,
    is_compiled_alone,
    named,
    offered,
    overlapping,
    replaced,
    safe,
    type_of,
    unsafe,
)
from transforms.kit.rewrite import (
    before,
    first_line,
    fresh_name,
    indent_at,
    nodes_of,
    span_of,
    stands_alone,
    statement_at,
    suite_at,
)
from transforms.kit.rule import KernelRule

_MAKING = Elementwise | Reduction | MatMul | Gather | Chosen | Scan | Fourier | Sort | Along | Tally
"""Values in memory of their own: what they are computed from is in nobody's hands."""
_COMPUTED = _MAKING | Called | Copy | Roll
_SHOWN = 40
_PERHAPS = (
    *(ast.IfExp, ast.BoolOp, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
"""Expressions whose parts may not be computed, or more than once."""
_OPERATORS = {
    ast.Add: "total",
    ast.Sub: "difference",
    ast.Mult: "product",
    ast.MatMult: "product",
    ast.Div: "quotient",
    ast.Pow: "power",
}


@dataclass(slots=True)
class _Uses:
    """Where a value is computed, while it stays the same.

    Attributes
    ----------
    first, last : int
        Of the statements of the block.
    name : str
        What the first one calls it, if that is all that it does.
    spans : list of Span
    repeated : bool
        Whether a loop repeats it.
    loop : Loop or None
        The loop that it is taken out of.
    stores : list of Store
        After the first and before the last.
    pending : list of Store
        Those behind the last.
    """

    first: int
    name: str = ""
    last: int = 0
    spans: list[Span] = field(default_factory=list)
    repeated: bool = False
    loop: Loop | None = None
    stores: list[Store] = field(default_factory=list)
    pending: list[Store] = field(default_factory=list)


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield each value that is computed again, with a name."""
    if is_compiled_alone(kernel):
        return
    reader, told = _Reader(kernel), set[tuple[Span, ...]]()
    for block in blocks(kernel.body):
        found = [
            (value, uses)
            for value, uses in reader.read(block)
            if (len(uses.spans) > 1 or uses.repeated) and tuple(uses.spans) not in told
        ]
        for value, uses in found:
            larger = (o.spans for _, o in found if o is not uses)
            if any(all(any(o.contains(s) for o in other) for s in uses.spans) for other in larger):
                continue
            told.add(tuple(uses.spans))
            made = _proposal(value, uses, block, kernel)
            if made is not None:
                yield made


class _Reader:
    """Finds values in blocks.

    Parameters
    ----------
    kernel : Kernel
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.written = kernel.context.written
        # what is stored to, or may be, and what is kept: each iteration has one of its own
        leaves = [one for one in walk(kernel.body) if not within(one)]
        unseen = [
            one
            for one in leaves
            if isinstance(one, Unknown) or (isinstance(one, Store) and one.array in kernel.lists)
        ]
        stored = [one for one in leaves if not isinstance(one, Bind | ScalarBind)]
        self.changing = kernel.aliases.union(*map(mentioned, unseen), *map(written, stored))
        first, last = kernel.context.whole
        lines = kernel.context.lines
        self.perhaps = [
            span_of(node, lines)
            for node in nodes_of(kernel.context.source)
            if isinstance(node, _PERHAPS) and (last < first or first <= node.lineno <= last)
        ]

    def read(self, block: Sequence[Statement]) -> Iterator[tuple[Value, _Uses]]:
        """Yield values and where they are computed, each as long as it is the same one."""
        known: dict[Value, _Uses] = {}
        for number, one in enumerate(block):
            bound = _between(block[number - 1], one, self.kernel) if number else frozenset()
            for value, uses in list(known.items()):
                if uses.name in bound or self._is_lost(value, uses.spans[0], bound):
                    yield value, known.pop(value)
            inside, changed = list(_inside(one)), written(one) | _bound(one, self.kernel)
            unknown = any(type(part) is Unknown for part, _ in inside)
            for part, perhaps in inside:
                for value, span in self._computed(part):
                    renamed = value in known and known[value].name in changed
                    lost = unknown or renamed or self._is_lost(value, span, changed)
                    lost = lost and part is not one
                    if not lost and (value in known or not perhaps):
                        self._note(value, span, part, one, number, known)
            stores = [part for part, _ in inside if isinstance(part, Store)]
            for value, uses in list(known.items()):
                renamed = uses.first != number and uses.name in changed
                if unknown or renamed or self._is_lost(value, uses.spans[0], changed):
                    yield value, known.pop(value)
                elif uses.last == number and within(one):
                    uses.stores += stores
                else:
                    uses.pending += stores
        yield from known.items()

    def _note(
        self,
        value: Value,
        span: Span,
        part: Statement,
        one: Statement,
        number: int,
        known: dict[Value, _Uses],
    ) -> None:
        """Note that a part of a statement of a block computes a value."""
        name = ""
        if isinstance(part, Bind | ScalarBind) and part.value == value:
            first = part is one and value not in known and part.name.isidentifier()
            if first and part.name not in self.kernel.aliases:
                name = part.name
            elif isinstance(part, Bind) and (
                part is one or value in known or part.name in self.changing
            ):
                return  # what is called so may be stored to
        uses = known.setdefault(value, _Uses(number, name))
        uses.last = number
        uses.loop = one if uses.first == number and isinstance(one, Loop) else uses.loop
        uses.repeated |= isinstance(one, Loop)
        uses.spans.append(span)
        uses.stores += uses.pending
        uses.pending = []

    def _is_lost(self, value: Value, span: Span, changed: frozenset[str]) -> bool:
        """Return whether what a value is computed from is another thing after a statement."""
        return bool(changed & (_names(value) | _words(span, self.kernel)))

    def _computed(self, one: Statement) -> Iterator[tuple[Value, Span]]:
        """Yield what a statement computes for something else that it makes, and where."""
        if not isinstance(one, Bind | ScalarBind | Store):
            return
        parts = list(parts_of(one.value))
        held = {p for made in parts if isinstance(made, _MAKING) for o in operands(made)
                for p in parts_of(o)} | {one.value}  # fmt: skip
        inside = [(span, value) for span, value in self.written if one.span.contains(span)]
        # of what is assigned to several names at once each has its own place
        own = [span for span, value in inside if value == one.value] or [one.span]
        places: dict[Value, list[Span]] = {}
        for span, value in inside:
            stands = value in held and any(place.contains(span) for place in own)
            if stands and _is_work(value, self.kernel):
                places.setdefault(value, []).append(span)
        for value, spans in places.items():
            plain = not any(p.contains(span) for span in spans for p in self.perhaps)
            if plain and len(spans) == parts.count(value):
                yield from ((value, span) for span in spans)


def _inside(one: Statement, perhaps: bool = False) -> Iterator[tuple[Statement, bool]]:
    """Yield a statement and those in it, and whether one may not run where what is around does."""
    yield one, perhaps
    if not isinstance(one, Unrolled):
        for part in within(one):
            yield from _inside(part, perhaps or isinstance(one, Choice))


def _bound(one: Statement, kernel: Kernel) -> frozenset[str]:
    """Return the names that a statement binds, or deletes; any where the source has it not."""
    node = statement_at(one.span, kernel.context)
    return kernel.context.identifiers if node is None else _stored([node])


def _between(first: Statement, then: Statement, kernel: Kernel) -> frozenset[str]:
    """Return what statements on numbers bind that stand between two of a block."""
    one, other = (suite_at(part.span, kernel.context) for part in (first, then))
    if one is None or other is None or one[0] is not other[0]:
        return kernel.context.identifiers
    return _stored(one[0][one[1] + 1 : other[1]])


def _stored(nodes: Sequence[ast.stmt]) -> frozenset[str]:
    names = (one for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name))
    return frozenset(one.id for one in names if not isinstance(one.ctx, ast.Load))


def _words(span: Span, kernel: Kernel) -> frozenset[str]:
    """Return the names that an expression is written with."""
    tree = ast.parse(f"({kernel.context.text(span)}\n)", mode="eval")
    return frozenset(part.id for part in ast.walk(tree) if isinstance(part, ast.Name))


def _names(value: Value) -> frozenset[str]:
    return frozenset(read.array for read in reads(value))


def _is_work(value: Value, kernel: Kernel) -> bool:
    """Return whether a value takes a pass over an array, and is the same each time."""
    parts = list(parts_of(value))
    drawn = any(isinstance(one, Called) and one.function.startswith("random.") for one in parts)
    works = any(type_of(part, kernel).extents for part in parts)
    return isinstance(value, _COMPUTED) and works and not drawn


def _proposal(
    value: Value, uses: _Uses, block: Sequence[Statement], kernel: Kernel
) -> Proposal | None:
    context, start, known = kernel.context, block[uses.first], kernel
    text = context.text(uses.spans[0])
    argued = _argued(value, uses, kernel)
    if argued is None or "\n" in text or not stands_alone(context, start.span):
        return None
    name, found = uses.name, type_of(value, kernel)
    bound: tuple[Statement, ...] = ()
    place: Value
    if name or not found.extents:
        taken = {*kernel.arrays, *kernel.locals, *context.identifiers}
        name = name or fresh_name(_wanted(text), taken)
        bound = () if uses.name else (ScalarBind(name, value, start.span),)
        place = Read(name, whole(found.extents)) if found.extents else Scalar(name, found.dtype)
    else:
        bind, place, known = named(_wanted(text), value, start.span, kernel)
        name, bound = bind.name, (bind,)
    first = uses.first + bool(uses.name)
    others: dict[int, tuple[Statement, ...]]
    others = {id(one): (with_part(one, value, place),) for one in block[first : uses.last + 1]}
    if bound:
        others[id(start)] = (*bound, *others[id(start)])
    times = "in every iteration" if uses.repeated and len(uses.spans) == 1 else "more than once"
    return offered(
        kernel,
        first_line(start.span, context),
        f"compute `{text if len(text) < _SHOWN else name}` once",
        f"it is computed {times} from the same operands",
        known.with_body(replaced(kernel.body, others)),
        argued,
        partial(_edits, name, uses, start.span, kernel),
    )


def _wanted(text: str) -> str:
    """Return what a person might call an expression."""
    match ast.parse(text, mode="eval").body:
        case ast.Compare():
            return "mask"
        case ast.BinOp(op=op):
            return _OPERATORS.get(type(op), "shared")
        case ast.Call(func=ast.Attribute(value, name), args=args):
            of = (
                one.id for one in ast.walk(args[0] if args else value) if isinstance(one, ast.Name)
            )
            return f"{name}_{next(of, 'value')}"
    return "shared"


def _argued(value: Value, uses: _Uses, kernel: Kernel) -> Legality | None:
    """Return why results stay; None where they surely need not."""
    names = [(store.array, name) for store in uses.stores for name in _names(value)]
    if any(not kernel.aliases.isdisjoint(pair) for pair in names):
        return None
    shared = [pair for pair in names if kernel.arrays.keys() >= {*pair}]
    if shared:
        return overlapping(apart(list(dict.fromkeys(name for pair in shared for name in pair))))
    if uses.loop is not None and not _runs(uses.loop):
        return unsafe("results are equal bit for bit where the loop runs at least once")
    return safe("nothing between changes what it is computed from, so it is the same value")


def _runs(loop: Loop) -> bool:
    trips = loop.high - loop.low
    return not loop.stated and isinstance(trips, Num) and trips.value > 0


def _edits(name: str, uses: _Uses, start: Span, kernel: Kernel) -> tuple[Edit, ...]:
    context, first = kernel.context, uses.spans[0]
    if uses.name:
        return tuple(Edit(place, name) for place in uses.spans[1:])
    line = f"{name} = {context.text(first)}\n{indent_at(start, context)}"
    return (Edit(before(start), line), *(Edit(place, name) for place in uses.spans))


TRANSFORM = KernelRule("ADV506", "computed-again", __doc__ or "", propose)
