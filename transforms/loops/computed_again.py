"""# ADV506 computed-again

**What it does.** Finds values that are computed again from arrays that did not change. They stand
more than once in one block, in a loop that computes the same in every iteration, also for each of
what an inner loop goes through in turn, or in a function that a loop calls with the same. Lists
that stay the same and that a loop searches from their beginning each time, by `index` or `in`, are
found, too. What has no price is only shown.

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

**When it stays quiet.** Where the prediction gains nothing; without a price, less than 5 % of what
its function computes, one number by NumPy in a loop that does more, and where a range ends; lists
that nothing shows to be long; numbers of constants alone; where names that it is computed from are
bound again, or arrays stored to; where it may not be computed at all; where it is an array that
something else gets hold of, and might change. Of statements that are not understood it is asked
only what they could change.

**Fix safety.** Safe in one block: the value is the one that was computed there first. Unsafe where
a loop may not run, which would then compute it for nothing, or fail; where what is stored to may
share memory with what is read; and where statements are not understood.

**Models used.** Those of the two ways to write the kernel.

**References.** Aho, Lam, Sethi and Ullman, Compilers, on common subexpressions and on code motion.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from textwrap import dedent

from advisor.ir.functions import names_around
from advisor.ir.kernel import Kernel, Legality, Proposal, with_part
from advisor.ir.shapes import ShapeConflict, kind_of_or_none, whole
from advisor.ir.statements import (
    Bind,
    Loop,
    ScalarBind,
    Statement,
    Unknown,
    values_of,
    walk,
    within,
)
from advisor.ir.unchanging import Same, called_in, computed_again, is_made, is_work
from advisor.ir.values import Expand, Fill, Read, Scalar, Value, parts_of, reads
from advisor.numpy_table import ELEMENTWISE, Kind
from advisor.source import Edit, Span, every, names_in, walked
from costdb.expr.nodes import Num
from transforms.kit import kernels
from transforms.kit.rewrite import (
    before,
    first_line,
    fresh_name,
    indent_at,
    line_of,
    parenthesised,
    span_of,
    stands_alone,
    statement_at,
)

_SHOWN = 40
_LONG = 72
"""Characters from which on an expression keeps its lines."""
_OF_NUMBERS = ELEMENTWISE.keys() | {"astype"}
_MANY = 4
"""Names that make another one too long."""
_OPERATORS = {
    ast.Add: "total",
    ast.Sub: "difference",
    ast.Mult: "product",
    ast.MatMult: "product",
    ast.Div: "quotient",
    ast.Pow: "power",
}


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield for loops and blocks what they compute again, with names."""
    if kernels.is_compiled_alone(kernel):
        return
    found, seen = computed_again(kernel.context.source), list(walk(kernel.body))
    for one in walk(kernel.body, rewritable=True):
        node = statement_at(one.span, kernel.context)
        looped = isinstance(node, ast.For | ast.While)
        alike = [p for p in seen if p.span == one.span and isinstance(p, Loop) >= looped]
        if node is None or alike[:1] != [one] or (looped and len(alike) > 1):
            continue
        for same in found.get((node.lineno, node.col_offset), ()):
            made = _Again(one, same, kernel).proposal()
            if made is not None:
                yield made


@dataclass(slots=True)
class _Again:
    """A loop that computes something again, or the first statement of a block that does.

    Attributes
    ----------
    start : Statement
    same : Same
    kernel : Kernel
        With arrays for what gets a name.
    before : list of Statement
        What is computed before it.
    others : dict of int to tuple of Statement
        What stands for statements, by their identities.
    lines : list of (Span, str)
        What is written before it, and where it stood.
    edits : list of Edit
    texts : list of str
        What is computed.
    unread : bool
        Whether statements that compute it are not understood.
    """

    start: Statement
    same: Same
    kernel: Kernel
    before: list[Statement] = field(default_factory=list)
    others: dict[int, tuple[Statement, ...]] = field(default_factory=dict)
    lines: list[tuple[Span, str]] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    unread: bool = False

    def _span(self, node: ast.expr | ast.stmt) -> Span:
        return span_of(node, self.kernel.context.lines)

    def proposal(self) -> Proposal | None:
        """Return what computes it once; None where nothing is worth that."""
        context, repeats = self.kernel.context, self.same.repeats
        values = [uses for uses in self.same.values if self._is_work(uses[0])]
        read = {name for uses in values for name in names_in(uses[0])}
        moved: list[ast.stmt] = []
        for one in reversed(self.same.moved):
            # what changes an array goes where that is made
            if not (binds := {*names_in(one, ast.Store)}) or binds & read or self._is_work(one):
                moved.insert(0, one)
                read |= {*names_in(one)}
        if not all(map(self._move, moved)):
            return None
        for uses in values:
            self._name(uses)
        if not self.texts:
            return None
        start, shown = self.start.span, " and ".join(f"`{text}`" for text in self.texts)
        shown = shown if len(shown) < 2 * _SHOWN else "what stays the same"
        body = kernels.replaced(self.kernel.body, self.others)
        if self.before:
            loop = isinstance(self.start, Loop)
            found = (one for one in walk(body) if isinstance(one, Loop) >= loop)
            first = next(one for one in found if one.span == start)
            body = kernels.replaced(body, {id(first): (*self.before, first)})
        place = min(span for span, _ in self.lines) if repeats else start
        times = "in every iteration" if repeats else "more than once"
        return kernels.offered(
            self.kernel,
            first_line(place, context),
            f"compute {shown} once" + f", before the loop of line {start.start_line}" * repeats,
            f"it is computed {times} from the same operands",
            self.kernel.with_body(body),
            self._argued(sorted(self.same.read & read)),
            self._written,
        )

    def _is_work(self, node: ast.expr | ast.stmt) -> bool:
        """Return whether something takes a pass over an array, or calls of functions."""
        if isinstance(node, ast.Assign):
            return self._is_work(node.value)
        value = self._value(self._span(node))
        if isinstance(node, ast.UnaryOp) or isinstance(value, Fill | Expand) or is_made(node):
            # one more axis is a view
            return False
        if value is None or isinstance(value, Read | Scalar):
            # a number of constants alone is of the size of a step
            read = names_around(self.kernel.context.source, node.lineno).reads(node)
            listed = (one for one in ast.walk(node) if isinstance(one, ast.List | ast.Tuple))
            works = is_work(node) and not (called_in(node) <= _OF_NUMBERS and self._is_end(node))
            return works and (any(True for _ in read) or any(listed))
        known = self.kernel.arrays.keys() | self.kernel.locals.keys()
        if any(one.array not in known for one in reads(value)):
            # another step has done without it
            return False
        parts = (value,) if isinstance(node, ast.Subscript) else parts_of(value)
        try:
            return any(kernels.type_of(part, self.kernel).extents for part in parts)
        except ShapeConflict:
            return False

    def _is_end(self, node: ast.AST) -> bool:
        """Return whether a range of an inner loop ends so: that loop takes longer."""
        start = statement_at(self.start.span, self.kernel.context)
        inner = [one for one in every(ast.For, start) if one is not start] if start else []
        return any(node in walked(one.iter) for one in inner if isinstance(one.iter, ast.Call))

    def _value(self, span: Span) -> Value | None:
        return next((v for place, v in self.kernel.context.written if place == span), None)

    def _owners(self, span: Span, value: Value | None) -> list[Statement]:
        """Return the statements that compute what stands in a place; none where it is not sure."""
        leaves = [one for one in walk(self.kernel.body) if not within(one)]
        found = [one for one in leaves if one.span.contains(span)]
        if "#" in self.kernel.context.text(span):
            return []
        if any(isinstance(one, Unknown) for one in found):
            found = [one for one in found if isinstance(one, Unknown)]
            return found if len(found) == 1 else []
        return [one for one in found if any(value in [*parts_of(v)] for v in values_of(one))]

    def _move(self, node: ast.stmt) -> bool:
        """Let a statement stand before the loop; return whether it may."""
        context, span = self.kernel.context, self._span(node)
        loop = self.start
        inner = [one for one in walk(within(loop)) if span.contains(one.span)]
        own = [one for one in within(loop) if one.span == span]
        if not stands_alone(context, span) or span.start_line != span.end_line:
            return False
        if any(one.span != span for one in inner):
            return False
        self.before += own
        self.others |= {id(one): () for one in own}
        self.lines.append((span, context.lines[span.start_line - 1].strip()))
        self.edits.append(Edit(line_of(span.start_line), ""))
        if isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Subscript):
            self.texts.append(ast.unparse(node.value))
        return True

    def _name(self, uses: Sequence[ast.expr]) -> None:
        """Give what stands in one or several places a name, before the first."""
        kernel, context = self.kernel, self.kernel.context
        spans = [self._span(one) for one in uses]
        text, value, name = context.text(spans[0]), self._value(spans[0]), self.same.name
        if "\n" in text:
            text = ast.unparse(uses[0])
        if not name:
            written = {line.partition(" = ")[0] for _, line in self.lines}
            taken = {*kernel.arrays, *kernel.locals, *context.identifiers, *written}
            name = fresh_name(_wanted(uses[0]), taken)
        place: Value | None = None
        if value is not None:
            found = kernels.type_of(value, kernel)
            place = Read(name, whole(found.extents)) if found.extents else Scalar(name, found.dtype)
        computed: Statement | None = None
        changed = dict(self.others)
        for span in spans[bool(self.same.name) :]:
            owners = self._owners(span, value)
            if not owners:
                return
            for owner in owners:
                now = changed.get(id(owner), (owner,))
                if isinstance(owner, Unknown):
                    self.unread = True
                    steps = names_around(context.source, uses[0].lineno).steps(uses[0])
                    changed[id(owner)] = tuple(_without(one, steps) for one in now)
                    computed = computed or replace(owner, steps=steps)
                else:
                    assert value is not None
                    changed[id(owner)] = tuple(with_part(one, value, place) for one in now)
                    bind = Bind if isinstance(place, Read) else ScalarBind
                    computed = bind(name, value, self.start.span)
        self.others = changed
        if isinstance(computed, Bind) and not self.same.name:
            self.kernel = kernel.with_locals({name: kernels.type_of(computed.value, kernel)})
        if computed is not None and not self.same.name:
            self.before.append(computed)
            self.lines.append((spans[0], f"{name} = {self._laid_out(spans[0], text)}"))
        places = [parenthesised(span, context) for span in spans[bool(self.same.name) :]]
        self.edits += [Edit(place, name) for place in places]
        self.texts.append(text)

    def _laid_out(self, span: Span, text: str) -> str:
        """Return the text of an expression, on the lines that it has where it is long."""
        context, indent = self.kernel.context, indent_at(self.start.span, self.kernel.context)
        first, *rest = context.text(span).split("\n")
        if not rest or len(text) < _LONG:
            return text
        inner = f"\n{indent}{context.indent}"
        lines = (first, *dedent("\n".join(rest)).splitlines())
        found = f"({inner}{inner.join(lines)}\n{indent})"
        # within texts of several lines blanks count
        return found if ast.unparse(ast.parse(found, mode="eval")) == text else text

    def _argued(self, read: Sequence[str]) -> Legality:
        """Return why results stay, given the names that are read."""
        inner = list(walk((self.start,))) if self.same.repeats else []
        places = [span for span, _ in self.lines]
        loops = [one for one in inner if isinstance(one, Loop)]
        around = [one for one in loops if any(one.span.contains(span) for span in places)]
        conditions = [] if all(map(_runs, around)) else ["where the loop runs at least once"]
        if self.same.stored and {*read} - self.same.stored:
            shared = kernels.apart(sorted({*self.same.stored, *read}))
            conditions.append(f"if {shared}, which is up to the caller")
        if self.same.runs_unknown and read:
            named = " and ".join(f"`{one}`" for one in read)
            conditions.append(f"if what is called leaves {named} as it is")
        elif self.unread or any(isinstance(one, Unknown) for one in inner):
            conditions.append("as far as names show what changes")
        kept = [
            kernels.type_of(one.value, self.kernel) for one in self.before if isinstance(one, Bind)
        ]
        if any(kind_of_or_none(one.dtype) is Kind.COMPLEX for one in kept):
            # NumPy computes in the memory of a large temporary, by code that rounds otherwise
            conditions.append("but for products of complex numbers, which agree to rounding")
        if conditions:
            return kernels.unsafe(f"results are equal bit for bit {', '.join(conditions)}")
        return kernels.safe(
            "nothing between changes what it is computed from, so it is the same value"
        )

    def _written(self) -> tuple[Edit, ...]:
        start, context = self.start.span, self.kernel.context
        ahead = "".join(f"{line}\n{indent_at(start, context)}" for _, line in self.lines)
        return (*([Edit(before(start), ahead)] if ahead else []), *self.edits)


def _without(one: Statement, steps: tuple[int, int, int]) -> Statement:
    if not isinstance(one, Unknown):
        return one
    loads, operations, calls = (max(0, a - b) for a, b in zip(one.steps, steps, strict=True))
    return replace(one, steps=(loads, operations, calls))


def _runs(loop: Loop) -> bool:
    trips = loop.high - loop.low
    return not loop.stated and isinstance(trips, Num) and trips.value > 0


def _wanted(node: ast.expr) -> str:
    """Return what a person might call an expression."""
    match node:
        case ast.Compare():
            return "mask"
        case ast.BinOp(op=op):
            return _OPERATORS.get(type(op), "shared")
        case ast.Call(func=ast.Attribute(value, name), args=args):
            of = dict.fromkeys(_held_in(args[0] if args else value))
            return "_".join([name, *(of if 0 < len(of) < _MANY else ["value"])])
        case ast.Call(func=ast.Name(name)):
            return f"{name}_value"
        case ast.Subscript() if 1 < len(of := dict.fromkeys(_held_in(node))) < _MANY:
            return "_".join(of)
    return "shared"


def _held_in(node: ast.AST) -> Iterator[str]:
    """Yield what things in an expression are called, without what they are attributes of."""
    match node:
        case ast.Attribute(ast.Name("self"), name) | ast.Name(name):
            short = name.strip("_")
            yield from [short] if short not in ("", "np", "numpy", "self") else []
        case _:
            for one in ast.iter_child_nodes(node):
                yield from _held_in(one)


TRANSFORM = kernels.KernelRule("ADV506", "computed-again", __doc__ or "", propose, moves=True)
