"""Loops with conditions on where their indices are, as borders of grids are written."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import assume
from hypothesis import strategies as st

from tests.transforms.generated.loop_programs import Program, program, results

_WHERE = (
    "{0} == 0",
    "{0} == N - 1",
    "{0} > 0",
    "{0} < N - 1",
    "{0} != 0",
    "0 < {0} < N - 1",
    "{0} >= 2",
    "not {0} < 1",
    "{0} <= N - 3",
    "N - 2 > {0}",
    "{0} + 1 == N",
    "1 <= {0} and {0} != N - 1",
)


@st.composite
def conditioned(draw: st.DrawFn) -> Program:
    """Nests of one or two loops over arrays, whose statements stand under such conditions."""
    indices = "ij"[: draw(st.integers(1, 2))]
    lines = [
        f"{'    ' * level}for {index} in range({draw(st.sampled_from(['N', '1, N', 'N - 1']))}):"
        for level, index in enumerate(indices)
    ]

    def condition() -> str:
        joined = f" {draw(st.sampled_from(['and', 'or']))} "
        asked = draw(st.lists(st.sampled_from(indices), min_size=1, max_size=2 * len(indices)))
        return joined.join(draw(st.sampled_from(_WHERE)).format(index) for index in asked[:3])

    def element(name: str) -> str:
        shifts = [draw(st.sampled_from(["", "", " - 1", " + 1"])) for _ in indices]
        return f"{name}[{', '.join(map(''.join, zip(indices, shifts, strict=True)))}]"

    def statement() -> str:
        target = f"a[{', '.join(indices)}]"
        return draw(
            st.sampled_from(
                [
                    f"{target} = {element('b')} - 2 * {element('b')}",
                    f"{target} += {element('b')}",
                    f"{target} = 7",
                ]
            )
        )

    def under(test: str, body: Sequence[str]) -> list[str]:
        return [f"{test}:", *(f"    {line}" for line in body)]

    match draw(st.integers(0, 5)):
        case 0:
            inner = under(f"if {condition()}", [statement()])
        case 1:
            inner = under(f"if {condition()}", [statement()]) + under("else", [statement()])
        case 2:
            inner = under(f"if {condition()}", [statement()])
            inner += under(f"elif {condition()}", [statement()])
            inner += under("else", [statement()])
        case 3:
            inner = [*under(f"if {condition()}", ["continue"]), statement()]
        case 4:
            inner = under(f"if {condition()}", [statement()])
            inner += under(f"if {condition()}", [statement()])
        case _:
            inner = [f"a[{', '.join(indices)}] = {element('b')} if {condition()} else 3"]
    inside = "    " * len(indices)
    made = program(
        [*lines, *(inside + line for line in inner)],
        [("a", len(indices)), ("b", len(indices))],
    )
    try:
        for size in (0, 3, 8):
            results(made.source, made, size, 0)
    except IndexError:
        assume(False)
    return made
