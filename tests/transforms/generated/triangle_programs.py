"""Loops around triangles, as in factorisations by rows, made at random."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.transforms.generated.loop_programs import Program, program


@st.composite
def triangles(draw: st.DrawFn) -> Program:
    """A loop with statements on rows, and a triangle or two, in any order; most of them wait."""
    first = draw(st.integers(0, 2))
    arrays = draw(st.sampled_from(["a", "ab"]))

    kinds = list[str]()

    def usually(one: str, *others: str) -> str:
        return one if draw(st.integers(0, 3)) else draw(st.sampled_from(others))

    def at(index: str) -> str:
        return usually(index, f"{index} - 1", f"{index} + 1")

    def statement(row: str, column: str) -> str:
        array, other = draw(st.sampled_from(arrays)), draw(st.sampled_from(arrays))
        to = usually(column if kinds[-1:] != ["above"] else row, at(row), at(column))
        crossed = draw(st.sampled_from([f"[{column}, :{to}]", f"[:{to}, {column}]"]))
        term = draw(
            st.sampled_from(
                [
                    f"{other}[{row}, :{to}] @ {array}{crossed}",
                    f"{other}[{row}, :{to}] @ {array}{crossed}",
                    f"{other}[{at(column)}, {at(column)}]",
                    f"{other}[{at(row)}, {at(column)}] * {array}[{column}, {column}]",
                ]
            )
        )
        return f"{array}[{row}, {column}] {usually('-=', '+=', '*=')} {term}"

    parts = list[list[str]]()
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["below", "below", "above", "diagonal", "chosen"]))
        kinds.append(kind)
        if kind == "diagonal":
            parts.append([f"    {statement('i', 'i')}"])
            continue
        if kind == "chosen":
            ways = [statement("i", usually("j", "i")), statement("i", "j")]
            first_way, other = ways if draw(st.booleans()) else reversed(ways)
            lines = [f"    for j in range({usually('0', '1')}, i + 1):  # along j"]
            lines += [f"        s = {usually('3', 'a[i, :j] @ a[j, :j]', 'a[j, j]')}"]
            lines += ["        if i == j:", f"            {first_way} - s"]
            parts.append([*lines, "        else:", f"            {other} + s"])
            continue
        begin, ahead = usually("0", "1"), usually("", " + 1", " - 1")
        ends = f"{begin}, i{ahead}" if kind == "below" else f"i{ahead}, N"
        lines = [f"    for j in range({ends}):  # along j"]
        if draw(st.integers(0, 3)) == 0:
            # products that are written out
            lines += ["        for k in range(j):", "            a[i, j] -= a[i, k] * a[k, j]"]
        lines += [f"        {statement('i', 'j')}" for _ in range(draw(st.integers(0, 2)))]
        parts.append(lines if len(lines) > 1 else [*lines, f"        {statement('i', 'j')}"])
    body = [line for part in parts for line in part]
    end = usually("N", "N - 1")
    return program(
        [f"for i in range({first}, {end}):  # row by row", *body],
        tuple((name, 2) for name in arrays),
    )
