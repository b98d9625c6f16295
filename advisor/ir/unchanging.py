"""What a program computes again, by what stands in the source: in each iteration, or in one block.

An expression stays the same where all it does is to compute, and nothing in between can change what
it reads. Of a statement that nobody understands no more is asked than which names it could change:
those it binds, what it stores to, and what it gives to code that nobody knows, with all that may
share memory with these. Whether that pays is for others to know.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import takewhile

from advisor.ir.waiting import DRAWS, METHODS, assigned_names
from advisor.source import imports_of
from costdb.records import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef
_Loop = ast.For | ast.While


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PURE = _words(
    "abs all any bool complex divmod enumerate float int len list max min pow range round set"
    " sorted str sum tuple zip"
)
_MODULES = _words(
    "numpy numpy.linalg numpy.fft numpy.lib.stride_tricks math cmath scipy.linalg scipy.special"
    " scipy.fft scipy.signal scipy.ndimage"
)
_IMPURE = _words(
    "apply_along_axis apply_over_axes copyto fill_diagonal fromfile frompyfunc fromfunction"
    " fromiter genfromtxt load loadtxt memmap nditer piecewise place put put_along_axis putmask"
    " save savetxt savez savez_compressed set_printoptions seterr vectorize errstate"
    " generic_filter generic_filter1d LowLevelCallable"
)
"""Functions of those modules that change what they are given, or more, or run other code."""
_MAKING = _words(
    "arange array asarray empty empty_like eye full full_like identity linspace ones ones_like"
    " zeros zeros_like"
)
"""Those that take little more than the memory for what they make."""
_SHARING = _words(
    "array_split as_strided asanyarray asarray ascontiguousarray atleast_1d atleast_2d"
    " broadcast_arrays broadcast_to diag diagonal expand_dims flip fliplr flipud hsplit imag"
    " moveaxis nan_to_num ravel real reshape rollaxis rot90 sliding_window_view split squeeze"
    " swapaxes transpose view vsplit"
)
"""Those whose results may lead to what they are given."""
HOLDING = _words(
    "dict enumerate frozenset iter list max min reversed set slice sorted sum tuple zip"
)
"""Builtins whose results may lead to what they are given."""
_METHODS = METHODS | _words(
    "argsort clip conjugate cumprod cumsum diagonal flatten nonzero ptp ravel repeat reshape round"
    " searchsorted squeeze swapaxes take tolist trace transpose view"
)
CHANGING = _words(
    "add append appendleft byteswap clear discard extend fill insert itemset partition pop popitem"
    " popleft put remove resize reverse setdefault setfield setflags shuffle sort update"
)
"""Methods of arrays, lists, dictionaries and sets that change what they are called on."""
_CALLING = _words("apply_along_axis apply_over_axes fromfunction frompyfunc piecewise vectorize")
_SEEING = _words("exec eval locals vars setattr delattr")
_MEASURES = ("shape", "size", "ndim", "dtype")
_OPAQUE = (
    *(ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Global, ast.Nonlocal),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Delete),
)
_LEAVING = ast.Break | ast.Continue | ast.Return | ast.Raise
_OWN = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Lambda
_COMPUTING = ast.BinOp | ast.Call | ast.Compare | ast.UnaryOp | ast.Subscript
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Same:
    """What is computed again from some statement on, a loop or the first of a block.

    Attributes
    ----------
    values : tuple of tuple of ast.expr
        Places of each expression that stays the same; of a loop, the largest ones.
    moved : tuple of ast.stmt
        Statements of a loop's body that come to the same in each iteration, in order.
    name : str
        What the statement calls the value, if that is all that it does.
    read : frozenset of str
        Names that all these are computed from.
    stored : frozenset of str
        What is stored to on the way, and is not surely an array of its own.
    runs_unknown : bool
        Whether code runs on the way that nobody knows.
    repeats : bool
        Whether it is a loop that repeats it.
    """

    values: tuple[tuple[ast.expr, ...], ...]
    read: frozenset[str]
    stored: frozenset[str]
    runs_unknown: bool
    repeats: bool
    moved: tuple[ast.stmt, ...] = ()
    name: str = ""


Place = tuple[int, int]


@lru_cache(maxsize=4)
def computed_again(source: str) -> Mapping[Place, Sequence[Same]]:
    """Return what a file computes again, by the line of a statement and the column in bytes."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return {}
    file, found = _File(tree), dict[Place, list[Same]]()
    for function in (tree, *(one for one in ast.walk(tree) if isinstance(one, Function))):
        names, taken = _Names(function, file), set[ast.AST]()
        parts = [function, *names.nodes]
        loops = [one for one in parts if isinstance(one, _Loop) and not _is_opaque(one)]
        for loop in loops:
            for same in _of_loop(loop, names, taken):
                found.setdefault((loop.lineno, loop.col_offset), []).append(same)
        for part in parts:
            for body in (getattr(part, "body", ()), getattr(part, "orelse", ())):
                if isinstance(body, list):
                    for start, same in list(_of_block(body, names, taken)):
                        found.setdefault((start.lineno, start.col_offset), []).append(same)
                        taken.update(same.values[0])
    return found


def is_work(node: ast.AST) -> bool:
    """Return whether an expression surely does more than Python does with a few numbers."""
    calls = (one.func for one in ast.walk(node) if isinstance(one, ast.Call))
    names = {ast.unparse(one).rpartition(".")[2] for one in calls} - _MAKING
    return bool(names - _PURE | names & {"sorted", "sum", "all", "any"}) or any(
        isinstance(one, ast.MatMult) for one in ast.walk(node)
    )


def is_made(node: ast.AST) -> bool:
    """Return whether an expression is an array that only is made, of numbers or of nothing."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in _MAKING


def is_of_numpy(call: ast.Call, source: str) -> bool:
    """Return whether a call is one of NumPy."""
    head = ast.unparse(call.func).partition(".")[0]
    return _imports(source).get(head, "").partition(".")[0] == "numpy"


@lru_cache(maxsize=4)
def _imports(source: str) -> Mapping[str, str]:
    return imports_of(ast.parse(source))


# --- what a piece of source reads, and may change -------------------------------------------------


@dataclass(slots=True)
class _Changes:
    """What may change: names as a whole, and only elements of others."""

    wholly: set[str] = field(default_factory=set)
    elements: set[str] = field(default_factory=set)
    unknown: bool = False


_Paths = tuple[frozenset[str], frozenset[str]]


@dataclass(frozen=True, slots=True)
class _Lost:
    """What is another thing than it was, as a whole and with elements, and what that is part of."""

    names: _Names
    wholly: _Paths
    elements: _Paths

    def has(self, *nodes: ast.AST) -> bool:
        """Return whether some pieces of source read what is."""
        for node in nodes:
            for path, measured in self.names.reads(node):
                those, heads = self.wholly if measured else self.elements
                if path in heads or not those.isdisjoint(_heads(path)):
                    return True
        return False


def _heads(path: str) -> Iterator[str]:
    """Yield a path and what it is part of."""
    while path:
        yield path
        path = path.rpartition(".")[0]


def _with_heads(paths: frozenset[str]) -> _Paths:
    return paths, frozenset(head for path in paths for head in _heads(path))


class _File:
    """What the functions of a file do.

    Attributes
    ----------
    imports : mapping of str to str
    functions : mapping of str to ast.FunctionDef
    methods : set of str
        Also properties.
    bound, again : collection of str
        Names outside of functions; those of functions that are bound again.
    making : set of str
        Functions whose results are their own, as far as they were read.
    changed : frozenset of str
        Names outside of functions that some function in there changes.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.imports = imports_of(tree)
        self.functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
        classes = (one.body for one in ast.walk(tree) if isinstance(one, ast.ClassDef))
        self.methods = {one.name for body in classes for one in body if isinstance(one, Function)}
        self.bound = frozenset(name for one in tree.body for name in assigned_names(one))
        named = [one.name for one in tree.body if isinstance(one, Function | ast.ClassDef)]
        self.again = {one for one in named if one in self.bound or named.count(one) > 1}
        self._read: dict[str, frozenset[str] | None] = {}
        self.making: set[str] = set()
        self.changed: frozenset[str] = frozenset()
        changed: set[str] = set()
        for one in ast.walk(tree):
            if isinstance(one, ast.Global | ast.Nonlocal):
                changed |= {*one.names}
            elif isinstance(one, Function):
                names = _Names(one, self)
                found = names.changes(one.body)
                changed |= {_root(one) for one in (*found.wholly, *found.elements)} - names.bound
        self.changed = frozenset(changed)

    def read_by(self, name: str, depth: int) -> frozenset[str] | None:
        """Return what else a function reads that only computes; None for any other."""
        node = self.functions.get(name)
        if node is None or name in self.again or depth > _DEEPEST:
            return None
        if name not in self._read:
            self._read[name] = None
            self._read[name] = self._found(node, depth)
        return self._read[name]

    def _found(self, node: ast.FunctionDef, depth: int) -> frozenset[str] | None:
        names = _Names(node, self, depth + 1)
        if node.decorator_list or any(_is_opaque(one) for one in node.body):
            return None
        if any(isinstance(one, ast.Lambda) for one in names.nodes):
            return None
        changes = names.changes(node.body)
        paths = (*changes.elements, *(one for one in changes.wholly if one not in names.bound))
        if changes.unknown or not all(map(names.is_own, paths)):
            return None
        others = [names.free(one) for one in names.nodes if isinstance(one, ast.Call)]
        if None in others:
            return None
        given = [one.value for one in names.nodes if isinstance(one, ast.Return)]
        if all(map(names.is_own, names.roots_of(given))):
            self.making.add(node.name)
        read = {_root(path) for one in node.body for path, _ in names.reads(one)} - names.bound
        return frozenset(read & self.bound).union(*(one for one in others if one))


class _Names:
    """What names denote in a function, or outside of all.

    Attributes
    ----------
    nodes : list of ast.AST
        Its parts without those of functions in it, outermost first.
    bound, parameters : frozenset of str
    groups : dict of str to frozenset of str
        What may share memory, by path.
    """

    def __init__(self, node: ast.Module | Function, file: _File, depth: int = 0) -> None:
        self.file, self.depth = file, depth
        self.nodes = [one for part in node.body for one in _nodes(part)]
        given = ast.walk(node.args) if isinstance(node, Function) else ()
        self.parameters = frozenset(one.arg for one in given if isinstance(one, ast.arg))
        self.bound = self.parameters.union(*map(assigned_names, node.body))
        self.loads = Counter(_loads(node))
        self.free, self.only = cache(self._free), cache(self._only)
        self._changes_of, self._parts = cache(self._changed_in), cache(self._parts_of)
        self.groups: dict[str, frozenset[str]] = {}
        self.foreign = set(self.parameters)
        stored = [name for part in node.body for name in assigned_names(part)]
        self.sorted = {
            one.targets[0].id
            for one in self.nodes
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
            if isinstance(one.value, ast.Call) and ast.unparse(one.value.func) == "sorted"
            if stored.count(one.targets[0].id) == 1
        }
        for one in self.nodes:
            match one:
                case ast.Assign(targets, value):
                    for target in targets:
                        self._join(target, value)
                case (
                    ast.AnnAssign(target, _, ast.expr() as value)
                    | ast.NamedExpr(target, value)
                    | ast.For(target, value)
                    | ast.comprehension(target, value)
                    | ast.withitem(value, ast.expr() as target)
                ):
                    self._join(target, value)
                case ast.Call() if self.free(one) is None:
                    self._relate(self.roots_of(_given(one)))

    def _join(self, target: ast.expr, value: ast.expr) -> None:
        made = self.roots(value)
        calls = (one for one in ast.walk(value) if isinstance(one, ast.Call))
        foreign = any(self.free(one) is None for one in calls) or not made <= self.bound
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        for each in parts:
            part = each.value if isinstance(each, ast.Starred) else each
            if isinstance(part, ast.Tuple | ast.List):
                self._join(part, value)
            elif not self.is_array(part):
                self._relate(made | self.roots(part))
            if isinstance(part, ast.Name) and foreign:
                self.foreign.add(part.id)

    def _relate(self, paths: frozenset[str]) -> None:
        whole = paths.union(*(self.groups.get(path, ()) for path in paths)) - {""}
        self.groups.update(dict.fromkeys(whole, whole))

    def is_own(self, path: str) -> bool:
        """Return whether a name surely leads to nothing that others know as well."""
        return self.groups.get(path, frozenset({path})) <= self.bound - self.foreign

    def imported(self, node: ast.AST) -> str:
        """Return what a name or an attribute is imported as; empty where it is not."""
        head, dot, rest = _path(node).partition(".")
        hidden = head in self.bound and head not in self.file.bound
        full = "" if hidden else self.file.imports.get(head, "")
        return f"{full}{dot}{rest}" if full else ""

    def _free(self, call: ast.Call) -> frozenset[str] | None:
        """Return what a call reads beside what it is given, if all it does is to compute."""
        words = [one.arg or "out" for one in call.keywords]
        if any(one in ("out", "key", "copy") or one.startswith("overwrite") for one in words):
            return None
        for one in call.args:
            code = isinstance(one, ast.Name) and one.id in self.file.functions
            if code or isinstance(one, ast.Starred | ast.Lambda):
                return None
        full = self.imported(call.func)
        if full:
            module, _, name = full.rpartition(".")
            return frozenset() if module in _MODULES and name not in _IMPURE else None
        match call.func:
            case ast.Name(name) if name not in self.bound:
                own = name in self.file.bound or name in self.file.functions
                known = name in _PURE and not own
                return frozenset() if known else self.file.read_by(name, self.depth)
            case ast.Attribute(_, method) if method in _METHODS - self.file.methods:
                return frozenset()
        return None

    def roots_of(self, nodes: Iterable[ast.AST | None]) -> frozenset[str]:
        """Return the paths whose memory the values of some expressions may lead to."""
        return frozenset[str]().union(*map(self.roots, nodes))

    def roots(self, node: ast.AST | None) -> frozenset[str]:
        """Return the paths whose memory the value of an expression may lead to."""
        match node:
            case ast.Name() | ast.Attribute() if path := _path(node):
                known = path in self.file.functions or bool(self.imported(node))
                return frozenset() if known or path.endswith(_MEASURES) else frozenset({path})
            case ast.Subscript(ast.Name(name), index) if name in self.sorted:
                # what can be sorted by itself is no array
                return self.roots(node.value) if isinstance(index, ast.Slice) else frozenset()
            case ast.Attribute() | ast.Subscript() | ast.Starred() | ast.NamedExpr():
                return self.roots(node.value)
            case ast.IfExp(_, body, orelse):
                return self.roots_of((body, orelse))
            case (
                ast.BoolOp(_, parts)
                | (ast.Tuple(parts) | ast.List(parts) | ast.Set(parts))
                | ast.Dict(_, parts)
            ):
                return self.roots_of(parts)
            case ast.BinOp(left, _, right):
                # of arrays it makes a new one
                return self.roots_of(
                    one for one in (left, right) if isinstance(one, ast.List | ast.ListComp)
                )
            case ast.Call(func):
                full = self.imported(func)
                name = (full or ast.unparse(func)).rpartition(".")[2]
                unknown = self.free(node) is None
                plain = isinstance(func, ast.Name) and not full
                own = self.file.functions.keys() - self.file.making
                shares = unknown or name in (HOLDING | own if plain else _SHARING)
                return self.roots_of(_given(node)) if shares else frozenset()
            case ast.expr() if isinstance(node, _OWN):
                return frozenset(path for path, _ in self.reads(node))
        return frozenset()

    def reads(self, node: ast.AST) -> Iterator[tuple[str, bool]]:
        """Yield paths that a piece of source reads, and whether only what they measure."""
        match node:
            case ast.Name(name):
                if isinstance(node.ctx, ast.Load) and not self.imported(node):
                    yield name, False
                return
            case ast.Attribute(value, attribute) if path := _path(node):
                if isinstance(node.ctx, ast.Load) and not self.imported(node):
                    measured = attribute in _MEASURES
                    # what a property tells may come from anything that its object has
                    known = takewhile(lambda one: one not in self.file.methods, path.split("."))
                    yield (_path(value), True) if measured else (".".join(known), False)
                return
            case ast.Call(ast.Name("len"), [argument]) if path := _path(argument):
                yield path, True
                return
            case ast.Call(func):
                yield from ((one, False) for one in self.free(node) or ())
                if isinstance(func, ast.Attribute) and not self.imported(func):
                    yield from self.reads(func.value)
                for part in (*node.args, *node.keywords):
                    yield from self.reads(part)
                return
        each = (one.target for one in getattr(node, "generators", ()))
        own = {part.id for one in each for part in ast.walk(one) if isinstance(part, ast.Name)}
        for part in ast.iter_child_nodes(node):
            yield from (one for one in self.reads(part) if one[0] not in own)

    def changes(self, nodes: Iterable[ast.AST]) -> _Changes:
        """Return what pieces of source may change."""
        made = _Changes()
        for one in map(self._changes_of, nodes):
            made.wholly |= one.wholly
            made.elements |= one.elements
            made.unknown |= one.unknown
        return made

    def _changed_in(self, node: ast.AST) -> _Changes:
        made = self.changes(ast.iter_child_nodes(node))
        self._changed_by(node, made)
        return made

    def _changed_by(self, one: ast.AST, made: _Changes) -> None:
        stored = not isinstance(getattr(one, "ctx", None), ast.Load)
        match one:
            case ast.Name(name) if stored:
                made.wholly.add(name)
            case ast.Attribute(value) if stored:
                path = _path(one)
                made.wholly |= {path} if path else self.roots(value)
            case ast.Subscript(value) if stored:
                made.elements |= self.roots(_whole(value))
            case ast.AugAssign(target):
                made.elements |= self.roots(_whole(target))
            case ast.Call(func) if self.free(one) is None:
                full, given = self.imported(func), self.roots_of(_given(one))
                name = full.rpartition(".")[2]
                if full.startswith("numpy.") and name not in _CALLING:
                    # it writes where it is told to
                    made.elements |= given
                elif isinstance(func, ast.Attribute) and (
                    func.attr in (CHANGING | DRAWS) - self.file.methods
                ):
                    made.wholly |= self.roots(_whole(func.value))
                elif not (isinstance(func, ast.Name) and func.id == "print"):
                    made.wholly |= given | self.file.changed
                    made.wholly |= self.bound if ast.unparse(func) in _SEEING else frozenset()
                    made.unknown = True

    def reached(self, paths: Iterable[str]) -> frozenset[str]:
        """Return paths and all that may lead to the same memory."""
        found = {*paths} - {""}
        for path in tuple(found):
            for other in (path, *(one for one in self.groups if one.startswith(f"{path}."))):
                found |= self.groups.get(other, frozenset({other}))
        return frozenset(found)

    def lost(self, changes: _Changes) -> _Lost:
        """Return what is another thing after some changes."""
        wholly = self.reached(changes.wholly)
        return _Lost(
            self, _with_heads(wholly), _with_heads(wholly | self.reached(changes.elements))
        )

    def _only(self, node: ast.AST) -> bool:
        """Return whether all that an expression does is to compute."""
        return not any(
            isinstance(one, ast.NamedExpr | ast.Lambda | ast.GeneratorExp | ast.Await | ast.Yield)
            or (isinstance(one, ast.Call) and self.free(one) is None)
            for one in ast.walk(node)
        )

    def is_array(self, target: ast.AST) -> bool:
        """Return whether what a target stores to is surely an array, which takes copies."""
        index = getattr(target, "slice", None)
        each = index.elts if isinstance(index, ast.Tuple) else [index]
        if any(isinstance(one, ast.Slice) or getattr(one, "value", 0) is ... for one in each):
            return True
        match target:
            case ast.Subscript(ast.Name(name)) if name in self.bound - self.parameters:
                made = [
                    isinstance(one.value, ast.BinOp)
                    or self.imported(getattr(one.value, "func", one.value)).startswith("numpy.")
                    for one in self.nodes
                    if isinstance(one, ast.Assign)
                    for part in one.targets
                    if not isinstance(part, ast.Subscript) and name in assigned_names(part)
                ]
                return bool(made) and all(made)
        return False

    def parts(self, node: ast.AST, sure: bool = True) -> Iterator[tuple[ast.expr, bool]]:
        """Yield what a piece of source computes, outermost first, and whether it surely does.

        Without what something gets hold of that might change it.
        """
        return ((one, certain and sure) for one, certain in self._parts(node))

    def _parts_of(self, node: ast.AST) -> list[tuple[ast.expr, bool]]:
        found: list[tuple[ast.expr, bool]] = []
        for one, certain, kept in self.flow(node, sure=True, kept=False):
            number = isinstance(getattr(one, "operand", None), ast.Constant)
            number |= not isinstance(getattr(one, "ctx", None), ast.Load | None)
            hidden = certain is None or kept or number
            if isinstance(one, _COMPUTING) and not hidden and self.only(one):
                found.append((one, certain is True))
        return found

    def flow(
        self, node: ast.AST, sure: bool | None, kept: bool
    ) -> Iterator[tuple[ast.expr, bool | None, bool]]:
        """Yield expressions outermost first, with what becomes of them.

        Yields
        ------
        ast.expr
        bool or None
            Whether it is surely computed; None where its names may be others each time.
        bool
            Whether something gets hold of its value, and might change it.
        """
        if isinstance(node, ast.expr):
            yield node, sure, kept
        inner: list[tuple[ast.AST, bool | None, bool]] = []
        perhaps = None if sure is None else False
        match node:
            case ast.BoolOp(_, [first, *others]):
                inner = [(first, sure, kept), *((one, perhaps, kept) for one in others)]
            case ast.IfExp(test, body, orelse):
                inner = [(test, sure, False), (body, perhaps, kept), (orelse, perhaps, kept)]
            case ast.Compare(left, _, [right, *others]):
                inner = [(left, sure, False), (right, sure, False)]
                inner += [(one, perhaps, False) for one in others]
            case ast.Call(func):
                held = self.free(node) is None
                given = [func.value] if isinstance(func, ast.Attribute) else []
                inner = [(one, sure, held) for one in (*given, *node.args, *node.keywords)]
            case ast.Subscript(value, index):
                own = isinstance(value, ast.Name) and not self.roots(node)
                inner = [(value, sure, kept and not own), (index, sure, False)]
            case ast.Tuple() | ast.List() | ast.Starred() | ast.keyword() | ast.Attribute():
                inner = [(one, sure, kept) for one in ast.iter_child_nodes(node)]
            case ast.Assign(targets, value):
                inner = [(value, sure, not all(map(self.is_array, targets)))]
                inner += [(one, sure, True) for one in targets]
            case ast.AugAssign(target, _, value):
                inner = [(value, sure, False), (target, sure, True)]
            case ast.If(test) | ast.While(test):
                inner = [(test, sure, False)]
            case (
                ast.Expr(value) | ast.Return(value) | ast.For(_, value) | ast.AnnAssign(value=value)
            ):
                inner = [(value, sure, True)] if value is not None else []
            case ast.expr() if isinstance(node, ast.Dict | ast.Set | _OWN):
                inner = [(one, None, True) for one in ast.iter_child_nodes(node)]
            case ast.expr() | ast.comprehension():
                inner = [(one, sure, False) for one in ast.iter_child_nodes(node)]
        for one, certain, held in inner:
            yield from self.flow(one, certain, held)


# --- loops ----------------------------------------------------------------------------------------


def _of_loop(loop: _Loop, names: _Names, taken: set[ast.AST]) -> Iterator[Same]:
    """Yield what a loop computes again, in one, but for what is taken."""
    heads = [loop.target, loop.iter] if isinstance(loop, ast.For) else [loop.test]
    certain = _certain(loop.body)
    moved = [one for one in certain if _is_movable(one, names) and one not in taken]
    while True:
        rest = [*heads, *(one for one in loop.body if one not in moved), *loop.orelse]
        changes = names.changes(rest)
        lost = names.lost(changes)
        kept = [one for one in moved if _stays(one, moved, rest, loop, lost)]
        if len(kept) == len(moved):
            break
        moved = kept
    if len(moved) == len(loop.body):
        return
    values: dict[str, tuple[ast.expr, ...]] = {}
    computed = list(names.parts(loop.test)) if isinstance(loop, ast.While) else []
    computed += [one for part in certain if part not in moved for one in _surely(part, names)]
    inside = set(taken)
    for one, sure in computed:
        if sure and one not in inside and not lost.has(one):
            inside.update(ast.walk(one))
            text = ast.unparse(one)
            values[text] = (*values.get(text, ()), one)
    found = [*moved, *(one for uses in values.values() for one in uses)]
    taken.update(part for one in found for part in ast.walk(one))
    if found:
        yield _same(values.values(), changes, names, repeats=True, moved=tuple(moved))


def _same(
    values: Iterable[tuple[ast.expr, ...]],
    changes: _Changes,
    names: _Names,
    *,
    repeats: bool,
    moved: tuple[ast.stmt, ...] = (),
    name: str = "",
) -> Same:
    uses = tuple(values)
    found = [*moved, *(one[0] for one in uses)]
    read = {_root(path) for one in found for path, _ in names.reads(one)}
    read -= {made for one in moved for made in assigned_names(one)}
    stored = frozenset(_root(one) for one in changes.elements if not names.is_own(one))
    return Same(uses, frozenset(read), stored, changes.unknown, repeats, moved, name)


def _surely(one: ast.stmt, names: _Names) -> Iterator[tuple[ast.expr, bool]]:
    """Yield what a statement computes, and what loops in it surely do where they run."""
    yield from names.parts(one)
    if isinstance(one, _Loop):
        for part in _certain(one.body):
            yield from _surely(part, names)


def _is_movable(one: ast.stmt, names: _Names) -> bool:
    match one:
        case ast.Assign([ast.Name()], value):
            return names.only(value)
        case ast.Assign([ast.Tuple(parts)], value):
            return all(isinstance(part, ast.Name) for part in parts) and names.only(value)
        case ast.Assign([ast.Subscript(ast.Name(), index)], value) | ast.AugAssign(
            ast.Subscript(ast.Name(), index), _, value
        ):
            return names.only(value) and names.only(index)
    return False


def _stays(
    one: ast.stmt,
    moved: Sequence[ast.stmt],
    rest: Sequence[ast.AST],
    loop: _Loop,
    lost: _Lost,
) -> bool:
    """Return whether a statement of a loop does the same in each iteration, before others."""
    names = lost.names
    made = {name for part in moved[: moved.index(one)] for name in assigned_names(part)}
    everywhere, loads = list(assigned_names(loop)), list(_loads(loop))
    read = {path for path, _ in names.reads(one)}
    if lost.has(one) or any(path in everywhere for path in read - made):
        return False
    # what it stores to is its own, new in each iteration
    reached = names.reached(names.changes([one]).elements)
    if not all(path in made and names.is_own(path) for path in reached):
        return False
    head = loop.test if isinstance(loop, ast.While) else loop.iter
    ahead = (head, *loop.body[: loop.body.index(one)])
    before = {path for part in ahead for path, _ in names.reads(part)}
    for name in assigned_names(one):
        use = ast.Name(name, ast.Load())
        if everywhere.count(name) > 1 or name in before or lost.has(use):
            return False
        # a loop that does not run leaves it as it was
        if names.loads[name] > loads.count(name):
            return False
        if _escapes(names.groups.get(name, frozenset({name})), rest, names):
            return False
    return True


def _escapes(group: Collection[str], rest: Sequence[ast.AST], names: _Names) -> bool:
    """Return whether what some names denote is kept by others, which might change it."""
    for one in (part for node in rest for part in ast.walk(node)):
        plain = isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
        given = one.value if isinstance(one, ast.Assign) and plain else one
        if isinstance(one, ast.stmt) and any(
            kept and isinstance(part, ast.Name) and part.id in group
            for part, _, kept in names.flow(given, True, False)
            if isinstance(getattr(part, "ctx", None), ast.Load)
        ):
            return True
    return False


# --- blocks ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Uses:
    """Where a block computes a value, as long as it stays the same.

    What changes since the first of these is `changed` as far as another one follows.
    """

    start: ast.stmt
    name: str
    places: list[ast.expr] = field(default_factory=list)
    since: list[ast.stmt] = field(default_factory=list)
    changed: list[ast.stmt] = field(default_factory=list)


def _of_block(
    body: Sequence[ast.stmt], names: _Names, taken: Collection[ast.AST]
) -> Iterator[tuple[ast.stmt, Same]]:
    """Yield what stands more than once in a block and is the same, and from which statement on."""
    known, ended = dict[str, _Uses](), list[_Uses]()
    for one in body:
        lost, compound = names.lost(names.changes([one])), hasattr(one, "body")
        if compound and (_is_opaque(one) or not isinstance(one, _Loop | ast.If)):
            ended += known.values()
            known = {}
            continue
        if compound:
            known = _kept(known, lost, one, ended)
        # what it calls may change what it computes with
        calls = (part for part in ast.walk(one) if isinstance(part, ast.Call | ast.NamedExpr))
        during = lost if compound else names.lost(names.changes(calls))
        parts = list(names.parts(one))
        bound = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
        if isinstance(one, ast.Assign) and isinstance(bound, ast.Name):
            parts.insert(0, (one.value, True))
        for inner in ast.walk(one) if compound else ():
            if isinstance(inner, ast.stmt) and inner is not one:
                parts += names.parts(inner, sure=False)
        for part, sure in parts:
            if part in taken or not isinstance(part, _COMPUTING) or not names.only(part):
                continue
            text, gone = ast.unparse(part), during.has(part)
            whole = isinstance(one, ast.Assign) and part is one.value
            if text in known and not (gone or (whole and isinstance(bound, ast.Name))):
                uses = known[text]
                uses.places.append(part)
                uses.changed = [*uses.since, *([one] if compound else [])]
            elif text not in known and sure and not gone:
                name = bound.id if whole and isinstance(bound, ast.Name) else ""
                if not name or names.is_own(name):
                    known[text] = _Uses(one, name, [part])
        for uses in known.values():
            uses.since.append(one)
        if not compound:
            known = _kept(known, lost, one, ended)
    found = [uses for uses in (*ended, *known.values()) if len(uses.places) > 1]
    inside = [{*ast.walk(part)} - {part} for uses in found for part in uses.places]
    for uses in found:
        if not all(any(part in other for other in inside) for part in uses.places):
            places, changed = [tuple(uses.places)], names.changes(uses.changed)
            yield uses.start, _same(places, changed, names, repeats=False, name=uses.name)


def _kept(
    known: Mapping[str, _Uses], lost: _Lost, one: ast.stmt, ended: list[_Uses]
) -> dict[str, _Uses]:
    """Return what a statement leaves as it is, and note the others."""
    kept: dict[str, _Uses] = {}
    for text, uses in known.items():
        held = [ast.Name(uses.name, ast.Load())] if uses.name and uses.start is not one else []
        if lost.has(uses.places[0], *held):
            ended.append(uses)
        else:
            kept[text] = uses
    return kept


def _certain(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a block that surely run where it does."""
    ends = (
        at for at, one in enumerate(body) if any(isinstance(p, _LEAVING) for p in ast.walk(one))
    )
    return list(body[: next(ends, len(body)) + 1])


def _is_opaque(node: ast.AST) -> bool:
    return any(isinstance(one, _OPAQUE) for one in ast.walk(node))


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and its parts, without those of functions and classes in it."""
    if not isinstance(node, Function | ast.ClassDef):
        yield node
        for part in ast.iter_child_nodes(node):
            yield from _nodes(part)


def _loads(node: ast.AST) -> Iterator[str]:
    names = (one for one in ast.walk(node) if isinstance(one, ast.Name))
    return (one.id for one in names if isinstance(one.ctx, ast.Load))


def _given(call: ast.Call) -> Iterator[ast.expr]:
    """Yield what a call is given, and what it is called on."""
    if isinstance(call.func, ast.Attribute):
        yield call.func.value
    yield from call.args
    yield from (one.value for one in call.keywords)


def _whole(node: ast.expr) -> ast.expr:
    """Return what an element is taken from."""
    return _whole(node.value) if isinstance(node, ast.Subscript) else node


def _path(node: ast.AST) -> str:
    """Return a name with attributes as it is written; empty for anything else."""
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(value, attribute) if attribute not in ("T", "real", "imag", "flat"):
            inner = _path(value)
            return f"{inner}.{attribute}" if inner else ""
    return ""


def _root(path: str) -> str:
    return path.partition(".")[0]
