"""What pieces of source read, and may change, by what stands there.

Of a statement that is not understood no more is asked than which names it could change: those it
binds, what it stores to, and what it gives to code that nobody knows, with all that may share
memory with these.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import takewhile

from advisor.ir.waiting import DRAWS, METHODS, assigned_names
from advisor.source import imports_of, tree_of
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
_WRITING = _words("at copyto fill_diagonal place put put_along_axis putmask")
"""Those that change what they are given, and do nothing else."""
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
ALIKE = _words("allreduce allgather")
"""Methods of mpi4py that give the same where all ranks give the same."""


@dataclass(slots=True)
class Changes:
    """What may change: names that are bound, paths as a whole, and only elements of others.

    By code that nobody knows, or even by code of the file that nobody tells which it is. Objects
    may go by other names than those that are seen: then their attributes, `fields`, are others.
    """

    bound: set[str] = field(default_factory=set)
    wholly: set[str] = field(default_factory=set)
    elements: set[str] = field(default_factory=set)
    unknown: bool = False
    strange: bool = False
    fields: set[str] = field(default_factory=set)

    def and_also(self, other: Changes) -> Changes:
        """Add what else may change."""
        self.bound |= other.bound
        self.wholly |= other.wholly
        self.elements |= other.elements
        self.unknown |= other.unknown
        self.strange |= other.strange
        self.fields |= other.fields
        return self


_Paths = tuple[frozenset[str], frozenset[str]]


@dataclass(frozen=True, slots=True)
class Lost:
    """What is another thing than it was, as a whole and with elements, and what that is part of."""

    names: Names
    changes: Changes
    wholly: _Paths
    elements: _Paths

    def has(self, *nodes: ast.AST) -> bool:
        """Return whether some pieces of source read what is."""
        for node in nodes:
            for path, measured in self.names.reads(node):
                those, heads = self.wholly if measured else self.elements
                if not self.changes.fields.isdisjoint(path.split(".")[1:]):
                    return True
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


@dataclass(frozen=True, slots=True)
class Done:
    """What a call of a function of the file does, by the names of its parameters and of the file.

    Attributes
    ----------
    computes : bool
        Whether that is all it does.
    reads : frozenset of (str, bool)
        Paths, and whether only what they measure.
    changes : Changes
    links : tuple of frozenset of str
        What may then lead to the same memory.
    given : frozenset of str
        What its result may lead to.
    """

    computes: bool
    reads: frozenset[tuple[str, bool]]
    changes: Changes
    links: tuple[frozenset[str], ...]
    given: frozenset[str]


class File:
    """What the functions of a file do.

    Attributes
    ----------
    reduces : bool
        Whether what all ranks compute together counts as computed.
    imports : mapping of str to str
    sends : bool
        Whether it imports mpi4py, and makes no operation of its own.
    functions : mapping of str to ast.FunctionDef
    classes : mapping of str to mapping of str to ast.FunctionDef
        Methods of those that inherit nothing and that nothing inherits from.
    methods : set of str
        Also properties.
    bound, again : collection of str
        Names outside of functions; those of functions that are bound again.
    changed : frozenset of str
        Names outside of functions that some function in there changes.
    """

    def __init__(self, tree: ast.Module, *, reduces: bool = False) -> None:
        self.tree, self.reduces, self.imports = tree, reduces, imports_of(tree)
        nodes = list(ast.walk(tree))
        # operations of its own run code of the file
        made = any(isinstance(one, ast.Attribute) and one.attr == "Create" for one in nodes)
        self.sends = not made and any(one.startswith("mpi4py") for one in self.imports.values())
        self.functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
        self.bound = frozenset(name for one in tree.body for name in assigned_names(one))
        named = [one.name for one in tree.body if isinstance(one, Function | ast.ClassDef)]
        self.again = {one for one in named if one in self.bound or named.count(one) > 1}
        classes = [one for one in nodes if isinstance(one, ast.ClassDef)]
        bases = {ast.unparse(base) for one in classes for base in one.bases}
        self.made = {one.name for one in classes}
        self.methods = {
            one.name for each in classes for one in each.body if isinstance(one, Function)
        }
        self.classes = {
            one.name: {part.name: part for part in one.body if isinstance(part, ast.FunctionDef)}
            for one in classes
            if one in tree.body and not one.bases and one.name not in self.again | bases
        }
        self.owners: dict[ast.AST, str] = {
            part: name
            for name, own in self.classes.items()
            for part in own.values()
            if {ast.unparse(one) for one in part.decorator_list} <= {"property"}
        }
        self._loads = Counter(_called(one) for one in nodes if _is_loaded(one))
        self.scopes: list[ast.Module | Function] = [
            tree,
            *(one for one in nodes if isinstance(one, Function)),
        ]
        self._names: dict[ast.AST, Names] = {}
        self._done: dict[ast.AST, Done | None] = {}
        self._kinds: dict[ast.AST, str] = {}
        self._aliases: dict[ast.AST, list[tuple[str, str, str]]] = {}
        self.busy: set[ast.AST] = set()
        changed = {
            name
            for one in nodes
            if isinstance(one, ast.Global | ast.Nonlocal)
            for name in one.names
        }
        self._declared = frozenset(changed)
        for one in self.scopes[1:]:
            names = self.names_of(one)
            found = names.changes(one.body)
            changed |= {root_of(one) for one in (*found.wholly, *found.elements)} - names.bound
        self.changed = frozenset(changed)

    def names_of(self, node: ast.Module | Function) -> Names:
        """Return what names denote in a function of the file."""
        if node not in self._names:
            self._names[node] = Names(node, self)
        return self._names[node]

    @cached_property
    def _calls(self) -> Mapping[str, list[tuple[ast.Call, ast.Module | Function]]]:
        """Calls by the names that are called, and the functions that they stand in."""
        found: dict[str, list[tuple[ast.Call, ast.Module | Function]]] = {}
        for scope in self.scopes:
            for one in self.names_of(scope).nodes:
                if isinstance(one, ast.Call):
                    found.setdefault(_called(one.func), []).append((one, scope))
        return found

    @cached_property
    def _stored(self) -> Mapping[str, list[tuple[ast.expr | None, ast.Module | Function]]]:
        """What is bound to attributes, by their names; None where that is not written there."""
        found: dict[str, list[tuple[ast.expr | None, ast.Module | Function]]] = {}
        for scope in self.scopes:
            for one in self.names_of(scope).nodes:
                if isinstance(one, ast.Attribute) and not isinstance(one.ctx, ast.Load):
                    value = self.names_of(scope).values.get(one)
                    found.setdefault(one.attr, []).append((value, scope))
        return found

    def kind(self, node: ast.AST, names: Names) -> str:
        """Return the class of the file that a value surely is of; empty where nobody knows."""
        match node:
            case ast.Call(ast.Name(name)) if name in self.classes and name not in names.bound:
                return name
            case ast.Name(name) if names.node in self.owners and name == names.first:
                return self.owners[names.node]
        if node not in self._kinds:
            self._kinds[node] = ""
            kinds = {
                "" if value is None else self.kind(value, self.names_of(scope))
                for value, scope in self.origins(node, names)
            }
            self._kinds[node] = kinds.pop() if len(kinds) == 1 else ""
        return self._kinds[node]

    def origins(
        self, node: ast.AST, names: Names
    ) -> list[tuple[ast.expr | None, ast.Module | Function]]:
        """Return all that a name or an attribute may have been bound to, and where."""
        match node:
            case ast.Attribute(value, attribute) if self.kind(value, names):
                return self._stored.get(attribute, [])
            case ast.Name(name) if name in names.bound or names.node is self.tree:
                if name in self._declared:
                    return []
                bound = [part for part in names.nodes if _binds(part, name)]
                found = [(names.values.get(part), names.node) for part in bound]
                if name not in names.parameters:
                    return found
                return [*found, *self._sites(names.node, name)]
            case ast.Name():
                return self.origins(node, self.names_of(self.tree))
        return []

    def _sites(
        self, node: ast.AST, name: str
    ) -> Iterator[tuple[ast.expr | None, ast.Module | Function]]:
        """Yield what calls in the file give to a parameter."""
        calls = self.calls_of(node)
        known = isinstance(node, ast.FunctionDef) and len(calls) == self._loads[node.name]
        if not calls or not (known or getattr(node, "name", "") == "__init__"):
            # others may call it
            yield None, self.tree
        for call, scope in calls:
            assert isinstance(node, ast.FunctionDef)
            given = _arguments_of(node, call, node in self.owners)
            yield None if given is None else given.get(name), scope

    def calls_of(self, node: ast.AST) -> Sequence[tuple[ast.Call, ast.Module | Function]]:
        """Return what may be calls of a function, and where they stand; none if nothing tells."""
        owner = self.owners.get(node, "")
        if not isinstance(node, ast.FunctionDef):
            return ()
        own = bool(owner) or self.functions.get(node.name) is node
        called = owner if node.name == "__init__" else node.name
        return self._calls.get(called, ()) if own else ()

    def called(
        self, call: ast.Call, names: Names
    ) -> tuple[ast.FunctionDef, Mapping[str, ast.expr]] | None:
        """Return the function of the file that is surely called, and what its parameters are."""
        func = call.func
        if isinstance(func, ast.Name) and func.id in self.functions and func.id not in names.bound:
            node, owner = self.functions[func.id], ""
            if func.id in self.again:
                return None
        elif isinstance(func, ast.Name) and func.id in self.classes.keys() - names.bound:
            made = self.classes[func.id].get("__init__")
            given = None if made is None else _arguments_of(made, call, bound=True)
            if made is None or given is None:
                return None
            return made, {**given, self.names_of(made).first: ast.Dict([], [])}
        else:
            method = func.attr if isinstance(func, ast.Attribute) else "__call__"
            if method not in self.methods or method in self._stored:
                return None
            owner = self.kind(func.value if isinstance(func, ast.Attribute) else func, names)
            if method not in self.classes.get(owner, {}):
                return None
            node = self.classes[owner][method]
        given = _arguments_of(node, call, bool(owner))
        return None if given is None else (node, given)

    def may_hold(self, func: ast.expr, names: Names) -> bool:
        """Return whether what is called may be code of the file."""
        match func:
            case ast.Name(name) if name in self.classes.keys() - names.bound:
                return not {"__init__", "__post_init__"}.isdisjoint(self.classes[name])
            case ast.Name(name):
                own = names.bound | self.bound | self.functions.keys()
                return name in own or name in self.again or name in self.made
            case ast.Attribute(_, name):
                return name in self.methods or name in self._stored
        return True

    @cached_property
    def fields(self) -> Mapping[str, frozenset[str]]:
        """Attributes that may lead to the same memory as others."""
        found: dict[str, frozenset[str]] = {}
        for names in map(self.names_of, self.scopes):
            for group in names.groups.values():
                related = frozenset(one.rpartition(".")[2] for one in group if "." in one)
                whole = related.union(*(found.get(one, ()) for one in related))
                found.update(dict.fromkeys(whole, whole))
        return found

    def aliases(self, node: ast.Module | Function) -> Sequence[tuple[str, str, str]]:
        """Return which parameters may lead to the same memory, in some call in the file.

        And which attribute the second is there, if it is one.
        """
        if node not in self._aliases:
            self._aliases[node] = found = []
            for call, scope in self.calls_of(node):
                names, target = self.names_of(scope), self.called(call, self.names_of(scope))
                given = target[1] if target and target[0] is node else {}
                reached = {name: names.reached(names.roots(one)) for name, one in given.items()}
                wholes = {
                    name: frozenset(head for path in paths for head in _heads(path))
                    for name, paths in reached.items()
                }
                found += [
                    (one, other, path_of(given[other]).partition(".")[2].rpartition(".")[2])
                    for one in reached
                    for other in reached.keys() - {one}
                    if not wholes[one].isdisjoint(reached[other])
                    or not wholes[other].isdisjoint(reached[one])
                ]
        return self._aliases[node]

    def done(self, node: ast.FunctionDef) -> Done | None:
        """Return what a function does; None where nobody knows."""
        if node in self.busy:
            return None
        if node not in self._done:
            self.busy.add(node)
            self._done[node] = self._found(node)
            self.busy.remove(node)
        return self._done[node]

    def _found(self, node: ast.FunctionDef) -> Done | None:
        names = self.names_of(node)
        if node.decorator_list or any(is_opaque(one) for one in node.body):
            return None
        seen = names.parameters | (self.bound - names.bound)

        def outer(paths: Iterable[str]) -> frozenset[str]:
            return frozenset(one for one in names.reached(paths) if root_of(one) in seen)

        changes = names.changes(node.body)
        own = all(map(names.is_own, (*changes.wholly, *changes.elements)))
        calls = [one for one in names.nodes if isinstance(one, ast.Call)]
        computes = own and not changes.unknown and all(map(names.is_quiet, calls))
        computes &= not any(isinstance(one, ast.Lambda) for one in names.nodes)
        made = Changes(set(), {*outer(changes.wholly)}, {*outer(changes.elements)})
        hidden = (one for one in (*changes.wholly, *changes.elements) if not names.is_own(one))
        made.unknown = changes.unknown or not all(map(outer, ((one,) for one in hidden)))
        made.strange = changes.strange
        given = names.roots_of(one.value for one in names.nodes if isinstance(one, ast.Return))
        leads = frozenset() if all(map(names.is_own, given)) else outer(given) or names.parameters
        read = (one for part in node.body for one in names.reads(part))
        links = {outer(one) for one in names.groups.values()}
        if node.name == "__init__":
            kept = (one for one in links if names.first in map(root_of, one))
            leads = frozenset[str]().union(*kept)
        return Done(
            computes,
            frozenset(one for one in read if root_of(one[0]) in seen),
            made,
            tuple(one for one in links if len(one) > 1),
            leads,
        )


@lru_cache(maxsize=4)
def file_of(source: str, *, reduces: bool = False) -> File:
    """Return what the functions of a file do; of none where it does not parse."""
    return File(tree_of(source), reduces=reduces)


def names_around(source: str, line: int) -> Names:
    """Return what names denote in a line of a file."""
    file = file_of(source)
    around = (one for one in file.scopes[1:] if isinstance(one, Function))
    inside = (one for one in around if one.lineno <= line <= (one.end_lineno or 0))
    return file.names_of(max(inside, key=lambda one: one.lineno, default=file.tree))


class Names:
    """What names denote in a function, or outside of all.

    Attributes
    ----------
    nodes : list of ast.AST
        Its parts without those of functions in it, outermost first.
    bound, parameters : frozenset of str
    turns : frozenset of str
        What comprehensions go through.
    first : str
        Its first parameter, where nothing binds that again.
    values : dict of ast.AST to ast.expr
        What is bound to names and attributes, one by one.
    groups : dict of str to frozenset of str
        What may share memory, by path.
    """

    def __init__(self, node: ast.Module | Function, file: File) -> None:
        self.node, self.file = node, file
        self.nodes = [one for part in node.body for one in _nodes(part)]
        given = ast.walk(node.args) if isinstance(node, Function) else ()
        names = [one.arg for one in given if isinstance(one, ast.arg)]
        self.parameters = frozenset(names)
        self.values: dict[ast.AST, ast.expr] = {
            target: value
            for one in self.nodes
            if isinstance(one, ast.Assign)
            for each in one.targets
            for target, value in _paired(each, one.value)
        }
        self.first = next(iter(names), "")
        if any(_binds(one, self.first) for one in self.nodes):
            self.first = ""
        self.bound = self.parameters.union(*map(assigned_names, node.body))
        gone = (one for one in self.nodes if isinstance(one, ast.comprehension))
        self.turns = frozenset(name for one in gone for name in assigned_names(one.target))
        self.turns -= self.bound
        self.loads = Counter(loads_in(node))
        self.free, self.only, self.known = cache(self._free), cache(self._only), cache(self._known)
        self._changes_of, self._parts = cache(self._changed_in), cache(self._parts_of)
        self.foreign = set(self.parameters)
        stored = [name for part in node.body for name in assigned_names(part)]
        self.constants = frozenset(
            one.id
            for one, value in self.values.items()
            if isinstance(one, ast.Name) and isinstance(value, ast.Constant)
            if stored.count(one.id) == 1 and one.id not in self.parameters
        )
        self.sorted = {
            one.targets[0].id
            for one in self.nodes
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
            if isinstance(one.value, ast.Call) and ast.unparse(one.value.func) == "sorted"
            if stored.count(one.targets[0].id) == 1
        }

    @cached_property
    def groups(self) -> dict[str, frozenset[str]]:
        """What may share memory, by path."""
        # one that calls itself is not known while it is read
        self.groups, busy = {}, self.node in self.file.busy
        self.file.busy.add(self.node)
        self._relate_all()
        if not busy:
            self.file.busy.remove(self.node)
        return self.groups

    def _relate_all(self) -> None:
        for one in self.nodes:
            match one:
                case ast.Assign(targets, whole):
                    for target, value in (pair for to in targets for pair in _paired(to, whole)):
                        self._join(target, value)
                case (
                    ast.AnnAssign(target, _, ast.expr() as value)
                    | ast.NamedExpr(target, value)
                    | ast.For(target, value)
                    | ast.comprehension(target, value)
                    | ast.withitem(value, ast.expr() as target)
                ):
                    self._join(target, value)
                case ast.Call() if not (self.free(one) or self._sends(one) or self._draws(one)):
                    done, given = self.known(one) or (None, {})
                    if done is None:
                        self._relate(self.roots_of(_given(one)))
                    for link in done.links if done else ():
                        self._relate(self._passed(link, given))

    def _join(self, target: ast.expr, value: ast.expr) -> None:
        made = self.roots(value)
        calls = (one for one in ast.walk(value) if isinstance(one, ast.Call))
        foreign = (
            not all(self.free(one) or self._draws(one) for one in calls) or not made <= self.bound
        )
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
        group = self.groups.get(path, frozenset({path}))
        return group - self.turns <= self.bound - self.foreign

    def is_quiet(self, call: ast.Call) -> bool:
        """Return whether a call does no more than to compute, or to change what is its own."""
        if self.free(call):
            return True
        full, method = self.imported(call.func), getattr(call.func, "attr", "")
        writes = full.startswith("numpy.") and method in _WRITING
        given = list(_given(call)) if writes else []
        if isinstance(call.func, ast.Attribute) and not full:
            given = [call.func.value] if method in CHANGING - self.file.methods else []
        return bool(given) and all(map(self.is_own, self.roots_of(given)))

    def imported(self, node: ast.AST) -> str:
        """Return what a name or an attribute is imported as; empty where it is not."""
        if isinstance(node, ast.Attribute) and not path_of(node):
            whole = self.imported(node.value)
            return f"{whole}.{node.attr}" if whole else ""
        head, dot, rest = path_of(node).partition(".")
        hidden = head in self.bound and head not in self.file.bound
        full = "" if hidden else self.file.imports.get(head, "")
        return f"{full}{dot}{rest}" if full else ""

    def _known(self, call: ast.Call) -> tuple[Done, Mapping[str, ast.expr]] | None:
        """Return what a call of a function of the file does, and what its parameters are."""
        found = self.file.called(call, self)
        done = None if found is None else self.file.done(found[0])
        if found is None or done is None:
            return None
        node, given = found
        changed = {*done.changes.wholly, *done.changes.elements, *done.given}
        if any(isinstance(given.get(root_of(one)), ast.Constant) for one in changed):
            return None
        used = {root_of(one) for one in (*changed, *(path for path, _ in done.reads))}
        # where a name of the file is another one, nobody can tell
        hidden = frozenset() if self.node is self.file.tree else self.bound
        return None if (used - self.file.names_of(node).parameters) & hidden else (done, given)

    def _passed(self, paths: Iterable[str], given: Mapping[str, ast.expr]) -> frozenset[str]:
        """Return what paths of a function of the file are where it is called."""
        found = set[str]()
        for path in paths:
            root, dot, rest = path.partition(".")
            roots = self.roots(given[root]) if root in given else {root}
            plain = path_of(given[root]) if root in given else root
            found |= {f"{plain}{dot}{rest}"} if plain in roots else roots
        return frozenset(found)

    def hidden(self, call: ast.Call) -> frozenset[str]:
        """Return what is read by a function of the file, beside its arguments as they stand."""
        done, given = self.known(call) or (None, {})
        read = done.reads if done else ()
        paths = (path for path, measured in read if not measured)
        inner = (one for one in paths if "." in one or one not in given)
        return frozenset(map(self._told_by, self._passed(inner, given)))

    def _free(self, call: ast.Call) -> bool:
        """Return whether all that a call does is to compute."""
        words = [one.arg or "out" for one in call.keywords]
        if any(one in ("out", "key", "copy") or one.startswith("overwrite") for one in words):
            return False
        for one in call.args:
            code = isinstance(one, ast.Name) and one.id in self.file.functions
            if code or isinstance(one, ast.Starred | ast.Lambda):
                return False
        full = self.imported(call.func)
        if full:
            module, _, name = full.rpartition(".")
            return module in _MODULES and name not in _IMPURE
        if known := self.known(call):
            return known[0].computes
        match call.func:
            case ast.Name(name) if name not in self.bound | self.file.bound:
                return name in PURE and name not in self.file.functions
            case ast.Attribute(_, method):
                alike = self.file.reduces and method in ALIKE and self._sends(call)
                return alike or method in _METHODS - self.file.methods
        return False

    def _sends(self, call: ast.Call) -> bool:
        """Return whether a call sends and receives what it is given, and does nothing else."""
        name = getattr(call.func, "attr", "")
        return self.file.sends and name.lower() in _MESSAGES and name not in self.file.methods

    def _draws(self, call: ast.Call) -> bool:
        """Return whether a call draws random numbers: it keeps and gives nothing else."""
        name = getattr(call.func, "attr", "")
        return name in DRAWS - self.file.methods and not self.imported(call.func)

    def roots_of(self, nodes: Iterable[ast.AST | None]) -> frozenset[str]:
        """Return the paths whose memory the values of some expressions may lead to."""
        return frozenset[str]().union(*map(self.roots, nodes))

    def roots(self, node: ast.AST | None) -> frozenset[str]:
        """Return the paths whose memory the value of an expression may lead to."""
        match node:
            case ast.Name() | ast.Attribute() if path := path_of(node):
                plain = path in self.constants or path in self.file.functions
                plain |= bool(self.imported(node))
                return frozenset() if plain or path.endswith(_MEASURES) else frozenset({path})
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
                if known := self.known(node):
                    return self._passed(known[0].given, known[1])
                if self._sends(node):
                    # the root is given what it sends
                    return self.roots_of(_arguments(node)) if name.islower() else frozenset()
                builtin = isinstance(func, ast.Name) and not full
                if self._draws(node):
                    return frozenset()
                shares = not self.free(node) or name in (HOLDING if builtin else _SHARING)
                return self.roots_of(_given(node)) if shares else frozenset()
            case ast.ListComp(value) | ast.SetComp(value):
                return self.roots(value)
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
            case ast.Attribute(value, attribute) if path := path_of(node):
                if isinstance(node.ctx, ast.Load) and not self.imported(node):
                    measured = attribute in _MEASURES
                    yield (path_of(value), True) if measured else (self._told_by(path), False)
                return
            case ast.Call(ast.Name("len"), [argument]) if path := path_of(argument):
                yield path, True
                return
            case ast.Call() if (known := self.known(node)) and known[0].computes:
                given = known[1]
                for path, measured in known[0].reads:
                    for one in self._passed([path], given):
                        yield self._told_by(one), measured
                for value in given.values():
                    if not path_of(value):
                        yield from self.reads(value)
                return
            case ast.Call(func):
                if isinstance(func, ast.Attribute) and not self.imported(func):
                    yield from self.reads(func.value)
                for part in (*node.args, *node.keywords):
                    yield from self.reads(part)
                return
        each = (one.target for one in getattr(node, "generators", ()))
        own = {part.id for one in each for part in ast.walk(one) if isinstance(part, ast.Name)}
        for part in ast.iter_child_nodes(node):
            yield from (one for one in self.reads(part) if one[0] not in own)

    def _told_by(self, path: str) -> str:
        """Return a path as far as it is no property, which may tell of anything in its object."""
        return ".".join(takewhile(lambda one: one not in self.file.methods, path.split(".")))

    def changes(self, nodes: Iterable[ast.AST]) -> Changes:
        """Return what pieces of source may change."""
        made = Changes()
        for one in map(self._changes_of, nodes):
            made.and_also(one)
        return made

    def _changed_in(self, node: ast.AST) -> Changes:
        made = self.changes(ast.iter_child_nodes(node))
        self._changed_by(node, made)
        return made

    def _changed_by(self, one: ast.AST, made: Changes) -> None:
        stored = not isinstance(getattr(one, "ctx", None), ast.Load)
        match one:
            case ast.Name(name) if stored:
                made.bound.add(name)
            case ast.Attribute(value) if stored:
                path = path_of(one)
                made.wholly |= {path} if path else self.roots(value)
            case ast.Subscript(value) if stored:
                made.elements |= self.roots(_whole(value))
            case ast.AugAssign(target):
                made.elements |= self.roots(_whole(target))
            case ast.Call() if (known := self.known(one)) and not known[0].computes:
                done, passed = known
                made.wholly |= self._passed(done.changes.wholly, passed)
                made.elements |= self._passed(done.changes.elements, passed)
                made.unknown |= done.changes.unknown
                made.strange |= done.changes.strange
            case ast.Call(func) if not self.free(one):
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
                    made.wholly |= given
                    made.wholly |= self.bound if ast.unparse(func) in _SEEING else frozenset()
                    made.unknown = True
                    made.strange |= not full and self.file.may_hold(func, self)

    def reached(self, paths: Iterable[str]) -> frozenset[str]:
        """Return paths and all that may lead to the same memory."""
        found, spread = set[str](), set[frozenset[str]]()
        exact = [(one, one) for one in paths if one]
        # what is part of it, or it is part of, may lead elsewhere by other names
        pending = [*((one, head) for one, _ in exact for head in _heads(one)), *exact]
        while pending:
            path, other = pending.pop()
            found.add(path)
            inner = [one for one in self.groups if one.startswith(f"{path}.") and path == other]
            for group in (self.groups.get(one, frozenset()) for one in (other, *inner)):
                if group not in spread:
                    spread.add(group)
                    new = group - {other}
                    pending = [(one, head) for one in new for head in _heads(one)] + pending
        return frozenset(found)

    def lost(self, changes: Changes, others: Changes | None = None) -> Lost:
        """Return what is another thing after some changes, and others of its callers."""
        found = Changes().and_also(changes).and_also(others or Changes())
        found.wholly |= self.file.changed if found.unknown else frozenset()
        reached = self.reached(found.wholly | found.elements)
        ends = (one.rpartition(".")[2] for one in reached if "." in one)
        found.fields |= {part for one in ends for part in self.file.fields.get(one, {one})}
        # what its callers tell of is told by all names
        own = self.reached(changes.wholly | changes.elements)
        for one, other, last in self.file.aliases(self.node):
            parts = [path for path in own if root_of(path) == one]
            if one in parts or (parts and (not last or last in found.fields)):
                found.wholly.add(other)
        wholly = self.reached(found.bound | found.wholly)
        every = wholly | self.reached(found.elements)
        return Lost(self, found, _with_heads(wholly), _with_heads(every))

    def _only(self, node: ast.AST) -> bool:
        """Return whether all that an expression does is to compute."""
        return not any(
            isinstance(one, ast.NamedExpr | ast.Lambda | ast.GeneratorExp | ast.Await | ast.Yield)
            or (isinstance(one, ast.Call) and not self.free(one))
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
                held = not (self.free(node) or self._sends(node))
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


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield a target with what it is bound to, or each of several."""
    match target, value:
        case ast.Tuple(parts), ast.Tuple(values) if len(parts) == len(values):
            for part, one in zip(parts, values, strict=True):
                yield from _paired(part, one)
        case ast.Tuple(parts), _:
            for at, part in enumerate(parts):
                yield part, ast.Subscript(value, ast.Constant(at), ast.Load())
        case _:
            yield target, value


def _called(func: ast.AST) -> str:
    """Return the name by which something is called."""
    return getattr(func, "attr", getattr(func, "id", ""))


def _is_loaded(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)


def _binds(node: ast.AST, name: str) -> bool:
    """Return whether a node is a name that is bound there."""
    return isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)


def _arguments_of(node: ast.FunctionDef, call: ast.Call, bound: bool) -> dict[str, ast.expr] | None:
    """Return what a call gives to parameters, a constant for defaults; None where it is unknown."""
    first = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    given = [*([first] if bound else []), *call.args]
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
    many = node.args.vararg or node.args.kwarg or len(given) > len(names)
    if many or any(isinstance(one, ast.Starred) for one in given):
        return None
    if not all(one.arg for one in call.keywords):
        return None
    found: dict[str, ast.expr] = {
        one.arg: ast.Constant(None) for one in (*node.args.posonlyargs, *node.args.args)
    }
    found |= {one.arg: ast.Constant(None) for one in node.args.kwonlyargs}
    found |= zip(names, given, strict=False)
    return found | {one.arg: one.value for one in call.keywords if one.arg}


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


def path_of(node: ast.AST) -> str:
    """Return a name with attributes as it is written; empty for anything else."""
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(value, attribute) if attribute not in ("T", "real", "imag", "flat"):
            inner = path_of(value)
            return f"{inner}.{attribute}" if inner else ""
    return ""


def root_of(path: str) -> str:
    """Return the name that a path begins with."""
    return path.partition(".")[0]
