"""Values in other words: what the source has for their parts stays as it is written."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from advisor.ir.kernel import Kernel
from advisor.ir.values import (
    Called,
    Elementwise,
    Expand,
    Flip,
    MatMul,
    Part,
    Reduction,
    Scalar,
    Sort,
    Transpose,
    Value,
)
from advisor.source import Edit, Span
from transforms.kit.kernels import type_of

Factors = tuple[Value, ...]


def factors(value: Value) -> Factors:
    """Return what a product multiplies; nothing for any other value."""
    match value:
        case MatMul(left, right):
            return (left, right)
        case Reduction(Elementwise("multiply", (left, right)), axis, "add", fused=True):
            return (left, right) if axis is None else (_without(left), _without(right))
    return ()


def _without(side: Value) -> Value:
    return side.operand if isinstance(side, Expand) else side


def edits_of(
    span: Span,
    changes: Mapping[Value, Value],
    kernel: Kernel,
    elsewhere: Span | None = None,
) -> tuple[Edit, ...]:
    """Return the edit that writes values of a statement otherwise; none where one has no words.

    What stands in the statement keeps its own words; so does what stands `elsewhere`.
    """
    context = kernel.context
    places = [one for one in (elsewhere, span) if one is not None]
    stated = [one for place in places for one in context.written if place.contains(one[0])]
    known = {value: context.text(at) for at, value in stated}
    made: list[Edit] = []
    for at, value in stated:
        if value in changes and span.contains(at) and not any(o.span.contains(at) for o in made):
            text = _Words(known, kernel, _subscript(context.text(at))).text(changes[value])
            if text is None or "\n" in text + context.text(at):
                return ()
            made.append(Edit(at, text if _is_free(at, kernel) else _tight(text)))
    return tuple(made) if len(made) >= len(changes) else ()


def _subscript(text: str) -> str:
    """Return what stands between the brackets at the end of an expression, without a colon."""
    node = ast.parse(text, mode="eval").body
    return ast.unparse(node.slice).strip(":") if isinstance(node, ast.Subscript) else ""


def _filled(form: str, index: str) -> str:
    return form.format(index if "{}" not in form or form.strip(":") == "{}" else _tight(index))


def _is_free(at: Span, kernel: Kernel) -> bool:
    """Return whether nothing beside an expression binds what stands there."""
    lines = kernel.context.lines
    before = lines[at.start_line - 1][: at.start_column].rstrip()
    after = lines[at.end_line - 1][at.end_column :].lstrip()
    opens = before.endswith(("(", ",", "[", "=", "return")) and not before.endswith("==")
    return opens and (not after or after[0] in "),]#;")


def _tight(text: str) -> str:
    """Return an expression that no operator beside it takes apart."""
    node = ast.parse(text, mode="eval").body
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Name | ast.Constant)
    return text if negative or isinstance(node, _ATOMS) else f"({text})"


_ATOMS = (ast.Name, ast.Call, ast.Subscript, ast.Attribute, ast.Constant)


@dataclass(frozen=True, slots=True)
class _Words:
    """Writes values, by what the source has for their parts.

    `index` is the subscript that the value in the source ends in.
    """

    known: Mapping[Value, str]
    kernel: Kernel
    index: str

    def text(self, value: Value) -> str | None:
        """Return a value as source."""
        if value in self.known:
            return self.known[value]
        numpy = self.kernel.context.array_module
        if numpy is None:
            return None
        match value:
            case Scalar(text, _, span):
                return self.kernel.context.text(span) if span is not None else text
            case Called("partition", (vector,), stated=((_, kth), _)):
                return self._call(f"{numpy}.partition({{}}, {_filled(kth, self.index)})", vector)
            case Called(name, operands) if name.startswith("linalg."):
                return self._call(f"{numpy}.{name}({', '.join(['{}'] * len(operands))})", *operands)
            case Part(Called("partition", stated=(_, (_, part))) as inner):
                return self._call(f"{{}}[{_filled(part, self.index)}]", inner)
            case Sort(operand):
                return self._call(f"{numpy}.sort({{}})", operand)
            case Flip(operand):
                return self._call("{}[::-1]", operand)
            case Transpose(operand):
                turned = self.text(operand)
                return None if turned is None else f"{_tight(turned)}.T"
            case Expand(operand, axis) if len(type_of(operand, self.kernel).extents) == 1:
                shown = self.text(operand)
                new = ":, None" if axis else "None, :"
                return None if shown is None else f"{_tight(shown)}[{new}]"
            case MatMul(left, right):
                return self._between("@", left, right)
            case Reduction(Elementwise("multiply"), axis, "add", fused=True):
                left, right = factors(value)
                if axis is None and left in self.known and right in self.known:
                    name = "dot" if len(type_of(left, self.kernel).extents) == 1 else "vdot"
                    return self._call(f"{numpy}.{name}({{}}, {{}})", left, right)
                return self._between("@", left, right)
            case Reduction(operand, axis, operation):
                along = "()" if axis is None else f"(axis={axis})"
                form = _REDUCED[operation].replace("np", numpy).replace("()", along)
                if form.startswith("{}"):
                    summed = self.text(operand)
                    return None if summed is None else form.format(_tight(summed))
                return self._call(form, operand)
            case Elementwise("multiply", (Elementwise("multiply", (one, _)), last)) if one == last:
                return self._between("*", one, one, one)
            case Elementwise("multiply", (left, Expand(right, 0))):
                return self._between("*", left, right)
            case Elementwise("multiply" | "divide" as operation, (left, right)):
                return self._between({"multiply": "*"}.get(operation, "/"), left, right)
        return None

    def _call(self, form: str, *parts: Value) -> str | None:
        texts = [self.text(one) for one in parts]
        known = [text for text in texts if text is not None]
        return form.format(*known) if len(known) == len(texts) else None

    def _between(self, sign: str, *parts: Value) -> str | None:
        texts = [self.text(one) for one in parts]
        known = [_tight(text) for text in texts if text is not None]
        return f" {sign} ".join(known) if len(known) == len(texts) else None


_REDUCED = {
    "add": "{}.sum()",
    "multiply": "{}.prod()",
    "mean": "{}.mean()",
    "maximum": "{}.max()",
    "minimum": "{}.min()",
    "argmin": "{}.argmin()",
    "argmax": "{}.argmax()",
    "fmin": "np.fmin.reduce({})",
    "count_nonzero": "np.count_nonzero({})",
}
