"""# ADV505 scaled-matrix

**What it does.** Finds products of a matrix and a vector whose matrix is multiplied or divided by a
number first, and proposes to scale the result, which is a vector.

**Why it costs.** Python multiplies from left to right: `alpha * A @ x` makes a matrix of its own
before the product reads it, three passes over memory in the place of one.

**Example**

```python
y = alpha * A @ x
```

**Use instead**

```python
y = alpha * (A @ x)
```

**When it stays quiet.** Numbers that widen the matrix; whole numbers; products of two
matrices, which cost more than any pass; what a compiler takes; statements over several lines.

**Fix safety.** Unsafe: each term is rounded in another place, and what overflows is another number.

**Models used.** Arrays (calls, elements, cache lines), where the profile has their rates.

**References.** Golub and Van Loan, Matrix Computations, on the order of products.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from advisor.dtypes import Kind
from advisor.finding import Applicability
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.shapes import kind_of_or_none
from advisor.ir.statements import Bind, Statement, Store, walk
from advisor.ir.values import Copy, Elementwise, Expand, Reduction, Transpose, Value
from advisor.source import Edit
from transforms.kit.kernels import compiled, is_compiled_alone, type_of, with_statement
from transforms.kit.rewrite import first_line, replace_statement, stands_alone, statement_at
from transforms.kit.rule import KernelRule
from transforms.loops.array_text import lines


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield each statement with the factors of its matrices outside of their products."""
    if is_compiled_alone(kernel):
        return
    for statement in walk(kernel.body, rewritable=True):
        if not isinstance(statement, Bind | Store):
            continue
        other = replace(statement, value=_scaled_after(statement.value, kernel))
        if other == statement:
            continue
        yield Proposal(
            "multiply the product by the number, not the matrix",
            "a scaled matrix is an array of its own, made and read again for one product",
            first_line(statement.span, kernel.context),
            kernel.with_body(with_statement(kernel.body, statement, (other,))),
            compiled(kernel)
            or Legality(
                Applicability.UNSAFE,
                "each term is rounded in another place, so results agree to rounding where nothing"
                " overflows",
            ),
            partial(_edits, statement, other, kernel),
        )


def _scaled_after(value: Value, kernel: Kernel) -> Value:
    """Return a value in which products are scaled in the place of their matrices."""
    match value:
        case Reduction(Elementwise("multiply", (one, other)), _, "add", fused=True):
            for number, side in enumerate((one, other)):
                found = _factor(side, kernel)
                if found is None:
                    continue
                scale, matrix = found
                sides = (matrix, other) if number == 0 else (one, matrix)
                inner = replace(value, operand=Elementwise("multiply", sides))
                parts = (
                    (scale.operands[0], inner)
                    if scale.operands[1] == matrix
                    else (
                        inner,
                        scale.operands[1],
                    )
                )
                return replace(scale, operands=parts)
            return value
        case Elementwise(_, parts):
            return replace(value, operands=tuple(_scaled_after(one, kernel) for one in parts))
        case Copy(operand) | Expand(operand) | Transpose(operand):
            return replace(value, operand=_scaled_after(operand, kernel))
    return value


def _factor(side: Value, kernel: Kernel) -> tuple[Elementwise, Value] | None:
    """Return how a matrix is scaled by a number of no other type, and the matrix."""
    match side:
        case Elementwise("multiply" | "divide", (one, other)):
            matrix = one if len(type_of(one, kernel).extents) == 2 else other
            number = other if matrix is one else one
            found = type_of(matrix, kernel)
            if len(found.extents) != 2 or type_of(number, kernel).extents:
                return None
            if side.operation == "divide" and matrix is not one:
                return None
            kinds = kind_of_or_none(found.dtype) in (Kind.FLOATING, Kind.COMPLEX)
            if kinds and type_of(side, kernel).dtype == found.dtype:
                return side, matrix
    return None


def _edits(before: Statement, after: Statement, kernel: Kernel) -> tuple[Edit, ...]:
    """Return the edit; none where the statement as it is has no words, or the source has others."""
    context = kernel.context
    node = statement_at(before.span, context)
    texts = [_line(one, node, kernel) for one in (before, after)]
    if node is None or None in texts or not stands_alone(context, before.span):
        return ()
    known, made = (text for text in texts if text is not None)
    if ast.dump(ast.parse(known).body[0]) != ast.dump(node):
        return ()
    return (replace_statement(before.span, [made], context),)


def _line(one: Statement, node: ast.stmt | None, kernel: Kernel) -> str | None:
    found = lines([one], kernel)
    if found is None or len(found) != 1:
        return None
    if isinstance(node, ast.Return) and isinstance(one, Bind):
        return f"return {found[0].removeprefix(f'{one.name} = ')}"
    return found[0]


TRANSFORM = KernelRule("ADV505", "scaled-matrix", __doc__ or "", propose)
