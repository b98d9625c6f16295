"""What pieces of source read, and may change, by what stands there.

Of a statement that is not understood no more is asked than which names it could change: those it
binds, what it stores to, and what it gives to code that nobody knows, with all that may share
memory with these.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import takewhile

from advisor.ir.waiting import DRAWS, METHODS, assigned_names
from advisor.source import imports_of
from costdb.records import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.While


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PURE = _words(
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
MAKING = _words(
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
_MESSAGES = _words(
    "send ssend bsend rsend recv sendrecv bcast reduce allreduce scan exscan gather gatherv scatter"
    " scatterv allgather allgatherv alltoall alltoallv alltoallw reduce_scatter barrier get_rank"
    " get_size"
)
"""Methods of mpi4py that have done all they do when they return, in lower case."""
_SEEING = _words("exec eval locals vars setattr delattr")
_MEASURES = ("shape", "size", "ndim", "dtype")
_OPAQUE = (
    *(ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Global, ast.Nonlocal),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Delete),
)
LEAVING = ast.Break | ast.Continue | ast.Return | ast.Raise
_OWN = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Lambda
COMPUTING = ast.BinOp | ast.Call | ast.Compare | ast.UnaryOp | ast.Subscript
_DEEPEST = 4


@dataclass(slots=True)
class Changes:
    """What may change: names as a whole, and only elements of others."""

    wholly: set[str] = field(default_factory=set)
    elements: set[str] = field(default_factory=set)
    unknown: bool = False


_Paths = tuple[frozenset[str], frozenset[str]]


@dataclass(frozen=True, slots=True)
class Lost:
    """What is another thing than it was, as a whole and with elements, and what that is part of."""

    names: Names
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


class File:
    """What the functions of a file do.

    Attributes
    ----------
    imports : mapping of str to str
    sends : bool
        Whether it imports mpi4py, and makes no operation of its own.
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
        # operations of its own run code of the file
        attributes = (one for one in ast.walk(tree) if isinstance(one, ast.Attribute))
        made = any(one.attr == "Create" for one in attributes)
        self.sends = not made and any(one.startswith("mpi4py") for one in self.imports.values())
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
                names = Names(one, self)
                found = names.changes(one.body)
                changed |= {root_of(one) for one in (*found.wholly, *found.elements)} - names.bound
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
        names = Names(node, self, depth + 1)
        if node.decorator_list or any(is_opaque(one) for one in node.body):
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
        read = {root_of(path) for one in node.body for path, _ in names.reads(one)} - names.bound
        return frozenset(read & self.bound).union(*(one for one in others if one))


class Names:
    """What names denote in a function, or outside of all.

    Attributes
    ----------
    nodes : list of ast.AST
        Its parts without those of functions in it, outermost first.
    bound, parameters : frozenset of str
    groups : dict of str to frozenset of str
        What may share memory, by path.
    """

    def __init__(self, node: ast.Module | Function, file: File, depth: int = 0) -> None:
        self.file, self.depth = file, depth
        self.nodes = [one for part in node.body for one in _nodes(part)]
        given = ast.walk(node.args) if isinstance(node, Function) else ()
        self.parameters = frozenset(one.arg for one in given if isinstance(one, ast.arg))
        self.bound = self.parameters.union(*map(assigned_names, node.body))
        self.loads = Counter(loads_in(node))
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
                case ast.Call() if self.free(one) is None and not self._sends(one):
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
                known = name in PURE and not own
                return frozenset() if known else self.file.read_by(name, self.depth)
            case ast.Attribute(_, method) if method in _METHODS - self.file.methods:
                return frozenset()
        return None

    def _sends(self, call: ast.Call) -> bool:
        """Return whether a call sends and receives what it is given, and does nothing else."""
        name = getattr(call.func, "attr", "")
        return self.file.sends and name.lower() in _MESSAGES and name not in self.file.methods

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
                if unknown and self._sends(node):
                    # the root is given what it sends
                    return self.roots_of(_arguments(node)) if name.islower() else frozenset()
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

    def changes(self, nodes: Iterable[ast.AST]) -> Changes:
        """Return what pieces of source may change."""
        made = Changes()
        for one in map(self._changes_of, nodes):
            made.wholly |= one.wholly
            made.elements |= one.elements
            made.unknown |= one.unknown
        return made

    def _changed_in(self, node: ast.AST) -> Changes:
        made = self.changes(ast.iter_child_nodes(node))
        self._changed_by(node, made)
        return made

    def _changed_by(self, one: ast.AST, made: Changes) -> None:
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
                elif self._sends(one):
                    named = ast.unparse(func).rpartition(".")[2]
                    made.elements |= self.roots_of(() if named.islower() else _arguments(one))
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

    def lost(self, changes: Changes) -> Lost:
        """Return what is another thing after some changes."""
        wholly = self.reached(changes.wholly)
        return Lost(self, _with_heads(wholly), _with_heads(wholly | self.reached(changes.elements)))

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
            if isinstance(one, COMPUTING) and not hidden and self.only(one):
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
                held = self.free(node) is None and not self._sends(node)
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


def is_opaque(node: ast.AST) -> bool:
    """Return whether a statement holds what nobody follows: definitions, generators, globals."""
    return any(isinstance(one, _OPAQUE) for one in ast.walk(node))


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and its parts, without those of functions and classes in it."""
    if not isinstance(node, Function | ast.ClassDef):
        yield node
        for part in ast.iter_child_nodes(node):
            yield from _nodes(part)


def loads_in(node: ast.AST) -> Iterator[str]:
    """Return the names that a piece of source reads, each as often as it does."""
    names = (one for one in ast.walk(node) if isinstance(one, ast.Name))
    return (one.id for one in names if isinstance(one.ctx, ast.Load))


def _given(call: ast.Call) -> Iterator[ast.expr]:
    """Yield what a call is given, and what it is called on."""
    if isinstance(call.func, ast.Attribute):
        yield call.func.value
    yield from _arguments(call)


def _arguments(call: ast.Call) -> tuple[ast.expr, ...]:
    return (*call.args, *(one.value for one in call.keywords))


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


def root_of(path: str) -> str:
    """Return the name that a path begins with."""
    return path.partition(".")[0]
