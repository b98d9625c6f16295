"""What is said of a file that holds nothing to analyse: that it was not, and why.

A file without marks may be free of arrays or full of them: only of the first is nothing to gain."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

from advisor.finding import MODULE, NOTHING_SEEN, Coverage, NotUnderstood
from advisor.source import imports_of
from costdb.records import replace

LIBRARIES = ("cupy", "jax", "torch", "tensorflow", "dask", "cudf", "mxnet", "paddle", "mlx")
"""Array libraries that no model here describes."""

SIZES = "the sizes of its NumPy arrays are not known"
NOT_CALLED = "no run that was observed called it with NumPy arrays"
NO_ARRAYS = "no arrays are given to it, and only what it calls is analysed"
OUTSIDE = "statements outside of functions are not analysed"
NO_RULE = "no rule rewrites it"

_IMPORTED = re.compile(
    rf"^[ \t]*(?:import|from)[ \t]+(?:[\w., \t]+,[ \t]*)?({'|'.join(LIBRARIES)})\b", re.MULTILINE
)
_NUMPY = re.compile(r"^[ \t]*(?:import|from)[ \t]+numpy\b", re.MULTILINE)
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_ANY = re.compile(rb"\b(?:numpy|" + "|".join(LIBRARIES).encode() + rb")\b")


def may_use_arrays(data: bytes) -> bool:
    """Return whether a file may use an array library; cheap, and never wrongly False."""
    return _ANY.search(data) is not None


def unsupported(path: str, source: str) -> tuple[str, ...]:
    """Return which array libraries a file uses that are not supported: ``a.py uses cupy``."""
    return tuple(f"{path} uses {name}" for name in dict.fromkeys(_IMPORTED.findall(source)))


def coverage_of(
    path: str,
    source: str,
    seen: Collection[str] = (),
    called: Collection[str] = (),
) -> Coverage:
    """Return what is not analysed of a file that has neither marks nor messages nor threads.

    Of its functions those are that runs have `seen` with arrays, or that were read; others were
    only `called`.
    """
    libraries = unsupported(path, source)
    if not libraries and _NUMPY.search(source) is None:
        return NOTHING_SEEN if _is_python(path, source) else not_read(path, "no Python file")
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return not_read(path, "it does not parse as Python")
    if _NUMPY.search(source) is None:
        return Coverage(unsupported=libraries)
    lines, imports = source.splitlines(), imports_of(tree)
    names = frozenset(n for n, full in imports.items() if full.partition(".")[0] == "numpy")
    unknown = NOT_CALLED if called else SIZES
    found = tuple(
        NotUnderstood(
            path,
            node.lineno,
            lines[node.lineno - 1].strip(),
            _why(node, unknown, called),
        )
        for node in tree.body
        if getattr(node, "name", MODULE) not in seen and _uses_arrays(node, names)
    )
    outside = [one for one in found if one.reason == OUTSIDE]
    return Coverage(
        not_understood=tuple(one for one in found if one not in outside[1:]), unsupported=libraries
    )


def of_one_function(coverage: Coverage, *, told: bool) -> Coverage:
    """Return one verdict on a function out of those on each kind of its calls.

    Parameters
    ----------
    coverage : Coverage
    told : bool
        Whether there is a finding about it.
    """
    gaps = dict.fromkeys(coverage.not_understood)
    slow = [one for one in gaps if one.reason.endswith(NO_RULE)]
    left = dict.fromkeys(coverage.incomplete)
    return replace(
        coverage,
        analysed=tuple(name for name in dict.fromkeys(coverage.analysed) if name not in left),
        fine=() if told or slow or left else tuple(dict.fromkeys(coverage.fine)),
        not_understood=tuple(one for one in gaps if one not in slow[not told :]),
        unpriced=tuple(dict.fromkeys(coverage.unpriced)),
        incomplete=tuple(left),
    )


def not_read(path: str, reason: str) -> Coverage:
    """Return that nothing of a file was read, and why."""
    return Coverage(not_understood=(NotUnderstood(path, 1, "", reason),))


def _is_python(path: str, source: str) -> bool:
    """Return whether a file is Python by its suffix, or else by its first line."""
    _, dot, suffix = path.rpartition("/")[2].rpartition(".")
    return suffix in ("py", "pyi", "pyw", "ipynb") if dot else "python" in source.partition("\n")[0]


def _why(node: ast.stmt, unknown: str, called: Collection[str]) -> str:
    """Return why a statement of a module was not analysed; `unknown` if arguments tell."""
    if not isinstance(node, _DEFINITIONS):
        return OUTSIDE
    if isinstance(node, ast.ClassDef):
        return unknown
    given = node.args
    takes = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
    return unknown if any(takes) and node.name not in called else NO_ARRAYS


def _uses_arrays(node: ast.stmt, names: frozenset[str]) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return False
    return any(
        (isinstance(one, ast.Name) and one.id in names) or isinstance(one, ast.Slice | ast.MatMult)
        for one in ast.walk(node)
    )
