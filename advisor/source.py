"""Places in source text, and changes to it.

Lines count from 1 and columns from 0, in code points, as in LibCST; ends are exclusive.
Reports and protocols convert at their own edge.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from types import UnionType
from typing import Any, TypeVar, cast, overload

from costdb.records import dataclass, fields, is_dataclass, only, replace


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of source text."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int

    @property
    def start(self) -> tuple[int, int]:
        """Line and column where it begins."""
        return self.start_line, self.start_column

    @property
    def end(self) -> tuple[int, int]:
        """Line and column behind it."""
        return self.end_line, self.end_column

    @property
    def last_line(self) -> int:
        """The last line of which this holds some text."""
        ends_above = self.end_column == 0 and self.end_line > self.start_line
        return self.end_line - 1 if ends_above else self.end_line

    def contains(self, other: Span) -> bool:
        """Return whether `other` lies within this span."""
        return self.start <= other.start and other.end <= self.end


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text of a span. An empty span inserts."""

    span: Span
    replacement: str


class SourceProblem(ValueError):
    """Something wrong in a scanned file, with its place; shown as one line, exit code 2."""

    def __init__(self, path: str, line: int, column: int, message: str) -> None:
        super().__init__(f"{path}:{line}:{column + 1}: {message}")
        self.path = path
        self.line = line
        self.column = column
        self.message = message


class ParseProblem(SourceProblem):
    """The file is not Python, or not yet: an editor sees this with every half-typed line."""


class NotebookProblem(SourceProblem):
    """A notebook that cannot be read; the place is one of its JSON."""


class NotPython(NotebookProblem):
    """A notebook in another language."""


class CellsLost(ValueError):
    """An edited text from which the cells of a notebook cannot be told any more; one line."""


NOTEBOOK = ".ipynb"


def file_and_cell(path: str) -> tuple[str, int | None]:
    """Return file and cell of ``nb.ipynb:cell 3``; no cell of any other path."""
    file, _, number = path.rpartition(":cell ")
    return (file, int(number)) if file.endswith(NOTEBOOK) and number.isdecimal() else (path, None)


# The line ends of Python and LibCST. str.splitlines would also cut at form feeds and U+2028.
_LINE_END = re.compile(r"\r\n|\n|\r")
_BARE_LINE_FEED = re.compile(r"(?<!\r)\n")


class EditError(ValueError):
    """Edits that cannot be carried out together, or that lie outside the text."""


def split_lines(source: str) -> list[str]:
    """Return the lines of `source` with their ends; joined they give `source` again.

    A text that ends in a line end has an empty last line, where an edit may still insert.
    """
    starts = [0, *(match.end() for match in _LINE_END.finditer(source))]
    return [source[a:b] for a, b in zip(starts, [*starts[1:], len(source)], strict=True)]


def span_of(node: ast.expr | ast.stmt | ast.arg | ast.alias, lines: Sequence[str]) -> Span:
    """Return the span of a node, whose columns count bytes."""
    assert node.end_lineno is not None and node.end_col_offset is not None
    first, last = lines[node.lineno - 1], lines[node.end_lineno - 1]
    start = len(first.encode()[: node.col_offset].decode())
    return Span(
        node.lineno, start, node.end_lineno, len(last.encode()[: node.end_col_offset].decode())
    )


def newline_of(source: str) -> str:
    r"""Return the line end that `source` uses most, ``"\n"`` when it has none."""
    ends = _LINE_END.findall(source)
    return max(("\n", "\r\n", "\r"), key=ends.count)


def conflicting(one: Edit, other: Edit) -> bool:
    """Return whether the result would depend on which of two edits is applied first."""
    a, b = one.span, other.span
    if a.start == a.end and b.start == b.end:
        return a.start == b.start
    return a.start < b.end and b.start < a.end


def apply_edits(source: str, edits: Iterable[Edit]) -> str:
    """Return `source` with every edit carried out.

    Spans refer to `source` as it is given; columns count code points. Line feeds in a
    replacement become the line end that `source` uses.

    Raises
    ------
    EditError
        When two edits overlap, or a span does not lie within the text.
    """
    lines = split_lines(source)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    newline = newline_of(source)

    ordered = sorted(edits, key=lambda edit: edit.span)
    for one, other in pairwise(ordered):
        if conflicting(one, other):
            span = other.span
            raise EditError(
                f"two edits overlap at line {span.start_line}, column {span.start_column + 1}"
            )

    pieces: list[str] = []
    done = 0
    for edit in ordered:
        start = _offset(lines, offsets, *edit.span.start)
        end = _offset(lines, offsets, *edit.span.end)
        if end < start:
            raise EditError(f"an edit ends before it starts, at line {edit.span.start_line}")
        pieces += [source[done:start], _BARE_LINE_FEED.sub(newline, with_keys(edit.replacement))]
        done = end
    pieces.append(source[done:])
    return "".join(pieces)


def unified_diff(path: str, before: str, after: str) -> str:
    """Return the change as ``diff -u`` prints it; empty when there is none."""
    if before == after:
        return ""
    from difflib import unified_diff as diff_lines

    # As patch and git do it: only a line feed ends a line of a diff.
    old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (before, after))
    pieces = []
    for line in diff_lines(old, new, fromfile=path, tofile=path):
        pieces.append(line)
        if not line.endswith("\n"):
            pieces.append("\n\\ No newline at end of file\n")
    return "".join(pieces)


def _offset(lines: Sequence[str], offsets: Sequence[int], line: int, column: int) -> int:
    if not 1 <= line <= len(lines):
        raise EditError(f"an edit names line {line} of a text of {len(lines)} lines")
    text = lines[line - 1]
    if not 0 <= column <= len(text.rstrip("\r\n")):
        raise EditError(f"an edit names column {column + 1}, beyond the end of line {line}")
    return offsets[line - 1] + column


@lru_cache(maxsize=4)
def tree_of(source: str) -> ast.Module:
    """Return the tree of a file, which nobody may change; empty where it does not parse.

    What a statement only says of the type of a name is left out, what a name has under a key
    that is a word is an attribute of it, and what reads a property of an object calls it. No loop
    shows its progress.
    """
    # readers and rules ask for the statements of the same file
    try:
        tree = ast.parse(without_progress(source))
        if _SAYS_TYPE.search(source) or KEYED.search(source) or "@property" in source:
            _Plain(tree).visit(tree)
        return tree
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


_PROGRESS = re.compile(
    r"\b(?:tqdm\b.*\.(?:tqdm\w*|trange)|rich\.progress\.track|fastprogress\b.*\.progress_bar"
    r"|progressbar\.progressbar|alive_progress\.alive_it)"
)
"""Functions that show how far a loop is that goes through what they are given."""
_BARS = re.compile(r"^[ \t]*(?:from|import)[ \t]+.*(?:tqdm|rich|progress)", re.MULTILINE)


@lru_cache(maxsize=4)
def without_progress(source: str) -> str:
    """Return a text in which loops go through what a bar of progress is given, in its place.

    All else stands where it stood.
    """
    if not _BARS.search(source):
        return source
    try:
        nodes = [*ast.walk(ast.parse(source))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    imports, lines = imports_of(nodes), split_lines(source)
    through = (one.iter for one in nodes if isinstance(one, ast.For | ast.comprehension))
    text, starts = list(source), [0, *accumulate(map(len, lines))]

    def blank(start: tuple[int, int], end: tuple[int, int]) -> None:
        first, last = (starts[line - 1] + column for line, column in (start, end))
        text[first:last] = [x if x in "\r\n" else " " for x in text[first:last]]

    for call in every(ast.Call, *through):
        root, *rest = ast.unparse(call.func).split(".")
        name = ".".join((imports.get(root, ""), *rest))
        if call.args and _PROGRESS.fullmatch(name):
            func, whole = span_of(call.func, lines), span_of(call, lines)
            counts = name.endswith(".trange")
            blank(func.start, func.end)
            blank(
                span_of(call.args[-1 if counts else 0], lines).end,
                (whole.end_line, whole.end_column - 1),
            )
            if counts:
                stop = starts[func.end_line - 1] + func.end_column
                text[stop - len("range") : stop] = "range"
    return "".join(text)


_SAYS_TYPE = re.compile(r"^[ \t]*\w+[ \t]*:[^#\n]*=", re.MULTILINE)
PLAIN_TYPES = frozenset({"int", "float", "bool", "complex", "ndarray", "NDArray"})
"""Annotations, without the module, that say no more of a variable than its type."""


KEYED = re.compile(r"""(?<=\w)\[(["'])([^\W\d]\w*)\1\]""")
"""A key in brackets that is a word."""
KEY = "\N{MODIFIER LETTER APOSTROPHE}"
"""How the name of an attribute begins that is a key in the source: ``d["x"]``."""
_KEY = re.compile(rf"\.{KEY}(\w+)")


OF_ARRAYS = frozenset(
    ["shape", "dtype", "ndim", "strides", "itemsize", "nbytes", "size", "flat", "T", "real", "imag"]
)
"""Attributes of arrays, which classes of the file may have too."""
PROPERTY = "\N{MODIFIER LETTER DOUBLE APOSTROPHE}"
"""How the name of a method ends that is a property in the source: ``self.x``."""
_PROPERTY = re.compile(rf"{PROPERTY}(\(\))?")


def with_keys(text: str) -> str:
    """Return text with keys in brackets, and properties as attributes, as the source has them."""
    return _PROPERTY.sub("", _KEY.sub(r'["\1"]', text))


def without_keys(text: str) -> str:
    """Return text with attributes in the place of keys in brackets."""
    return KEYED.sub(rf".{KEY}\2", text)


@lru_cache(maxsize=4)
def properties_read(source: str) -> frozenset[str]:
    """Return the properties that a file reads, as attributes of what it reads them of."""
    if "@property" not in source:
        return frozenset()
    calls = (one.func for one in walked(tree_of(source)) if isinstance(one, ast.Call))
    return frozenset(
        ast.unparse(one).removesuffix(PROPERTY)
        for one in calls
        if isinstance(one, ast.Attribute) and one.attr.endswith(PROPERTY)
    )


class _Plain(ast.NodeTransformer):
    def __init__(self, tree: ast.Module) -> None:
        nodes = list(ast.walk(tree))
        bodies = (one.body for one in nodes if isinstance(one, ast.ClassDef))
        methods = [one for body in bodies for one in body if isinstance(one, ast.FunctionDef)]
        others = {
            one.name for one in methods if [*map(ast.unparse, one.decorator_list)] != ["property"]
        }
        imports = imports_of(nodes)
        for one in nodes:
            match one:
                case ast.Attribute(ast.Name(root), name) if root in imports:
                    others.add(name)
                case ast.Call(ast.Attribute(_, name)) | ast.Attribute(_, name, ast.Store()):
                    others.add(name)
                case ast.AnnAssign(ast.Name(name)):
                    # the field of a class, most often
                    others.add(name)
        self._properties = {one.name for one in methods} - others - OF_ARRAYS

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Subscript(ast.Name() | ast.Attribute() as of, ast.Constant(str(key))) if (
                key.isidentifier()
            ):
                return ast.copy_location(ast.Attribute(of, f"{KEY}{key}", node.ctx), node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr not in self._properties:
            return node
        node.attr += PROPERTY
        return ast.copy_location(ast.Call(node, [], []), node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        for one in node.body:
            if isinstance(one, ast.FunctionDef) and one.name in self._properties:
                one.name, one.decorator_list = f"{one.name}{PROPERTY}", []
            # its fields are what their annotations say
            if not isinstance(one, ast.AnnAssign):
                self.visit(one)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        said = node.annotation.value if isinstance(node.annotation, ast.Subscript) else None
        name = ast.unparse(said or node.annotation).rpartition(".")[2]
        if not isinstance(node.target, ast.Name) or node.value is None or name not in PLAIN_TYPES:
            return node
        return ast.copy_location(ast.Assign([node.target], self.visit(node.value)), node)


COMPREHENSION = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_Node = TypeVar("_Node", bound=ast.AST)


def walked(node: ast.AST) -> tuple[ast.AST, ...]:
    """Return what `ast.walk` yields of a node of a tree that nobody changes, found once."""
    kept: dict[str, tuple[ast.AST, ...]] = vars(node)
    if "_walked" not in kept:
        kept["_walked"] = tuple(ast.walk(node))
    return kept["_walked"]


@overload
def every(kind: type[_Node], *nodes: ast.AST) -> Iterator[_Node]: ...
@overload
def every(kind: UnionType, *nodes: ast.AST) -> Iterator[Any]: ...
def every(kind: Any, *nodes: ast.AST) -> Iterator[Any]:
    """Return all that is of a kind in some pieces of source, themselves included."""
    return only(kind, (one for node in nodes for one in walked(node)))


def each_of(node: ast.expr) -> list[ast.expr]:
    """Return what a tuple that is written out consists of, or what else it is alone."""
    return node.elts if isinstance(node, ast.Tuple) else [node]


def names_of(node: ast.AST, kind: type[ast.expr_context] = ast.Load) -> Iterator[ast.Name]:
    """Return where a piece of source reads names, or binds them."""
    return (one for one in every(ast.Name, node) if isinstance(one.ctx, kind))


def names_in(node: ast.AST, kind: type[ast.expr_context] = ast.Load) -> Iterator[str]:
    """Return the names that a piece of source reads, or binds, each as often as it does."""
    return (one.id for one in names_of(node, kind))


def names_around(names: Iterable[ast.Name], node: ast.AST) -> Iterator[str]:
    """Return of names in a piece of source those that no comprehension has for itself."""
    own: set[ast.Name] = set()
    for part in every(COMPREHENSION, node):
        bound = {one for each in part.generators for one in assigned_names(each.target)}
        outside = walked(part.generators[0].iter)
        own |= {one for one in every(ast.Name, part) if one.id in bound and one not in outside}
    return (one.id for one in names if one not in own)


def assigned_names(node: ast.AST) -> Iterator[str]:
    """Return names that a statement binds or deletes, those of its parts included."""
    names = [one for one in every(ast.Name, node) if not isinstance(one.ctx, ast.Load)]
    return names_around(names, node) if names else iter(())


def imports_of(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Return modules and functions that a file imports, by their names in it."""
    found: dict[str, str] = {}
    for node in nodes:
        match node:
            case ast.Import(names=names):
                found |= {one.asname: one.name for one in names if one.asname}
                roots = (one.name.partition(".")[0] for one in names if not one.asname)
                found |= {root: root for root in roots}
            case ast.ImportFrom(module=str(module), names=names):
                found |= {one.asname or one.name: f"{module}.{one.name}" for one in names}
    return found


def fresh_name(wanted: str, taken: Iterable[str]) -> str:
    """Return `wanted`, or the first of ``wanted_2``, ``wanted_3`` ... that nobody uses."""
    used = set(taken)
    name, number = wanted, 1
    while name in used:
        number += 1
        name = f"{wanted}_{number}"
    return name


# --- notebook -------------------------------------------------------------------------------------
# Notebooks as Python: code cells in order, each below a comment that names it.
#
# Magics and shell lines become comments, cells of other languages are left out: so the text is
# analysed and edited as any other, and goes back cell by cell. Cells count from 1, others than code
# included, as they do for ruff.


_MARK = "# %% [cell {}]"
_MARKED = re.compile(r"^# %% \[cell ([0-9]+)\]\n", re.MULTILINE)
_LEFT_OUT = "# left out: "
_RESTORED = re.compile(rf"^([ \t]*)(?:pass  )?{_LEFT_OUT}(.*)$", re.MULTILINE)

_MAGIC = re.compile(
    r"[ \t]*(?:[%!?]|[\w.%]+\?{1,2}[ \t]*(?:\n|\Z)|[^\n=#'\"(]*[^\n=!<>]=[ \t]*[%!](?!=))"
)
_CELL_MAGIC = re.compile(r"\s*%%(\w+)")
_OF_PYTHON = frozenset(("capture", "prun", "pypy", "python", "python3", "time", "timeit"))
"""Magics of whole cells below which there is Python."""

_TOKEN = re.compile(
    r'("""|\'\'\')(?:\\.|(?!\1).)*(?:\1|\Z)|"(?:\\.|[^"\\\n])*"?|\'(?:\\.|[^\'\\\n])*\'?'
    r"|#[^\n]*|(?P<open>[(\[{])|(?P<close>[)\]}])|\\\n|(?P<end>\n)",
    re.DOTALL,
)
_JOINED = re.compile(r"(?:[^\n]*\\\n)*[^\n]*\n?")
_LEAD = re.compile(r"\s*\{\r?\n([ \t]*)")
_LINE = re.compile(r"\bline ([0-9]+)\b")
_Told = TypeVar("_Told")


# From JSON to text and back.


def text_of(path: str, raw: str) -> str:
    """Return the Python of a notebook, given as its JSON.

    Raises
    ------
    NotebookProblem
        It is no notebook of format 4.
    NotPython
        Its kernel speaks another language.
    """
    parts = []
    for number, cell in enumerate(_cells(path, raw), start=1):
        source = _source(cell)
        if cell.get("cell_type") == "code" and _is_python(cell, source):
            parts.append(f"{_MARK.format(number)}\n{''.join(_as_python(source))}\n")
    return "".join(parts)


def with_text(raw: str, text: str) -> str:
    """Return a notebook's JSON with the cells of an edited text; all else stays, to the letter.

    Raises
    ------
    CellsLost
        A cell of the notebook is not in the text.
    """
    import json

    before, after = cells_of(text_of("", raw)), cells_of(text)
    if before.keys() != after.keys():
        raise CellsLost("the edits go across its cells")
    document = json.loads(raw)
    for number, cell in enumerate(document["cells"], start=1):
        if before.get(number) != after.get(number):
            source = after[number].removesuffix("\n")
            lines = source.splitlines(keepends=True)
            cell["source"] = lines if isinstance(cell["source"], list) else source
    # laid out and escaped as whoever wrote it did
    lead = _LEAD.match(raw)
    indent = lead[1] if lead is not None else None
    colon = ": " if '": ' in raw else ":"
    comma = "," if indent is not None or colon == ":" else ", "
    escaped = raw.isascii() and "\\u" in raw
    made = json.dumps(document, indent=indent, separators=(comma, colon), ensure_ascii=escaped)
    return made + raw[len(raw.rstrip()) :]


def cells_of(text: str) -> Mapping[int, str]:
    """Return the cells of a notebook's text by number, each with a line end behind it.

    Magics and shell lines are as they were.
    """
    above, *parts = _MARKED.split(text)
    cells = {int(number): cell for number, cell in zip(parts[::2], parts[1::2], strict=True)}
    if above and cells:
        first = min(cells)
        cells[first] = above + cells[first]
    return {number: _RESTORED.sub(r"\1\2", cell) for number, cell in cells.items()}


def _cells(path: str, raw: str) -> list[Any]:
    import json

    try:
        document = json.loads(raw)
    except json.JSONDecodeError as error:
        place = path, error.lineno, error.colno - 1
        raise NotebookProblem(*place, f"not a notebook: not JSON: {error.msg}") from error
    except RecursionError as error:
        raise NotebookProblem(path, 1, 0, "not a notebook: nested too deeply") from error
    cells = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        old = isinstance(document, dict) and "worksheets" in document
        why = "`jupyter nbconvert --to notebook` makes one of format 4 of it" if old else "no cells"
        raise NotebookProblem(path, 1, 0, f"not a notebook of format 4: {why}")
    language = _language(document)
    if language.lower() not in ("python", "ipython"):
        raise NotPython(path, 1, 0, f"a notebook in {language}, not Python")
    return cells


def _language(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata")
    for section, key in (("language_info", "name"), ("kernelspec", "language")):
        found = metadata.get(section) if isinstance(metadata, dict) else None
        if isinstance(found, dict) and isinstance(found.get(key), str):
            return str(found[key])
    return "python"


def _source(cell: Mapping[str, Any]) -> str:
    source = cell.get("source", "")
    lines = source if isinstance(source, list) else [source]
    return "".join(line for line in lines if isinstance(line, str))


def _is_python(cell: Mapping[str, Any], source: str) -> bool:
    metadata = cell.get("metadata")
    editor = metadata.get("vscode") if isinstance(metadata, dict) else None
    language = editor.get("languageId", "python") if isinstance(editor, dict) else "python"
    magic = _CELL_MAGIC.match(source)
    return language == "python" and (magic is None or magic[1] in _OF_PYTHON)


def _as_python(source: str) -> Iterator[str]:
    """Yield a cell's text, magics and shell lines as comments behind what does nothing."""
    start = 0
    while start < len(source):
        if _MAGIC.match(source, start) is None:
            end = _statement_end(source, start)
            yield source[start:end]
        else:
            end = max(start + 1, _whole_line_end(source, start))
            nothing = "pass  "
            for line in split_lines(source[start:end]):
                text = line.lstrip(" \t")
                if text:
                    yield f"{line[: len(line) - len(text)]}{nothing}{_LEFT_OUT}{text}"
                nothing = ""
        start = end


def _whole_line_end(source: str, start: int) -> int:
    """Return where a line ends, with those that backslashes join to it."""
    found = _JOINED.match(source, start)
    return len(source) if found is None else found.end()


def _statement_end(source: str, start: int) -> int:
    depth = 0
    for token in _TOKEN.finditer(source, start):
        depth += {"open": 1, "close": -1}.get(token.lastgroup or "", 0)
        if token.lastgroup == "end" and depth <= 0:
            return token.end()
    return len(source)


# Places: of a line of the text, those of the cell that it is in.


@lru_cache(maxsize=8)
def _heads(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the numbers of the cells of a text, and the lines that name them."""
    lines = [(int(one[1]), text.count("\n", 0, one.start()) + 1) for one in _MARKED.finditer(text)]
    return tuple(number for number, _ in lines), tuple(line for _, line in lines)


def cell_line(text: str, line: int) -> tuple[int, int]:
    """Return cell and line in it of a line of a notebook's text."""
    numbers, heads = _heads(text)
    place = max(bisect_right(heads, line) - 1, 0)
    return (numbers[place], max(line - heads[place], 1)) if heads else (1, line)


def text_line(text: str, cell: int, line: int) -> int:
    """Return the line of a notebook's text that is a line of one of its cells; 0 where none is."""
    numbers, heads = _heads(text)
    return heads[numbers.index(cell)] + line if cell in numbers else 0


def separate(text: str) -> Iterator[str]:
    """Yield the cells of a notebook's text, each below empty lines that keep its lines' numbers."""
    lines, (_, heads) = split_lines(text), _heads(text)
    for head, end in pairwise((*heads, len(lines) + 1)):
        yield "\n" * head + "".join(lines[head : end - 1])


def placed(told: _Told, text: str) -> _Told:
    """Return a finding, or whatever else is told of a notebook, with places in its cells.

    Parameters
    ----------
    told : dataclass
        Its spans and lines, and each ``line 12`` of its texts, are of `text`; where it has a path,
        that gets the cell: ``nb.ipynb:cell 3``.
    text : str
    """
    found: _Told = _moved(told, text)
    path = getattr(told, "path", "")
    if not path.endswith(NOTEBOOK):
        return found
    span: Span | None = getattr(told, "span", None)
    line: int = getattr(told, "line", 1) if span is None else span.start_line
    return replace(found, path=f"{path}:cell {cell_line(text, line)[0]}")  # type: ignore[type-var]


def _moved(value: Any, text: str) -> Any:
    if isinstance(value, Span):
        line = cell_line(text, value.start_line)[1]
        end = max(line, cell_line(text, value.end_line)[1])
        return replace(value, start_line=line, end_line=end)
    if type(value) is str:  # an enumeration is a text as well
        return _LINE.sub(lambda found: _said(text, int(found[1])), value)
    if isinstance(value, tuple):
        return tuple(_moved(one, text) for one in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changed = {one.name: _moved(getattr(value, one.name), text) for one in fields(value)}
    if isinstance(changed.get("line"), int):
        changed["line"] = cell_line(text, changed["line"])[1]
    return replace(value, **changed)


def _said(text: str, line: int) -> str:
    cell, within = cell_line(text, line)
    return f"cell {cell}, line {within}"


def on_file(told: _Told) -> _Told:
    """Return what was placed in a cell for those who know lines of files only.

    That is on the first line of the file, with cell and line in words.
    """
    found: Any = told
    file, cell = file_and_cell(found.path)
    if cell is None:
        return told
    name = "reason" if hasattr(told, "reason") else "message"
    line = found.span.start_line if hasattr(told, "span") else found.line
    place = {"span": Span(1, 0, 1, 0)} if hasattr(told, "span") else {"line": 1}
    words = {name: f"cell {cell}, line {line}: {getattr(told, name)}"}
    return cast(_Told, replace(found, path=file, **place, **words))


def placed_problem(problem: SourceProblem, text: str) -> SourceProblem:
    """Return a problem of a notebook's text at its place in a cell."""
    if isinstance(problem, NotebookProblem) or not problem.path.endswith(NOTEBOOK):
        return problem
    cell, line = cell_line(text, problem.line)
    message: str = _moved(problem.message, text)
    return SourceProblem(f"{problem.path}:cell {cell}", line, problem.column, message)
