"""Which files can hold anything to advise on, and which lie beside them, by text alone.

And what is said of a file that holds nothing to analyse.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from time import monotonic

from advisor.finding import MODULE, NOTHING_SEEN, Coverage, NotUnderstood
from advisor.source import imports_of, walked
from costdb.records import replace

PICKLING_METHOD = (
    "[isb]?send|i?recv|sendrecv|bcast|(?:all)?gather|scatter|(?:all)?reduce|alltoall|barrier"
)
"""Methods of communicators that other things have as well."""

BUFFER_METHOD = (
    "Sendrecv(?:_replace)?|Isend|Irecv|(?:A|Ia)ll(?:reduce|gatherv?|toall[vw]?)|(?:B|Ib)cast"
    "|(?:G|Ig)atherv?|(?:S|Is)catterv?|(?:E|Ie)xscan|(?:R|Ir)educe_scatter(?:_block)?"
    "|Isendrecv(?:_replace)?"
)
"""Methods, as a regular expression, that few things but mpi4py's communicators have."""

# Of letters only ASCII counts, so that bytes that are taken for letters of Latin-1 show as much as
# the text that they are.
_MARK = re.compile(r"\badvisor\b|#[ \t]*advise[ \t]*:", re.ASCII)
_MPI = re.compile(r"\bmpi4py\b", re.ASCII)
_PRANGE = re.compile(r"\bprange\b", re.ASCII)
_CALL = re.compile(rf"\.(?:{BUFFER_METHOD})\s*\(")
_NUMBA = re.compile(r"\bnumba\b", re.ASCII)
_JIT = re.compile(r"\bn?jit\b", re.ASCII)
_NUMPY = re.compile(r"^[ \t]*(?:import|from)[ \t]+numpy\b", re.MULTILINE | re.ASCII)
_SENDS = re.compile(rf"\.[ \t]*(?:{BUFFER_METHOD}|{PICKLING_METHOD})\s*\(")

_WORDS = tuple(
    b"advis mpi4py prange num xscan send recv cast ather catter educe lltoall arrier".split()
)
"""One of these is in every text that a pattern matches, here or in `beside`.

Each is a part of as many of the words looked for as possible: finding one takes a twentieth of the
time that a pattern takes, but every file pays for all of them.
"""

_DECLARATION = re.compile(rb"coding[:=][ \t]*([-\w.]+)")
_LIKE_ASCII = frozenset(b"utf-8 utf8 ascii us-ascii latin-1 latin1 iso-8859-1 iso-8859-15".split())
"""Encodings that are often declared and in which bytes below 128 mean what they mean in ASCII."""

_FIRST_LINES_BYTES = 512


def imports_mpi(source: str) -> bool:
    """Return whether a file mentions mpi4py."""
    return "mpi4py" in source and _MPI.search(source) is not None


def may_communicate(source: str) -> bool:
    """Return whether a file may hold an SPMD program; cheap, and never wrongly False."""
    if imports_mpi(source) or ("prange" in source and _PRANGE.search(source)):
        return True
    return _CALL.search(source) is not None


def may_hold_kernels(source: str) -> bool:
    """Return whether a file may hold annotated kernels; cheap, and never wrongly False."""
    return "advis" in source and _MARK.search(source) is not None


def may_call_compiled(source: str) -> bool:
    """Return whether a file may have numba compile functions; cheap, and never wrongly False."""
    return bool("numba" in source and _NUMBA.search(source) and _JIT.search(source))


def is_plain(source: str) -> bool:
    """Return whether a file uses NumPy, and nobody marked what of it is to be read."""
    if "numpy" not in source or _NUMPY.search(source) is None:
        return False
    return not may_hold_kernels(source)


def needs_reading(source: str, path: str | None = None) -> bool:
    """Return whether a file may hold anything to advise on; cheap, and never wrongly False.

    Where its path is given, also for a program beside it that imports it.
    """
    return is_plain(source) or is_asked(source, path)


def is_asked(source: str, path: str | None = None) -> bool:
    """Return whether a file may hold marks, messages or threads: more than plain NumPy."""
    if may_hold_kernels(source) or may_communicate(source) or may_call_compiled(source):
        return True
    return path is not None and may_be_given_communicator(path, source)


def needs_decoding(data: bytes, path: str | None = None) -> bool:
    """Return whether the text in `data` may need reading; never wrongly False.

    Every encoding that a Python file may have writes marks as ASCII, but for a few that it must
    declare: whatever declares one of these is decoded first.
    """
    if any(word in data for word in _WORDS) and needs_reading(data.decode("latin-1"), path):
        return True
    declared = _DECLARATION.findall(data, 0, _FIRST_LINES_BYTES)
    return any(name.lower() not in _LIKE_ASCII for name in declared)


# Files beside a program that belong to it: the modules it imports, and those that import it.
#
# Only names and plain text are looked at here; nothing is parsed, and nothing imported.

LARGEST_BYTES = 1_000_000
"""Larger files beside a program are not looked into."""

MOST_FILES = 500
"""In a folder with more files than these nobody is looked for."""

MOST_CALLERS = 4
"""Programs that import a module are followed up to this number."""

STALE_S = 2
"""How long what was found in a folder counts, which an editor changes while it is asked."""

_SENDING = re.compile(rf"\.[ \t]*(?:{PICKLING_METHOD})\(")
_LETTER = "\x80-\U0010ffff"
_RECEIVER = re.compile(rf"([A-Za-z_{_LETTER}][\w.{_LETTER}]*)[ \t]*$")
_PARAMETERS = re.compile(r"^[ \t]*def[ \t]+[^\s(]+[ \t]*\(([^)]*)", re.MULTILINE)
_NAME = re.compile(rf"[A-Za-z_{_LETTER}][\w{_LETTER}]*")
_LONGEST_NAME = 80
_IMPORTED = re.compile(r"^[ \t]*(?:from|import)[ \t]+([\w.]+)", re.MULTILINE)


def sibling_file(path: str, module: str) -> Path | None:
    """Return the file beside `path` that ``import module`` means there; None where there is none.

    A module of the package that the folder is counts as well.
    """
    folder = Path(path).parent
    *packages, name = module.split(".")
    if not name.isidentifier() or (packages and packages != [folder.resolve().name]):
        return None
    file = folder / f"{name}.py"
    return file if _is_plain(file) and file.name != Path(path).name else None


def _is_plain(file: Path) -> bool:
    try:
        return file.is_file() and file.stat().st_size <= LARGEST_BYTES
    except OSError:
        return False


def may_be_given_communicator(path: str, source: str) -> bool:
    """Return whether a file may send with a communicator that a program beside it passes."""
    if _SENDS.search(source) is None or imports_mpi(source):
        return False
    return sends_by_parameter(source) and bool(callers_of(path))


def sends_by_parameter(source: str) -> bool:
    """Return whether what sends may be a parameter, or an attribute that one was stored in."""
    receivers = {
        found[1]
        for sent in _SENDING.finditer(source)
        if (found := _RECEIVER.search(source, max(0, sent.start() - _LONGEST_NAME), sent.start()))
    }
    if not receivers:
        return False
    heads = _PARAMETERS.finditer(source)
    parameters = {name for given in heads for name in _NAME.findall(given[1])}
    # what is an attribute was a parameter before, under whatever name
    return bool(parameters) and any("." in name or name in parameters for name in receivers)


def callers_of(path: str) -> tuple[str, ...]:
    """Return the files beside `path` that mention mpi4py and import it by its name."""
    name = Path(path).stem
    if not name.isidentifier():
        return ()
    # as in the texts, whose bytes are taken for letters
    named, inside = name.encode().decode("latin-1"), rf"[\w{_LETTER}]"
    imports = re.compile(
        rf"^[ \t]*(?:from|import)\b[^\n]*(?<!{inside}){named}(?!{inside})", re.MULTILINE
    )
    found = [
        str(file)
        for file, text in _programs_in(str(Path(path).parent), int(monotonic() // STALE_S))
        if file.name != Path(path).name and imports.search(text)
    ]
    return tuple(found[:MOST_CALLERS])


def surroundings(path: str, source: str) -> str:
    """Return what changes whenever a file beside `path` changes that its program may rest on.

    Empty where it rests on none: it imports nothing from there, and nothing there
    imports it.
    """
    imported = any(
        sibling_file(path, name.lstrip(".")) for name in _IMPORTED.findall(source) if name != "."
    )
    if not imported and not callers_of(path):
        return ""
    states: list[str] = []
    try:
        for file in sorted(Path(path).parent.iterdir()):
            if file.suffix == ".py" and _is_plain(file):
                state = file.stat()
                states.append(f"{file.name} {state.st_mtime_ns} {state.st_size}")
    except OSError:
        return ""
    return "\n".join(states)


def forget() -> None:
    """Look into folders anew, because files in them have changed."""
    _programs_in.cache_clear()


@lru_cache(maxsize=64)
def _programs_in(folder: str, period: int) -> tuple[tuple[Path, str], ...]:
    """Return the files of a folder that mention mpi4py, with their content."""
    try:
        files = [f for f in Path(folder).iterdir() if f.suffix == ".py" and _is_plain(f)]
    except OSError:
        return ()
    if len(files) > MOST_FILES:
        return ()
    found: list[tuple[Path, str]] = []
    for file in sorted(files):
        try:
            text = file.read_bytes().decode("latin-1")
        except OSError:
            continue
        if imports_mpi(text):
            found.append((file, text))
    return tuple(found)


# --- unread ---------------------------------------------------------------------------------------
# What is said of a file that holds nothing to analyse: that it was not, and why.
#
# A file without marks may be free of arrays or full of them: only of the first is nothing to gain.


LIBRARIES = ("cupy", "jax", "torch", "tensorflow", "dask", "cudf", "mxnet", "paddle", "mlx")
"""Array libraries that no model here describes."""

SIZES = "the sizes of its NumPy arrays are not known"
NOT_CALLED = "no run that was observed called it with NumPy arrays"
NO_ARRAYS = "no arrays are given to it, and only what it calls is analysed"
OUTSIDE = "statements outside of functions are not analysed"
NO_RULE = "no rule rewrites it"

_OF_LIBRARIES = re.compile(
    rf"^[ \t]*(?:import|from)[ \t]+(?:[\w., \t]+,[ \t]*)?({'|'.join(LIBRARIES)})\b", re.MULTILINE
)
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_ANY = re.compile(rb"\b(?:numpy|" + "|".join(LIBRARIES).encode() + rb")\b")


def may_use_arrays(data: bytes) -> bool:
    """Return whether a file may use an array library; cheap, and never wrongly False."""
    return _ANY.search(data) is not None


def unsupported(path: str, source: str) -> tuple[str, ...]:
    """Return which array libraries a file uses that are not supported: ``a.py uses cupy``."""
    return tuple(f"{path} uses {name}" for name in dict.fromkeys(_OF_LIBRARIES.findall(source)))


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
    lines, imports = source.splitlines(), imports_of(walked(tree))
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
