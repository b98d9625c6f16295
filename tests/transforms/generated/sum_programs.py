"""Programs whose loops accumulate numbers and elements, made at random."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.transforms.generated.loop_programs import Program, program

ARRAYS = (("a", 2), ("b", 2), ("x", 1), ("y", 1))
STARTS = {"add": "0", "multiply": "1", "extreme": "x[0]"}


@st.composite
def terms(draw: st.DrawFn, indices: str, offsets: tuple[int, ...]) -> str:
    """An expression over single elements of arrays that nothing stores to."""

    def at(index: str) -> str:
        offset = draw(st.sampled_from(offsets))
        return f"{index} {'+-'[offset < 0]} {abs(offset)}" if offset else index

    def element() -> str:
        if len(indices) == 1 or draw(st.integers(0, 3)) == 0:
            return f"x[{at(draw(st.sampled_from(indices)))}]"
        first, last = draw(st.permutations(indices))[:2]
        return f"{draw(st.sampled_from('ab'))}[{at(first)}, {at(last)}]"

    kind = draw(st.integers(0, 3))
    if kind == 0:
        return element()
    if kind == 1:
        return f"{element()} * {element()}"
    if kind == 2:
        return f"{element()} {draw(st.sampled_from('+-*'))} {element()}"
    return f"3 * {element()} - {element()}"


@st.composite
def sums(draw: st.DrawFn, dtype: str = "i8") -> Program:
    """Loops, up to two deep besides one that is kept, around one statement that accumulates."""
    depth = draw(st.integers(1, 3))
    indices = "ijk"[:depth]
    offsets = draw(st.sampled_from([(0,), (0, 1, -1)]))
    margin = 1 if len(offsets) > 1 else draw(st.integers(0, 1))
    lines = [
        "    " * level + f"for {index} in range({margin}, N - {margin}):  # along {index}"
        for level, index in enumerate(indices)
    ]
    inside = "    " * depth
    term = draw(terms(indices, offsets))
    literal = "0.0" if dtype.startswith("f") else "0"
    kind = draw(st.sampled_from(["total", "extreme", "count", "element", "own"]))
    lines.append(f"{inside}# one after the other")
    if kind == "own" and depth > 1:
        # a sum that each iteration of the outer loop makes for itself
        first, *rest = lines
        rest.append(f"{inside}s += {term}")
        return program([first, f"    s = {literal}", *rest, "    y[i] = s"], ARRAYS, dtype)
    if kind == "element" and depth > 1:
        sign = draw(st.sampled_from(["+=", "-="]))
        target = "y[i]" if depth == 2 or draw(st.booleans()) else "c[i, j]"
        lines.append(f"{inside}{target} {sign} {term}")
        return program(lines, (*ARRAYS, ("c", 2)), dtype)
    if kind == "count":
        lines.append(f"{inside}if {term} > {literal}:")
        lines.append(f"{inside}    s += 1  # one more")
        return program(["s = 0", *lines, "y[:1] = s"], ARRAYS, dtype)
    if kind == "extreme":
        name = draw(st.sampled_from(["min", "max"]))
        order = draw(st.sampled_from(["{0}, {1}", "{1}, {0}"])).format("s", term)
        lines.append(f"{inside}s = {name}({order})")
        return program([f"s = {literal}", *lines, "y[:1] = s"], ARRAYS, dtype)
    statement = draw(st.sampled_from(["s += {}", "s -= {}", "s = s + {}", "s = {} + s"]))
    if statement.endswith("+ s") or "s + " in statement:
        term = f"({term})"
    lines.append(inside + statement.format(term))
    return program([f"s = {literal}", *lines, "y[:1] = s"], ARRAYS, dtype)
