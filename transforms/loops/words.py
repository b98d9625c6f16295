"""Values in other words: what the source has for their parts stays as it is written."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from advisor.ir.kernel import Kernel
from advisor.ir.values import (
    Called,
    Elementwise,
    Expand,
    Part,
    Read,
    Reduction,
    Scalar,
    Value,
)
from advisor.numpy_table import REDUCED
from advisor.source import Edit, Span
from costdb.records import dataclass, replace
from transforms.kit.kernels import factors
from transforms.kit.rewrite import parenthesised
from transforms.loops.array_text import LOOSE, TIGHT, NoWords, Words

_ATOMS = (ast.Name, ast.Call, ast.Subscript, ast.Attribute, ast.Constant)


def edits_of(
    span: Span,
    changes: Mapping[Value, Value],
    kernel: Kernel,
    elsewhere: Span | None = None,
) -> tuple[Edit, ...]:
    """Return the edit that writes values of a statement otherwise; none where one has no words.

    What stands in the statement keeps its own words, those of the place that is written anew
    before others; so does what stands `elsewhere`.
    """
    context = kernel.context
    places = [one for one in (elsewhere, span) if one is not None]
    stated = [one for place in places for one in context.written if place.contains(one[0])]
    known = {value: context.text(at) for at, value in stated}
    made: list[Edit] = []
    for at, value in stated:
        if value in changes and span.contains(at) and not any(o.span.contains(at) for o in made):
            own = {part: context.text(place) for place, part in stated if at.contains(place)}
            words = _OwnWords(kernel, known | own, _subscript(context.text(at)))
            try:
                loose = _is_free(at, kernel) or (_is_power(value) and _is_power(changes[value]))
                text = words.text(changes[value], LOOSE if loose else TIGHT)
            except NoWords:
                return ()
            if "\n" in text + context.text(at):
                return ()
            around = at if _tight(text) != text else parenthesised(at, context)
            made.append(Edit(around, text))
    return tuple(made) if len(made) >= len(changes) else ()


def _subscript(text: str) -> str:
    """Return what stands between the brackets at the end of an expression, without a colon."""
    node = ast.parse(f"({text})", mode="eval").body
    return ast.unparse(node.slice).strip(":") if isinstance(node, ast.Subscript) else ""


def _is_free(at: Span, kernel: Kernel) -> bool:
    """Return whether nothing beside an expression binds what stands there."""
    lines = kernel.context.lines
    before = lines[at.start_line - 1][: at.start_column].rstrip()
    after = lines[at.end_line - 1][at.end_column :].lstrip()
    opens = before.endswith(("(", ",", "[", "=", "return")) and not before.endswith("==")
    return opens and (not after or after[0] in "),]#;")


def _is_power(value: Value) -> bool:
    return isinstance(value, Elementwise) and value.operation == "power"


def _tight(text: str) -> str:
    """Return an expression that no operator beside it takes apart."""
    node = ast.parse(f"({text})", mode="eval").body
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Name | ast.Constant)
    return text if negative or isinstance(node, _ATOMS) else f"({text})"


@dataclass(frozen=True, slots=True)
class _OwnWords(Words):
    """Writes values, by what the source has for their parts.

    `index` is the subscript that the value in the source ends in.
    """

    known: Mapping[Value, str]
    index: str

    def text(self, value: Value, level: int = LOOSE) -> str:
        """Return a value as source."""
        made = self._own(value)
        if made is None:
            return Words.text(self, value, level)
        return made if level == LOOSE else _tight(made)

    def _own(self, value: Value) -> str | None:
        """Return a value in words of the source, or of its own; None where it is like any other."""
        if value in self.known:
            return self.known[value]
        match value:
            case Scalar(text, _, span):
                return text if span is None else self.kernel.context.text(span)
            case Expand(operand, axis) if operand in self.known:
                return f"{self.text(operand, TIGHT)}[{':, None' if axis else 'None, :'}]"
            case Called("partition", (vector,), stated=((_, kth), _)):
                return f"{self.module}.partition({self.text(vector)}, {self._filled(kth)})"
            case Called("einsum", operands, stated=((_, subscripts), (_, "False"))):
                if operands[0] == operands[1] and not isinstance(operands[0], Read):
                    raise NoWords  # it would be computed twice
                given = ", ".join(map(self.text, operands))
                return f'{self.module}.einsum("{subscripts}", {given})'
            case Called("einsum", stated=(subscripts, (option, _))):
                plain = self.known.get(replace(value, stated=(subscripts, (option, "False"))))
                if plain is None or option in plain:
                    raise NoWords
                # what would be a number is an array of no axes
                number = "[()]" * (not value.shape)
                return f"{plain[:-1].rstrip(', ')}, {option}=True){number}"
            case Called(name, operands) if name.startswith("linalg."):
                return self.called(name, operands)
            case Part(Called("partition", stated=(_, (_, part))) as inner):
                return f"{self.text(inner)}[{self._filled(part)}]"
            case Reduction(operand, _, "fmin"):
                return f"{self.module}.fmin.reduce({self.text(operand)})"
            case Reduction(Elementwise("multiply", sides), None, "add", fused=True) if all(
                one in self.known for one in sides
            ):
                one, other = (self.text(side, TIGHT) for side in sides)
                if one == other and not isinstance(sides[0], Read):
                    raise NoWords  # it would be computed twice
                # of complex numbers it takes the conjugates
                if self.rank(sides[0]) > 1 and not self.kernel.assumed:
                    return self.called("vdot", sides)
                # how many axes there are may be no more than likely
                flat = ".ravel()" if self.kernel.assumed else ""
                return f"{self.module}.dot({one}{flat}, {other}{flat})"
            case Reduction(operand, 0, operation, fused=False) if (
                operation in REDUCED and self.kernel.assumed and self.rank(operand) == 1
            ):
                # Python goes over the rows where there are more axes
                return self._along(REDUCED[operation], operand, None, "axis=0")
            case Elementwise("multiply", (left, Expand(right, 0))):
                return self.text(replace(value, operands=(left, right)))
            case Elementwise("multiply" | "divide" as operation, (left, right)) if factors(left):
                sign = "*" if operation == "multiply" else "/"
                return f"{self.text(left, TIGHT)} {sign} {self.text(right, TIGHT)}"
        return None

    def _filled(self, form: str) -> str:
        plain = "{}" not in form or form.strip(":") == "{}"
        return form.format(self.index if plain else _tight(self.index))
