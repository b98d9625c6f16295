"""What pieces of source read, and may change, by what stands there.

Of a statement that is not understood no more is asked than which names it could change: those it
binds, what it stores to, and what it gives to code that nobody knows, with all that may share
memory with these.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache, cached_property
from itertools import takewhile
from typing import Protocol

from advisor.ir.effects import (
    ALIKE,
    ASKED,
    BUILTINS,
    HOLDERS,
    HOLDING,
    KINDS,
    MADE_KINDS,
    MAKERS,
    MESSAGES,
    OBJECT,
    OF_NUMBERS,
    SHARING,
    WRITING,
    Deed,
    of_builtin,
    of_library,
    of_method,
)
from advisor.numpy_table import as_numpy
from advisor.source import COMPREHENSION, assigned_names, each_of, every, names_in, walked
from costdb.records import dataclass, field, grouped, only

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.While


_SEEING = frozenset({"exec", "eval", "locals", "vars", "setattr", "delattr"})
_MEASURES = ("shape", "size", "ndim", "dtype")
_GOING_ON = ast.Yield | ast.YieldFrom | ast.Await | ast.AsyncFor | ast.AsyncWith
_OPAQUE = _GOING_ON | ast.Global | ast.Nonlocal | Function | ast.ClassDef | ast.Delete
OWN = COMPREHENSION | ast.Lambda
_OPERATIONS = ast.BinOp | ast.Compare | ast.BoolOp | ast.AugAssign
_SILENT = (ast.expr_context, ast.operator, ast.cmpop, ast.Constant)
_OBEYING = _GOING_ON | ast.Match


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
                if path in heads or not those.isdisjoint(heads_of(path)):
                    return True
        return False


def heads_of(path: str) -> Iterator[str]:
    """Yield a path and what it is part of."""
    while path:
        yield path
        path = path.rpartition(".")[0]


def _with_heads(paths: frozenset[str]) -> _Paths:
    return paths, frozenset(head for path in paths for head in heads_of(path))


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


class Around(Protocol):
    """The file that names stand in: what is bound in it, and what its functions do."""

    tree: ast.Module
    reduces: bool
    sends: bool
    imports: dict[str, str]
    functions: dict[str, ast.FunctionDef]
    bound: frozenset[str]
    named: set[str]
    methods: set[str]
    plain: set[str]
    inner: set[str]
    generators: set[str]
    acting: set[str]
    busy: set[ast.AST]
    scopes: list[ast.Module | Function]
    names_of: Callable[[ast.AST], Names]

    @property
    def changed(self) -> frozenset[str]:
        """Names outside of functions that some function in there changes."""

    @property
    def fields(self) -> Mapping[str, frozenset[str]]:
        """Attributes that may lead to the memory of others, by name."""

    def kind(self, node: ast.AST, names: Names) -> str:
        """Return the class of the file that a value surely is of."""

    def called(
        self, call: ast.Call, names: Names
    ) -> tuple[ast.FunctionDef, Mapping[str, ast.expr]] | None:
        """Return the function of the file that a call surely calls, and what it is given."""

    def done(self, node: ast.FunctionDef) -> Done | None:
        """Return what a call of a function does; None where nobody knows."""

    def may_hold(self, func: ast.expr, names: Names) -> bool:
        """Return whether what is called may be a function that the file keeps somewhere."""

    def aliases(self, node: ast.Module | Function) -> Sequence[tuple[str, str, str]]:
        """Return which names of a function may lead to the same memory."""


class Names:
    """What names denote in a function, or outside of all.

    Attributes
    ----------
    nodes : list of ast.AST
        Its parts without those of functions in it, outermost first.
    bound, parameters : frozenset of str
    captured : frozenset of str
        Those that functions in it use.
    turns : frozenset of str
        What comprehensions go through.
    inner : dict of str to ast.FunctionDef
        Functions in it.
    first : str
        Its first parameter, where nothing binds that again.
    binding : dict of str to list of ast.AST
        Where names are bound.
    values : dict of ast.AST to ast.expr
        What is bound to names and attributes, one by one.
    once : dict of str to ast.expr
        What names stand for that are bound once.
    groups : dict of str to frozenset of str
        What may share memory, by path.
    parts : dict of ast.AST to list of (ast.expr, bool)
        What statements compute, once somebody asks.
    """

    def __init__(self, node: ast.Module | Function, file: Around) -> None:
        self.node, self.file = node, file
        self.nodes = [one for part in node.body for one in _nodes(part)]
        given = every(ast.arg, node.args) if isinstance(node, Function) else ()
        names = [one.arg for one in given]
        self.parameters = frozenset(names)
        bound = (x for x in only(ast.Name, self.nodes) if not isinstance(x.ctx, ast.Load))
        self.binding = grouped((one.id, one) for one in bound)
        self.values: dict[ast.AST, ast.expr] = {
            target: value
            for one in only(ast.Assign, self.nodes)
            for each in one.targets
            for target, value in _paired(each, one.value)
        }
        own = node.body if isinstance(node, Function) else []
        inner = [*every(Function | ast.ClassDef, *own)]
        self.stored = Counter(name for part in node.body for name in assigned_names(part))
        self.stored.update(self.parameters)
        self.bound = frozenset(self.stored)
        self.first = next((one for one in names[:1] if self.stored[one] == 1), "")
        self.captured = self.bound & {name for one in inner for name in names_in(one)}
        self.bound |= {one.name for one in inner}
        times = Counter(one.name for one in inner)
        self.inner = {
            one.name: one
            for one in only(ast.FunctionDef, node.body)
            if times[one.name] == 1 > self.stored[one.name]
        }
        gone = (one.target for one in only(ast.comprehension, self.nodes))
        self.turns = frozenset(name for one in gone for name in assigned_names(one)) - self.bound
        self.loads = Counter(names_in(node))
        self.parts: dict[ast.AST, list[tuple[ast.expr, bool]]] = {}
        self._told_of: Callable[[str], str] = lambda path: self.kinds.get(path, "")
        self.unknown, self.named = "", frozenset[str]()
        self.forget()
        self.foreign = set(self.parameters)
        self.once = {
            one.id: value
            for one, value in self.values.items()
            if isinstance(one, ast.Name) and self.stored[one.id] == 1
        }

    def forget(self) -> None:
        """Forget what was found of pieces of source: names may be something else by now."""
        self.free, self.only, self.known = cache(self._free), cache(self._only), cache(self._known)
        self._changes_of = cache(self._changed_in)
        self.deed, self.roots = cache(self._deed), cache(self._roots)

    def seen(
        self, kind_of: Callable[[str], str], named: Collection[str] = (), unknown: str = OBJECT
    ) -> Names:
        """Return the same names where something tells what kinds of objects they denote.

        What is `named` are attributes that are as good as names.
        """
        made = copy(self)
        made._told_of, made.unknown, made.named = kind_of, unknown, frozenset(named)
        made.forget()
        return made

    # --- what is what -----------------------------------------------------------------------------

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Kinds of what names and attributes may be bound to: what holds others, or runs."""
        # one that is made of itself is not known while it is read
        self.kinds = {}
        for target, value in self.values.items():
            kind, path = self.kind(value), path_of(target)
            sure = (kind == "number" or kind in ASKED) and self.stored[path] == 1
            if path and (sure or kind in HOLDERS | {"function"}):
                self.kinds[path] = kind
        return self.kinds

    def kind(self, node: ast.AST) -> str:
        """Return what kind of object an expression makes, as far as it shows."""
        path = path_of(node)
        if path and (told := self._told_of(path)):
            return told
        match node:
            case ast.Constant(value):
                is_text = isinstance(value, str | bytes)
                return "None" if value is None else "str" if is_text else "number"
            case ast.BinOp(left, _, right) | ast.Compare(left, _, [right, *_]):
                kinds = {self.kind(left), self.kind(right)}
                if "array" in kinds:
                    return "array"
                if isinstance(node, ast.Compare) or kinds == {"number"}:
                    return "number"
                return next(iter(kinds & HOLDERS - {OBJECT}), self.unknown)
            case ast.Call(func) if self.imported(func).startswith("numpy."):
                return "array"
            case ast.Call(func) if self.imported(func).startswith(OF_NUMBERS):
                return "number"
            case ast.Call(func) if made := MADE_KINDS.get(self.imported(func)):
                return made
            case ast.Call(ast.Name(name)) if not self.is_own_code(name):
                return MAKERS.get(name, self.unknown)
            case ast.Call(ast.Name(name)) if name in self.file.generators:
                return "function"
            case ast.Call(ast.Attribute(value)) | ast.Subscript(value) | ast.Attribute(value) if (
                self.kind(value) == "array"
            ):
                return "array"
        return KINDS.get(type(node), self.unknown)

    def is_own_code(self, name: str) -> bool:
        """Return whether a name is none of Python's own."""
        return name in self.bound or name in self.file.bound or name in self.file.named

    def _is_code(self, node: ast.AST) -> bool:
        """Return whether a value is seen to be a function, or what calls one as it is read."""
        match node:
            case ast.Name(name):
                return name in self.file.inner or self.kind(node) == "function"
            case ast.Attribute(_, name):
                return name in self.file.plain
        return isinstance(node, ast.Lambda)

    def _acts(self, node: ast.Name) -> bool:
        """Return whether what a name denotes may run code wherever it stands."""
        if not self.file.acting or node.id in BUILTINS or self.imported(node):
            return False
        if self.unknown:
            return self.kind(node) in (OBJECT, "function")
        return self.file.kind(node, self) in self.file.acting

    @cached_property
    def groups(self) -> dict[str, frozenset[str]]:
        """What may share memory, by path."""
        # one that calls itself is not known while it is read
        self.groups, busy = {}, self.node in self.file.busy
        self.file.busy.add(self.node)
        for one in self.nodes:
            for link in self.links(one):
                whole = link.union(*(self.groups.get(path, ()) for path in link)) - {""}
                self.groups.update(dict.fromkeys(whole, whole))
            for target, value in self._pairs(one):
                calls = every(ast.Call, value)
                own = all(self.free(part) or self.deed(part) in _GIVING_NONE for part in calls)
                if not own or not self.roots(value) <= self.bound:
                    self.foreign.update(part.id for part in only(ast.Name, _each(target)))
        if not busy:
            self.file.busy.remove(self.node)
        return self.groups

    def _pairs(self, one: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
        """Yield what a piece of source binds, stores to or adds to, each with what that gets."""
        match one:
            case ast.Assign(targets, whole):
                yield from (pair for to in targets for pair in _paired(to, whole))
            case (
                ast.AnnAssign(target, _, ast.expr() as value)
                | ast.NamedExpr(target, value)
                | ast.withitem(value, ast.expr() as target)
            ):
                yield target, value
            case ast.For(target, value) | ast.comprehension(target, value):
                yield from turned(target, value)
            case ast.AugAssign(target, _, value) if self.kind(target) != "array":
                if not HOLDERS.isdisjoint((self.kind(target), self.kind(value))):
                    yield target, value

    def links(self, one: ast.AST) -> Iterator[frozenset[str]]:
        """Yield what may lead to the same memory once a piece of source ran, by itself."""
        for target, value in self._pairs(one):
            for part in _each(target):
                if not self.is_array(part):
                    yield self.roots(value) | self.roots(part)
        if isinstance(one, ast.Call) and self.deed(one) in _KEEPING and not self.free(one):
            known = self.known(one)
            if known is None:
                yield self.roots_of(_given(one))
            else:
                yield from (self._passed(link, known[1]) for link in known[0].links)

    def is_own(self, path: str) -> bool:
        """Return whether a name surely leads to nothing that others know as well."""
        group = self.groups.get(path, frozenset({path}))
        return group - self.turns <= self.bound - self.foreign

    def is_quiet(self, call: ast.Call) -> bool:
        """Return whether a call does no more than to compute, or to change what is its own."""
        if self.free(call):
            return True
        full, method = self.imported(call.func), getattr(call.func, "attr", "")
        given = list(_given(call)) if full.startswith("numpy.") and method in WRITING else []
        if isinstance(call.func, ast.Attribute) and self.deed(call) is Deed.CHANGES:
            given = [call.func.value]
        return bool(given) and all(map(self.is_own, self.roots_of(given)))

    def imported(self, node: ast.AST) -> str:
        """Return what a name or an attribute is imported as; empty where it is not."""
        if isinstance(node, ast.Attribute) and not path_of(node):
            whole = self.imported(node.value)
            return f"{whole}.{node.attr}" if whole else ""
        head, dot, rest = path_of(node).partition(".")
        hidden = head in self.bound and head not in self.file.bound
        full = "" if hidden else self.file.imports.get(head, "")
        return as_numpy(f"{full}{dot}{rest}") if full else ""

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
        inside = self.node is self.file.tree or self.inner.get(node.name) is node
        hidden = frozenset() if inside else self.bound
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
        known = self.known(call)
        return self.deed(call) is Deed.COMPUTES if known is None else known[0].computes

    def _deed(self, call: ast.Call) -> Deed:
        """Return what a call does where it is of no function of the file that is known."""
        runs = any(map(self._is_code, _arguments(call)))
        runs |= any(one.arg == "key" for one in call.keywords)
        if full := self.imported(call.func):
            return of_library(full, call, runs)
        match call.func:
            case ast.Name() if (kind := self.kind(call.func)) in ASKED:
                return of_method("", kind, call, runs)
            case ast.Name(name) if not self.is_own_code(name):
                return of_builtin(name, call, runs)
            case ast.Attribute(owner, name) if name not in self.file.methods or self.kind(
                owner
            ) not in ("", OBJECT):
                if self.file.sends and name.lower() in MESSAGES:
                    return Deed.COMPUTES if self.file.reduces and name in ALIKE else Deed.SENDS
                return of_method(name, self.kind(owner), call, runs)
        return Deed.ANYTHING

    def roots_of(self, nodes: Iterable[ast.AST | None]) -> frozenset[str]:
        """Return the paths whose memory the values of some expressions may lead to."""
        return frozenset[str]().union(*map(self.roots, nodes))

    def _roots(self, node: ast.AST | None) -> frozenset[str]:
        """Return the paths whose memory the value of an expression may lead to."""
        match node:
            case ast.Name() | ast.Attribute() if path := path_of(node):
                plain = isinstance(self.once.get(path), ast.Constant) or path in self.file.functions
                plain |= bool(self.imported(node))
                plain |= path.rpartition(".")[2] in _MEASURES and "." in path
                return frozenset() if plain else frozenset({path})
            case ast.Subscript(ast.Name(name), index) if _is_sorted(self.once.get(name)):
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
                # of arrays it makes a new one; lists may be joined, dictionaries too
                return self.roots_of((left, right) if self.kind(node) in HOLDERS else ())
            case ast.Call(func):
                full, deed = self.imported(func), self.deed(node)
                name = (full or ast.unparse(func)).rpartition(".")[2]
                if known := self.known(node):
                    return self._passed(known[0].given, known[1])
                if deed is Deed.SENDS:
                    # the root is given what it sends
                    return self.roots_of(_arguments(node)) if name.islower() else frozenset()
                if deed in (Deed.COMPUTES, Deed.DRAWS):
                    builtin = isinstance(func, ast.Name) and not full
                    owner = func.value if isinstance(func, ast.Attribute) and not full else node
                    holds = self.kind(owner) in HOLDERS and owner is not node
                    if not holds and name not in (HOLDING if builtin else SHARING):
                        return frozenset()
                return self.roots_of(_given(node))
            case ast.ListComp(value) | ast.SetComp(value):
                return self.roots(value)
            case ast.expr() if isinstance(node, OWN):
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
        through = {
            part.id: path_of(one.iter)
            for one in getattr(node, "generators", ())
            for part in every(ast.Name, one.target)
        }
        for part in ast.iter_child_nodes(node):
            for path, measured in self.reads(part):
                root, dot, rest = path.partition(".")
                if root not in through:
                    yield path, measured
                elif dot:
                    # what an element has under a name all of them may have
                    yield f"{through[root]}.{rest}", measured

    def steps(self, node: ast.AST) -> tuple[int, int, int]:
        """Return what a piece of source takes of the interpreter: items, others, calls of NumPy."""
        parts = list(walked(node))
        called = [self.imported(one.func) for one in parts if isinstance(one, ast.Call)]
        calls = sum(one.startswith("numpy.") for one in called)
        operations = sum(isinstance(one, _OPERATIONS) for one in parts) + len(called) - calls
        return sum(isinstance(one, ast.Subscript) for one in parts), operations, calls

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
        made = Changes()
        # comprehensions have names for themselves
        inner = (one for one in every(OWN, node) if one is not node)
        each = (part.target for one in inner for part in getattr(one, "generators", ()))
        own = {part for one in each for part in walked(one)}
        for one in walked(node):
            if not isinstance(one, _SILENT) and one not in own:
                self._changed_by(one, made)
        return made

    def _changed_by(self, one: ast.AST, made: Changes) -> None:
        stored = not isinstance(getattr(one, "ctx", None), ast.Load)
        match one:
            case ast.Name(name) if stored:
                made.bound.add(name)
            case ast.Name(name) if self._acts(one):
                made.wholly.add(name)
                made.unknown = True
            case ast.Attribute(value) if stored:
                path = path_of(one)
                into = made.bound if path in self.named else made.wholly
                into |= {path} if path else self.roots(value)
            case ast.Subscript(value) if stored:
                made.elements |= self.roots(whole_of(value))
            case ast.AugAssign(target):
                made.elements |= self.roots(whole_of(target))
            case ast.Call() if (known := self.known(one)) and not known[0].computes:
                done, passed = known
                made.wholly |= self._passed(done.changes.wholly, passed)
                made.elements |= self._passed(done.changes.elements, passed)
                made.unknown |= done.changes.unknown
                made.strange |= done.changes.strange
            case ast.Call() if not self.free(one):
                self._changed_by_call(one, self.deed(one), made)
            case (
                ast.For(iter=ast.Name() | ast.Attribute() as given)
                | ast.comprehension(iter=ast.Name() | ast.Attribute() as given)
            ) if self.kind(given) == "function":
                made.wholly |= self.roots(given)
                made.unknown = True
            case ast.withitem(given):
                # what it makes of itself nobody knows, but of what Python and NumPy have
                if not isinstance(given, ast.Call) or self.known(given):
                    made.wholly |= self.roots(given)
                    made.unknown = True
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                made.bound.add(name)
            case _ if isinstance(one, _OBEYING):
                made.unknown = True

    def _changed_by_call(self, call: ast.Call, deed: Deed, made: Changes) -> None:
        func = call.func
        if deed is Deed.WRITES:
            made.elements |= self.roots_of(_given(call))
        elif isinstance(func, ast.Attribute) and deed in (Deed.CHANGES, Deed.DRAWS):
            made.wholly |= self.roots(whole_of(func.value))
        elif deed is Deed.SENDS:
            # objects are sent as copies
            named = ast.unparse(func).rpartition(".")[2]
            made.elements |= self.roots_of(() if named.islower() else _arguments(call))
        elif deed is Deed.ANYTHING:
            held = func if isinstance(func, ast.Name) else None
            made.wholly |= self.roots_of((*_given(call), held)) | self.captured
            made.wholly |= self.bound if ast.unparse(func) in _SEEING else frozenset()
            made.unknown = True
            made.strange |= not self.imported(func) and self.file.may_hold(func, self)

    def reached(self, paths: Iterable[str]) -> frozenset[str]:
        """Return paths and all that may lead to the same memory."""
        found, spread = set[str](), set[frozenset[str]]()
        parts = grouped((root_of(one), one) for one in self.groups if "." in one)
        exact = [(one, one) for one in paths if one]
        # what is part of it, or it is part of, may lead elsewhere by other names
        pending = [*((one, head) for one, _ in exact for head in heads_of(one)), *exact]
        while pending:
            path, other = pending.pop()
            found.add(path)
            near = parts.get(root_of(path), ()) if path == other else ()
            inner = [one for one in near if one.startswith(f"{path}.")]
            for group in (self.groups.get(one, frozenset()) for one in (other, *inner)):
                if group not in spread:
                    spread.add(group)
                    new = group - {other}
                    pending = [(one, head) for one in new for head in heads_of(one)] + pending
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
        paths = grouped((root_of(path), path) for path in own)
        for one, other, last in self.file.aliases(self.node):
            parts = paths.get(one, ())
            if one in parts or (parts and (not last or last in found.fields)):
                found.wholly.add(other)
        # what a name was bound to stays as it is, but what is part of others they have, too
        dotted = {path for path in found.bound if "." in path}
        wholly = self.reached(dotted | found.wholly) | found.bound
        every = wholly | self.reached(found.elements)
        return Lost(self, found, _with_heads(wholly), _with_heads(every))

    def _only(self, node: ast.AST) -> bool:
        """Return whether all that an expression does is to compute."""
        return not any(
            isinstance(one, ast.NamedExpr | ast.Lambda | ast.GeneratorExp | ast.Await | ast.Yield)
            or (isinstance(one, ast.Call) and not self.free(one))
            for one in walked(node)
        )

    def method(self, name: ast.Name) -> ast.expr:
        """Return the method that a name stands for all along, or the name."""
        match self.once.get(name.id):
            case ast.Attribute(ast.Name(owner), method) as found if method in self.file.plain:
                return found if self.stored[owner] < 2 else name
        return name

    def stays(self, target: ast.AST) -> bool:
        """Return whether nobody changes what a target gets: an array takes copies."""
        if not isinstance(target, ast.Name):
            return self.is_array(target)
        changes, group = self.changes(self.node.body), self.groups.get(target.id, ())
        returned = only(ast.Return, self.nodes)
        return (
            self.stored[target.id] == 1
            and len(group) < 2
            and target.id not in self.captured | changes.elements | changes.wholly
            and not any(target.id in names_in(one) for one in returned)
        )

    def is_array(self, target: ast.AST) -> bool:
        """Return whether what a target stores to is surely an array, which takes copies."""
        if not isinstance(target, ast.Subscript):
            return False
        index, into = target.slice, target.value
        each = each_of(index)
        if any(isinstance(one, ast.Slice) or getattr(one, "value", 0) is ... for one in each):
            return True
        if self.kind(into) == "array":
            return True
        name = into.id if isinstance(into, ast.Name) else ""
        bound = self.binding.get(name, ())
        made = [self.values[one] for one in bound if one in self.values]
        return 0 < len(made) == self.stored[name] and all(
            self.kind(one) in (("array", "") if isinstance(one, ast.BinOp) else ("array",))
            for one in made
        )


_GIVING_NONE = (Deed.NOTHING, Deed.DRAWS)
"""What calls do that keep nothing of what they are given."""
_KEEPING = (Deed.CHANGES, Deed.WRITES, Deed.ANYTHING)


def is_opaque(node: ast.AST) -> bool:
    """Return whether a statement holds what nobody follows: definitions, generators, globals."""
    return any(every(_OPAQUE, node))


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and its parts, without those of functions and classes in it."""
    if not isinstance(node, Function | ast.ClassDef):
        yield node
        for part in ast.iter_child_nodes(node):
            yield from _nodes(part)


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


def turned(target: ast.expr, given: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what a loop binds, each with what that goes through."""
    match target, given:
        case ast.Tuple(parts), ast.Call(ast.Name("zip"), args) if len(parts) == len(args):
            for part, one in zip(parts, args, strict=True):
                yield from turned(part, one)
        case ast.Tuple([index, part]), ast.Call(ast.Name("enumerate"), [inner]):
            yield index, ast.Constant(0)
            yield from turned(part, inner)
        case _:
            yield target, given


def _is_sorted(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "sorted"


def _each(target: ast.expr) -> Iterator[ast.expr]:
    """Yield what an assignment to a target binds or stores to, one by one."""
    part = target.value if isinstance(target, ast.Starred) else target
    if isinstance(part, ast.Tuple | ast.List):
        for one in part.elts:
            yield from _each(one)
    else:
        yield part


def _given(call: ast.Call) -> Iterator[ast.expr]:
    """Yield what a call is given, and what it is called on."""
    if isinstance(call.func, ast.Attribute):
        yield call.func.value
    yield from _arguments(call)


def _arguments(call: ast.Call) -> tuple[ast.expr, ...]:
    return (*call.args, *(one.value for one in call.keywords))


def whole_of(node: ast.expr) -> ast.expr:
    """Return what an element is taken from."""
    return whole_of(node.value) if isinstance(node, ast.Subscript) else node


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
