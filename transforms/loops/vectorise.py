"""# ADV401 element-by-element

**What it does.** Finds loops over single elements whose iterations do not wait for one another,
and proposes array statements over slices in their place: of the whole nest, or of its inner loops
where outer ones carry a dependence. Loops that only accumulate, into a number or into elements,
become a reduction: a sum, a product of matrices or vectors, an extreme, a count. Numbers that are
stored on the way become a scan: a running sum, product or extreme; loops in which each element is
the one before it and a term, too. Loops that look for the first least or greatest term become
`argmin` or `argmax`. Conditions on elements become choices (`np.where`) or masks, lists that are
filled become arrays, and numbers that an iteration computes for itself, also from its index, arrays
of that name. Conditions on where an index is, as for the borders of a grid, split the range: each
part has statements of its own. What several statements add to one array is added by each at once.

Loops are raised one at a time, the innermost first: an element becomes a vector, a vector a matrix.
Where an inner loop adds up or waits for itself, it also is offered as a loop around statements over
the outer indices, which keeps the order of every sum.

**Why it costs.** An element of another rank that a loop refers to is fetched alone: a remote
reference, or a message, for every one. A statement over a slice says at once what it needs, so
that all of it comes in one message from each owner. In interpreted Python every iteration also
costs the interpreter its share.

**Example**

```python
for i in range(1, n):
    for j in range(m):
        out[i, j] = image[i - 1, j] + image[i, j]
```

**Use instead**

```python
out[1:n, :m] = image[:n - 1, :m] + image[1:n, :m]
```

A loop of which nothing is made here is shown with its time, and what it would take compiled: one
whose iterations wait for nothing to be written by hand, or compiled; one over elements whose
iterations do wait, and what for, to be compiled. Where the loop by itself gets three times as fast
and all calls save 1 ms, and only what a compiler takes: numbers, elements, functions of NumPy,
comprehensions, and functions of the file that do no more.

Without a price it is shown where one call does for all: where a loop calls a function that its own
was given, or one of NumPy or SciPy that takes arrays (`np.interp`, a distribution, a tree), for one
number after another; where it draws random numbers one by one and does little else; where it takes
the elements of one group after another by a mask of all.

**When it makes no edit.** An iteration that reads what an earlier one wrote, or may; subscripts
that are neither an index and a distance nor places in an array; functions that a compiler takes, of
arrays that are not distributed, where only the order of loops matters (ADV501); an element of a
branch that is not known to be inside the array, for a slice would silently be shorter; a bound that
may be negative, for it would count from the end; loops that end early; numbers that are reset or
clamped on the way, or used after the loop; searches in which the last of equal ones wins.

**Fix safety.** Safe where all elements are of one type, every operation is one that is rounded
exactly, and no two arrays of the loops can overlap in memory: then each element is computed by
the same operations and results are equal bit for bit, for every size, none included. Unsafe where
a caller may pass overlapping arrays, where parts of a range have to be in order, and for operations
that NumPy rounds otherwise for arrays than for numbers (powers, exponentials, complex products).
Unsafe, too, where only loops with iterations show that elements are there; and for `min` and `max`
of floating-point numbers, where a NaN or a zero with a sign may come out otherwise. What may fail,
a division or a root, is computed under a mask, for those elements only that need it. Python's
comparisons pass over a NaN, as `np.fmax.accumulate` does and `np.maximum.accumulate` does not; one
that is there first stays.

What loops add, or store, at places that only the data know is one call for all of them. Where
several statements add floating-point numbers to one array, their terms come in another order.

Sums of whole numbers of one type wrap around alike in any order, and are safe; so are counts. Sums
of floating-point numbers are unsafe, for their terms come in another order, and extremes of them
for what a NaN does. Prefix sums add in the order of the loop, and are safe, but for floating-point
numbers that are distributed: ranks add what those before them have at once. Of no elements a sum of
whole numbers is NumPy's 0, not Python's.

**Models used.** Lines (array statements, messages), PGAS (remote references by pattern, where
the profile has their rates; where it has none, each is a message). Profiles that are built in
speak of compiled loops. The time of an interpreter is added only where a profile states it under
`python`.

**References.** Remote references by pattern, and what grouping them saves: the performance model
for Unified Parallel C. Dependence and vectors: Allen and Kennedy, Automatic Translation of
Fortran Programs to Vector Form, 1987.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import chain

from advisor.ir.changes import path_of
from advisor.ir.effects import DRAWS, REDUCING
from advisor.ir.functions import File, file_of, names_around
from advisor.ir.kernel import Kernel, Proposal
from advisor.ir.one_by_one import mask_of_each
from advisor.ir.statements import (
    Compiled,
    Loop,
    Opaque,
    Scatter,
    Statement,
    Store,
    Threads,
    Unknown,
    mentioned,
    names_elements,
    values_of,
    walk,
    within,
    written,
)
from advisor.ir.values import Point, length, reads
from advisor.ir.waiting import what_waits
from advisor.source import Span, assigned_names, walked
from costdb.expr import free_symbols
from costdb.expr.polynomials import is_polynomial_in
from transforms.kit.kernels import KernelRule, displayed, is_compiled_alone, replaced
from transforms.kit.rewrite import first_line, statement_at
from transforms.loops.array_statements import array_statements
from transforms.loops.placed import placed
from transforms.loops.raised import row_loops
from transforms.loops.running_sums import running_sums

# --- considered -----------------------------------------------------------------------------------
# Loops that nothing here rewrites: what a compiler would make of them.
#
# They are shown, with what they take and what they would take compiled. Whether iterations wait for
# one another decides the words: those that do not may as well be array statements, each operation
# once over as many elements as the loop has iterations. What to write is up to who knows the
# program.


_WORDS = {
    Compiled.ALONE: displayed(
        "no iteration needs what another one did, as far as names show, if no two arrays overlap"
    ),
    Compiled.WAITING: displayed("compiled, iterations run in the order of the loop"),
}


_COMPUTING = (
    "most of the time goes into what an iteration computes, not into its calls, so that array"
    " statements would gain little; compiled, it takes one pass"
)
LEAST = 3.0, 1e-3
"""A compiler is one more thing to have, and takes a second itself."""


def considered(kernel: Kernel, taken: Collection[int] = ()) -> Iterator[Proposal]:
    """Yield for the outermost loops that a compiler takes what they would cost compiled.

    Parameters
    ----------
    kernel : Kernel
    taken : collection of int
        Lines of loops that something else is proposed for.
    """
    if not any(array.spec.mesh.axes for array in kernel.arrays.values()):
        yield from _in_block(kernel.body, kernel, taken)


def _in_block(
    body: tuple[Statement, ...], kernel: Kernel, taken: Collection[int]
) -> Iterator[Proposal]:
    for parts in at_one_place(body):
        span, node = parts[0].span, statement_at(parts[0].span, kernel.context)
        if not isinstance(node, ast.For | ast.While) or node.lineno in taken:
            continue
        waits = next(filter(None, (_what_waits(part, node, kernel) for part in parts)), "")
        is_taken = all(_is_taken(part, node, kernel, taken) for part in parts)
        inner = tuple(chain.from_iterable(part.body for part in parts))
        # short array statements that wait are what loops in time are made of
        is_taken &= not waits or (
            _is_of_elements(inner) and not any(map(_changes_as_it_goes, parts))
        )
        lists = _reads_lists(node, file_of(kernel.context.source))
        is_taken &= not (waits and lists)
        if not is_taken or (waits and _has_independent(inner, kernel, taken)):
            yield from _in_block(inner, kernel, taken)
            continue
        way = Compiled.WAITING if waits else Compiled.ALONE
        of_elements = any(isinstance(one, Scatter) or names_elements(one) for one in walk(inner))
        each = "element costs the interpreter its steps" if of_elements else "iteration costs calls"
        loops = {id(part): (replace(part, compiled=way),) for part in parts}
        rest = replaced(kernel.body, dict.fromkeys(loops, ()))
        yield Proposal(
            _title(node, way).removesuffix(", or compile it" * lists),
            f"every {each}; {waits or _to_use(node)}",
            first_line(span, kernel.context),
            kernel.with_body(replaced(kernel.body, loops)),
            _WORDS[way],
            tuple,
            LEAST,
            kernel.with_body(rest),
            None if waits or lists else (_title(node, Compiled.WAITING), _COMPUTING),
        )


def at_one_place(body: tuple[Statement, ...]) -> Iterator[list[Loop]]:
    """Yield the outermost loops of a block; those that are read several times, together."""
    found: dict[Span, list[Loop]] = {}

    def look(statements: tuple[Statement, ...]) -> None:
        for one in statements:
            if isinstance(one, Loop):
                found.setdefault(one.span, []).append(one)
            else:
                look(within(one))

    look(body)
    yield from found.values()


def _is_of_elements(body: tuple[Statement, ...]) -> bool:
    """Return whether elements are named, or may be: of what no statement tells."""
    return any(
        isinstance(one, Scatter)
        or (isinstance(one, Unknown) and not isinstance(one, Opaque))
        or names_elements(one)
        for one in walk(body)
    )


def _is_taken(
    loop: Loop, node: ast.For | ast.While, kernel: Kernel, taken: Collection[int]
) -> bool:
    """Return whether a compiler takes a loop, and nothing else is proposed for it."""
    lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
    if loop.threads is not Threads.NO or any(line in lines for line in taken):
        return False
    loops = (one for one in walked(node) if isinstance(one, ast.For))
    if any(mask_of_each(one) is not None for one in loops):
        return False  # a compiler compares as many, and a new axis all of them at once
    unread = any(type(one) is Unknown for one in walk(loop.body))
    if _is_of_slices(node) and (unread or _changes_as_it_goes(loop)):
        return False
    return is_compilable(node, kernel.context.source)


def _is_of_slices(node: ast.AST) -> bool:
    """Return whether a loop has no other in it, and takes slices and no elements of arrays."""
    parts = list(walked(node))
    subscripts = [one for one in parts if isinstance(one, ast.Subscript)]
    return bool(subscripts) and not _is_nest(parts) and all(map(_slices, subscripts))


def _is_nest(parts: Collection[ast.AST]) -> bool:
    return sum(isinstance(one, ast.For | ast.While) for one in parts) > 1


def _slices(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Slice) for one in walked(node))


def _reads_lists(node: ast.For | ast.While, file: File) -> bool:
    """Return whether a loop goes once through lists: to copy them for a compiler takes longer."""
    names = file.names_of(file.scope_at(node.lineno))
    parts = list(walked(node))
    used = [one.value for one in parts if isinstance(one, ast.Subscript)]
    methods = (one for one in parts if isinstance(one, ast.Attribute) and one.attr in _LISTS)
    through = walked(node.iter) if isinstance(node, ast.For) else ()
    own = {*assigned_names(node), *(path_of(one.value) for one in methods)}
    return not _is_nest(parts) and any(
        path_of(one) not in own and {"list", "array"} & file.kinds(one, names) == {"list"}
        for one in (*used, *through)
        if isinstance(one, ast.Name | ast.Attribute)
    )


def _changes_as_it_goes(loop: Loop) -> bool:
    """Return whether what an iteration does goes by its index, not only how often loops run."""
    body = tuple(walk((loop,)))
    indices = {one.variable for one in body if isinstance(one, Loop)}
    regions = [read.region for one in body for value in values_of(one) for read in reads(value)]
    regions += [one.region for one in body if isinstance(one, Store)]
    parts = (part for region in regions for part in region if not isinstance(part, Point))
    found = [length(part) for part in parts]
    bounds = (one.high - one.low for one in body if isinstance(one, Loop))
    found += [one for one in bounds if not all(is_polynomial_in(one, name) for name in indices)]
    return any(free_symbols(one) & indices for one in found)


def _has_independent(body: tuple[Statement, ...], kernel: Kernel, taken: Collection[int]) -> bool:
    """Return whether a loop among some statements may be array statements."""
    return any(
        _is_taken(one, node, kernel, taken) and not _what_waits(one, node, kernel)
        for one in walk(body, rewritable=True)
        if isinstance(one, Loop)
        and isinstance(node := statement_at(one.span, kernel.context), ast.For | ast.While)
    )


def _what_waits(loop: Loop, node: ast.For | ast.While, kernel: Kernel) -> str:
    """Return why iterations wait for one another; empty where none does."""
    if isinstance(node, ast.While):
        return "whether there is a next iteration shows at the end of each"
    names = names_around(kernel.context.source, node.lineno)
    return what_waits(node, names) or _passed_by_memory(loop, kernel)


def _passed_by_memory(loop: Loop, kernel: Kernel) -> str:
    """Return which array may be changed and read under several names, or at several places."""
    body = tuple(walk((loop,)))
    shared = mentioned(loop) & kernel.aliases
    if len(shared) > 1 and written(loop) & shared:
        return f"{' and '.join(f'`{one}`' for one in sorted(shared))} may share memory"
    used = {read for one in body for value in values_of(one) for read in reads(value)}
    for one in body:
        if isinstance(one, Store):
            regions = {read.region for read in used if read.array == one.array}
            if regions - {one.region}:
                return f"elements of `{one.array}` that are read may be others' that changed"
    return ""


def _title(node: ast.For | ast.While, way: Compiled) -> str:
    names = ", ".join(
        f"`{part.id}`"
        for part in (walked(node.target) if isinstance(node, ast.For) else ())
        if isinstance(part, ast.Name)
    )
    loop = f"the loop over {names}" if names else "the loop"
    if way is Compiled.WAITING:
        return f"compile {loop}, by numba for one"
    return f"write {loop} as array statements, each operation once over all, or compile it"


def _to_use(node: ast.For | ast.While) -> str:
    """Return what functions of NumPy do what a loop holds."""
    found = ["slices, or a new axis for each index"]
    parts = list(walked(node))
    if any(isinstance(one, ast.If | ast.IfExp) for one in parts):
        found.append("np.where or masks for conditions")
    if any(isinstance(one, ast.Slice) for one in parts):
        found.append("sliding_window_view or prefix sums for windows")
    adds = [one.target for one in parts if isinstance(one, ast.AugAssign)]
    if any(isinstance(one, ast.Name) for one in adds):
        found.append("a reduction for what is added up")
    if any(isinstance(one, ast.Subscript) for one in adds):
        found.append("np.bincount or np.add.at for what is added at places")
    return f"consider {', '.join(found)}; arrays round and wrap around otherwise than numbers may"


# --- which loops a compiler takes -----------------------------------------------------------------
#
# A compiler of single functions, as numba is, takes numbers, elements, arrays, functions of NumPy
# on them, and functions of the file that do no more; no texts, dictionaries, objects and files.


_STATEMENTS = (
    ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If, ast.For, ast.While, ast.Expr, ast.Pass,
    ast.Continue, ast.Break, ast.Return,
)  # fmt: skip
_EXPRESSIONS = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.Name, ast.Subscript,
    ast.Slice, ast.Attribute, ast.Constant, ast.Tuple, ast.keyword, ast.List, ast.ListComp,
    ast.GeneratorExp, ast.comprehension,
    # what is no expression of its own
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context, ast.arguments, ast.arg,
)  # fmt: skip
_BUILTINS = frozenset(
    {"abs", "bool", "complex", "divmod", "enumerate", "float", "int", "len", "max", "min", "pow"}
    | {"range", "reversed", "round", "sum", "zip"}
)
_LISTS = frozenset({"append", "pop", "extend"})
_METHODS = REDUCING | {
    *("clip", "conjugate", "cumprod", "cumsum", "fill", "flatten", "nonzero", "ravel", "repeat"),
    *("sort", "take", "transpose"),
}
"""Methods of arrays that a compiler has."""
_OF_ARRAYS = frozenset({"T", "dtype", "imag", "ndim", "real", "shape", "size"})
_NOT_TAKEN = frozenset(
    {"apply_along_axis", "array2string", "einsum", "fromfile", "frompyfunc", "genfromtxt", "load"}
    | {"loadtxt", "memmap", "save", "savetxt", "savez", "savez_compressed", "vectorize", "fft"}
)
"""Functions of NumPy that a compiler leaves to the interpreter."""
_TAKEN = ("numpy", "math", "cmath")
_DEEPEST = 3


def is_compilable(loop: ast.stmt, source: str) -> bool:
    """Return whether a compiler takes a loop of a file."""
    return _takes(loop, file_of(source), 0)


def _takes(node: ast.AST, file: File, depth: int) -> bool:
    words = {one.value for one in walked(node) if isinstance(one, ast.keyword)}
    for one in walked(node):
        match one:
            case ast.Call():
                if not _is_called(one, file, depth):
                    return False
            case ast.Constant(value):
                # what tells a function of NumPy how is a word
                if isinstance(value, str | bytes) and one not in words:
                    return False
            case ast.NamedExpr():
                return False
            case ast.Attribute(ast.Name(owner), name) if depth and owner not in file.imports:
                # a function that is given an object; a loop may be given its arrays
                if name not in _OF_ARRAYS | _METHODS | _LISTS | DRAWS:
                    return False
            case ast.stmt() if not isinstance(one, _STATEMENTS):
                return False
            case ast.stmt():
                pass
            case _ if not isinstance(one, _EXPRESSIONS):
                return False
    return True


def _is_called(call: ast.Call, file: File, depth: int) -> bool:
    modules = {name for name, full in file.imports.items() if full in _TAKEN}
    match call.func:
        case ast.Name(name) if name in file.functions:
            function = file.functions[name]
            body = function.body[ast.get_docstring(function) is not None :]
            plain = not function.decorator_list and depth < _DEEPEST
            return plain and all(_takes(one, file, depth + 1) for one in body)
        case ast.Name(name):
            return name in _BUILTINS or file.imports.get(name, "").rpartition(".")[0] in _TAKEN
        case ast.Attribute(ast.Name(module), "array" | "asarray") if module in modules:
            # of numbers, not of arrays
            lists = (one for one in call.args if isinstance(one, ast.List))
            return not any(isinstance(one, ast.Slice) for part in lists for one in walked(part))
        case ast.Attribute(ast.Name(module), function) if module in modules:
            return function not in _NOT_TAKEN
        case ast.Attribute(ast.Attribute(ast.Name(module), part)) if module in modules:
            return part in ("linalg", "random")
        case ast.Attribute(ast.Name(), method):
            return method in _METHODS | _LISTS | DRAWS
        case ast.Attribute(ast.Attribute(), method) if method in DRAWS:
            return True
        case ast.Attribute(_, method):
            return method in _METHODS
    return False


# --- vectorise ------------------------------------------------------------------------------------


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield array statements for whole nests, and for their inner loops."""
    if not is_compiled_alone(kernel):
        found = (
            running_sums(kernel),
            array_statements(kernel, of_elements=True),
            placed(kernel),
        )
        made = list(chain.from_iterable(found))
        yield from made
        # what is made of loops, by this rule or another, need not be shown
        others = chain(array_statements(kernel, of_elements=False), row_loops(kernel))
        yield from considered(kernel, {one.span.start_line for one in chain(made, others)})


TRANSFORM = KernelRule("ADV401", "element-by-element", __doc__, propose)
