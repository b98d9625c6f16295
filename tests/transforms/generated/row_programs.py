"""Loops of array statements, made at random: windows, halves of matrices, recurrences, extremes."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from tests.transforms.generated.loop_programs import Program, program

ARRAYS = (("a", 2), ("b", 2), ("c", 2))


@st.composite
def rows(draw: st.DrawFn, dtype: str = "i8") -> Program:
    """A nest of statements on rows, some of which no array statement does."""
    kind = draw(st.sampled_from([_windows, _halves, _recurrences, _extremes]))
    return program(draw(kind(dtype)), ARRAYS, dtype)


@st.composite
def _windows(draw: st.DrawFn, dtype: str) -> Sequence[str]:
    size = draw(st.integers(1, 6))
    step = draw(st.sampled_from([1, 1, 2]))
    low = draw(st.integers(0, 1))
    trips = f"N - {size + low} + 1" if step == 1 else f"(N - {size + low}) // 2 + 1"
    first = f"{step} * i + {low}" if step > 1 or low else "i"
    window = f"{first}:{first} + {size}"
    reduced = draw(st.sampled_from(["sum", "max", "min"]))
    other = draw(st.sampled_from(["", f" * c[:{size}, :]", " - c[i, :]", " + b[:1, :]"]))
    target = draw(st.sampled_from(["b[i, :]", "b[i, :]", "b[0, :]"]))
    if draw(st.booleans()):
        return [
            f"for i in range({trips}):  # down",
            f"    {target} = np.{reduced}(a[{window}, :]{other}, axis=0)",
        ]
    across = draw(st.sampled_from(["j:j + 2", f"j:j + {size}", ":2"]))
    return [
        f"for i in range({trips}):  # down",
        f"    for j in range(N - {size} + 1):  # across",
        f"        b[i, j] = np.{reduced}(a[{window}, {across}])",
    ]


@st.composite
def _halves(draw: st.DrawFn, dtype: str) -> Sequence[str]:
    beyond = draw(st.sampled_from(["i", "i", "i + 1"]))
    trips = draw(st.sampled_from(["N", "N", "N - 1"]))
    one = draw(st.sampled_from("aaaab"))
    other = draw(st.sampled_from("aaac"))
    term = draw(st.sampled_from([
        f"{one}[:, i] @ {other}[:, {beyond}:]",
        f"{one}[i, :] @ {other}[:, {beyond}:]",
        f"3 * ({one}[:, i] @ {other}[:, {beyond}:])",
        f"{one}[i, i] * {other}[i, {beyond}:]",
        f"{one}[0, i] * {other}[0, {beyond}:] + {one}[1, i] * {other}[1, {beyond}:]",
    ]))  # fmt: skip
    targets = [f"b[{beyond}:, i]", f"b[i, {beyond}:]"]
    if draw(st.booleans()):
        body = [f"    {targets[0]} = {targets[1]} = {term}  # both halves"]
    else:
        body = [f"    {targets[1]} = {term}  # the one", f"    {targets[0]} = {targets[1]}"]
    return ["if N > 1:", *(f"    {line}" for line in (f"for i in range({trips}):", *body))]


@st.composite
def _recurrences(draw: st.DrawFn, dtype: str) -> Sequence[str]:
    def part() -> str:
        name, offset = draw(st.sampled_from("aaccb")), draw(st.sampled_from(["", " - 1"]))
        if draw(st.integers(0, 3)) == 0:
            return f"{name}[:, i{offset}]"
        return f"{name}[i{offset}, :]"

    sign = draw(st.sampled_from("+-*"))
    term = f"({part()} {sign} {part()})"
    if draw(st.booleans()):
        term = f"({term} {draw(st.sampled_from('+-*'))} {part()})"
    before = draw(st.sampled_from(["b[i - 1, :]", "b[i - 1, :] * 3", "b[0, :]"]))
    lines = [f"    b[i, :] = {before} + {term}  # waits"]
    if draw(st.booleans()):
        lines.append(f"    c[i, :] = {part()} + {term}")
    return ["for i in range(1, N):", *lines]


@st.composite
def _extremes(draw: st.DrawFn, dtype: str) -> Sequence[str]:
    name = draw(st.sampled_from(["max", "min"]))
    term = draw(st.sampled_from([
        "b[i, k] + b[k + 1, j]", "a[i, k] + b[k, j]", "a[i, k] - c[k, j]", "a[k, j]", "b[i, k]",
    ]))  # fmt: skip
    low, high = draw(st.sampled_from([("i + 1", "j"), ("0", "j"), ("0", "N"), ("j", "N")]))
    down = draw(st.sampled_from(["range(N)", "range(N - 1, -1, -1)"]))
    return [
        f"for i in {down}:",
        "    for j in range(i + 1, N):",
        f"        for k in range({low}, {high}):  # the best",
        f"            b[i, j] = {name}(b[i, j], {term})",
    ]
