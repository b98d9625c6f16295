"""What the functions of a file do, and what its names and attributes may be bound to."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from typing import Any

from advisor.finding import MODULE
from advisor.ir.changes import (
    Changes,
    Done,
    Function,
    Names,
    heads_of,
    is_opaque,
    path_of,
    root_of,
)
from advisor.ir.effects import METHODS, PURE
from advisor.source import KEYED, assigned_names, every, imports_of, tree_of, walked, with_keys
from costdb.records import grouped, only

_PLAIN_BASES = frozenset({"object", "ABC", "abc.ABC"})
"""Classes that give objects no method of their own."""


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
    named, inner, plain : set of str
        All functions and classes; functions outside of classes, and methods that are no properties.
    generators, acting : set of str
        Functions that go on later; those, and classes whose objects run code as they are used.
    """

    def __init__(self, tree: ast.Module, *, reduces: bool = False) -> None:
        self.tree, self.reduces, self.imports = tree, reduces, imports_of(walked(tree))
        nodes = list(walked(tree))
        # operations of its own run code of the file
        made = any(isinstance(one, ast.Attribute) and one.attr == "Create" for one in nodes)
        self.sends = not made and any(one.startswith("mpi4py") for one in self.imports.values())
        self.functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
        self.bound = frozenset(name for one in tree.body for name in assigned_names(one))
        named = [one.name for one in only(Function | ast.ClassDef, tree.body)]
        self.again = {one for one in named if one in self.bound or named.count(one) > 1}
        functions, classes = [*only(Function, nodes)], [*only(ast.ClassDef, nodes)]
        bases = {ast.unparse(base) for one in classes for base in one.bases}
        own = {one: each.name for each in classes for one in each.body if isinstance(one, Function)}
        self.named = {one.name for one in (*functions, *classes)}
        self.methods = {with_keys(one.name) for one in own} | {one.name for one in own}
        self.plain = {one.name for one in own if not _is_property(one)}
        self.inner = {one.name for one in functions if one not in own}
        self.generators = {one.name for one in functions if any(every(_YIELDING, one))}
        self.acting = self.generators.union(name for one, name in own.items() if self._acts(one))
        self.around: dict[ast.AST, Function] = {
            part: one for one in functions for part in one.body if isinstance(part, Function)
        }
        self._tops = {one.name: one for one in classes if one in tree.body}
        found = {one.name: self._methods(one) for one in self._tops.values()}
        # objects of a class that others are derived from may be of these
        self.classes = {
            name: methods
            for name, methods in found.items()
            if methods is not None and name not in self.again | bases
        }
        self._fields = {
            one.name: {
                x.target.id: x.value
                for x in one.body
                if isinstance(x, ast.AnnAssign) and isinstance(x.target, ast.Name)
            }
            for one in classes
            if "__init__" not in self.classes.get(one.name, {"__init__": None})
            if not {*map(ast.unparse, one.bases)} & self._tops.keys()
        }
        self.owners: dict[ast.AST, str] = {
            part: name
            for name, parts in self.classes.items()
            for part in parts.values()
            if part in self._tops[name].body
            if _decorators(part) <= {"property"}
        }
        self._loads = Counter(_called(one) for one in nodes if _is_loaded(one))
        self.scopes: list[ast.Module | Function] = [tree, *functions]
        self.names_of: Callable[[ast.AST], Names] = cache(lambda node: Names(node, self))
        self._done: dict[ast.AST, Done | None] = {}
        self._kinds: dict[tuple[ast.AST, ast.AST], str] = {}
        self._aliases: dict[ast.AST, list[tuple[str, str, str]]] = {}
        self.busy: set[ast.AST] = set()
        declared = (one.names for one in nodes if isinstance(one, ast.Global | ast.Nonlocal))
        self._declared = frozenset(name for names in declared for name in names)

    def _methods(self, one: ast.ClassDef) -> dict[str, ast.FunctionDef] | None:
        """Return what objects of a class have as methods; None where that is not all of the file.

        They have those of the one class that it is derived from, too.
        """
        inherited: dict[str, ast.FunctionDef] | None = {}
        bases = [name for name in map(ast.unparse, one.bases) if name not in _PLAIN_BASES]
        if bases:
            base = self._tops.get(bases[0])
            if len(bases) > 1 or base is None or base.lineno >= one.lineno:
                return None
            inherited = None if base.name in self.again else self._methods(base)
        if inherited is None:
            return None
        return inherited | {part.name: part for part in only(ast.FunctionDef, one.body)}

    def _acts(self, method: Function) -> bool:
        """Return whether a method does more than to compute where nothing calls it."""
        name = method.name
        if not (_is_property(method) or (name.startswith("__") and name not in _CALLED)):
            return False
        calls = (one.func for one in every(ast.Call, method))
        others = (one for one in calls if _called(one) not in PURE | METHODS)
        modules = [self.imports.get(root_of(path_of(one)), "") for one in others]
        return not all(one.startswith("numpy") for one in modules) or any(
            isinstance(one, ast.AugAssign | ast.Global | ast.Nonlocal)
            or (isinstance(one, ast.Attribute | ast.Subscript) and not _is_loaded(one))
            for one in walked(method)
        )

    def everywhere(self, kind: Any) -> Iterator[tuple[Any, Names]]:
        """Yield all parts of the file that are of a kind, with the names around each."""
        for names in map(self.names_of, self.scopes):
            yield from ((one, names) for one in only(kind, names.nodes))

    @cached_property
    def changed(self) -> frozenset[str]:
        """Names outside of functions that some function in there changes."""
        changed = set(self._declared)
        for one in self.scopes[1:]:
            names = self.names_of(one)
            found = names.changes(one.body)
            changed |= {root_of(one) for one in (*found.wholly, *found.elements)} - names.bound
        return frozenset(changed)

    @cached_property
    def _calls(self) -> Mapping[str, list[tuple[ast.Call, ast.Module | Function]]]:
        """Calls by the names that are called, and the functions that they stand in."""
        calls = self.everywhere(ast.Call)
        return grouped((_called(one.func), (one, names.node)) for one, names in calls)

    @cached_property
    def _stored(self) -> Mapping[str, list[tuple[ast.expr | None, ast.Module | Function]]]:
        """What is bound to attributes, by their names; None where that is not written there."""
        return grouped(
            (one.attr, (names.values.get(one), names.node))
            for one, names in self.everywhere(ast.Attribute)
            if not isinstance(one.ctx, ast.Load)
        )

    def _given(
        self, kind: str, attribute: str
    ) -> Iterator[tuple[ast.expr | None, ast.Module | Function]]:
        """Yield what objects of a class of data are made with as one of its fields."""
        fields = self._fields.get(kind, {})
        for call, scope in self._calls.get(kind, ()) if attribute in fields else ():
            at, named = [*fields].index(attribute), {one.arg: one.value for one in call.keywords}
            default = named.get(attribute, fields[attribute])
            yield call.args[at] if at < len(call.args) else default, scope

    def kind(self, node: ast.AST, names: Names) -> str:
        """Return the class of the file that a value surely is of; empty where nobody knows."""
        match node:
            case ast.Call(ast.Name(name)) if name in self.classes and name not in names.bound:
                return name
            case ast.Name(name) if names.node in self.owners and name == names.first:
                return self.owners[names.node]
            case ast.Call(ast.Attribute(ast.Name(name), method)) if self._makes(name, method):
                return name
        key = node, names.node
        if key not in self._kinds:
            self._kinds[key] = ""
            kinds = {
                "" if value is None else self.kind(value, self.names_of(scope))
                for value, scope in self.origins(node, names)
            }
            self._kinds[key] = kinds.pop() if len(kinds) == 1 else ""
        return self._kinds[key]

    def _makes(self, name: str, method: str) -> bool:
        """Return whether a method of a class does no more than to make objects of it."""
        made = self.classes.get(name, {}).get(method)
        if made is None or [ast.unparse(one) for one in made.decorator_list] != ["classmethod"]:
            return False
        returned = [one.value for one in every(ast.Return, made)]
        own = self.names_of(made).first
        return bool(returned) and all(
            isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == own
            for one in returned
        )

    def origins(
        self, node: ast.AST, names: Names
    ) -> list[tuple[ast.expr | None, ast.Module | Function]]:
        """Return all that a name or an attribute may be bound to, or a call give, and where."""
        match node:
            case ast.Call() if call := self.called(node, names):
                own = self.names_of(call[0]).nodes
                return [(one.value, call[0]) for one in own if isinstance(one, ast.Return)]
            case ast.Attribute(value, attribute) if kind := self.kind(value, names):
                return [*self._stored.get(attribute, ()), *self._given(kind, attribute)]
            case ast.Name(name) if name in names.bound or names.node is self.tree:
                if name in self._declared:
                    return []
                bound = names.binding.get(name, ())
                found = [(names.values.get(part), names.node) for part in bound]
                if name not in names.parameters:
                    return found
                return [*found, *self._sites(names.node, name)]
            case ast.Name():
                return self.origins(node, self.names_of(self.around.get(names.node, self.tree)))
        return []

    def kinds(self, node: ast.expr, names: Names) -> set[str]:
        """Return the kinds of all that is seen to be bound to a name, in calls and their results.

        A list that is written out is none that grows with the data.
        """
        leaves = self.leaves(node, names)
        return {x.kind(one) for one, x in leaves if not (isinstance(one, ast.List) and one.elts)}

    def leaves(self, node: ast.expr, names: Names) -> Iterator[tuple[ast.expr, Names]]:
        """Yield the expressions that a value may come from, in calls and their results too."""
        pending = [(node, names)]
        for one, around in pending:
            origins = self.origins(one, around)
            if not origins:
                yield one, around
            others = ((value, self.names_of(scope)) for value, scope in origins if value)
            pending += (other for other in others if other not in pending)

    def _sites(
        self, node: ast.AST, name: str
    ) -> Iterator[tuple[ast.expr | None, ast.Module | Function]]:
        """Yield what calls in the file give to a parameter."""
        if not self.is_all_called(node):
            # others may call it
            yield None, self.tree
        for call, scope in self.calls_of(node):
            assert isinstance(node, ast.FunctionDef)
            given = _arguments_of(node, call, node in self.owners)
            yield None if given is None else given.get(name), scope

    def name_of(self, scope: ast.AST) -> str:
        """Return the name of a function, with that of its class before it, or of the module."""
        owner, name = self.owners.get(scope, ""), with_keys(getattr(scope, "name", MODULE))
        return f"{owner}.{name}" if owner else name

    def scope_at(self, line: int) -> ast.Module | Function:
        """Return the innermost function that a line stands in, or the whole file."""
        around = (one for one in self.scopes[1:] if isinstance(one, Function))
        inside = (one for one in around if one.lineno <= line <= (one.end_lineno or 0))
        return max(inside, key=lambda one: one.lineno, default=self.tree)

    def is_all_called(self, node: ast.AST) -> bool:
        """Return whether a function is called, and by nobody but calls that are known."""
        calls = self.calls_of(node)
        known = isinstance(node, ast.FunctionDef) and len(calls) == self._loads[node.name]
        return bool(calls) and (known or getattr(node, "name", "") == "__init__")

    def calls_of(self, node: ast.AST) -> Sequence[tuple[ast.Call, ast.Module | Function]]:
        """Return what may be calls of a function, and where they stand; none if nothing tells."""
        owner = self.owners.get(node, "")
        if not isinstance(node, ast.FunctionDef):
            return ()
        own = bool(owner) or self.functions.get(node.name) is node or node in self.around
        called = owner if node.name == "__init__" else node.name
        return self._calls.get(called, ()) if own else ()

    def called(
        self, call: ast.Call, names: Names
    ) -> tuple[ast.FunctionDef, Mapping[str, ast.expr]] | None:
        """Return the function of the file that is surely called, and what its parameters are."""
        func = call.func
        if isinstance(func, ast.Name):
            func = names.method(func)
        if isinstance(func, ast.Name) and func.id in names.inner:
            node, owner = names.inner[func.id], ""
        elif (
            isinstance(func, ast.Name) and func.id in self.functions and func.id not in names.bound
        ):
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
            method, of = "__call__", func
            if isinstance(func, ast.Attribute) and func.attr in self.methods:
                method, of = func.attr, func.value
            if method not in self.methods or method in self._stored:
                return None
            owner = self.kind(of, names)
            if method not in self.classes.get(owner, {}):
                return None
            node = self.classes[owner][method]
        whole = ast.Call(func, call.args, call.keywords)
        given = _arguments_of(node, whole, bool(owner) and not is_static(node))
        return None if given is None else (node, given)

    def may_hold(self, func: ast.expr, names: Names) -> bool:
        """Return whether what is called may be code of the file."""
        match func:
            case ast.Name(name) if name in self.classes.keys() - names.bound:
                return not {"__init__", "__post_init__"}.isdisjoint(self.classes[name])
            case ast.Name(name):
                return names.is_own_code(name)
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
                    name: frozenset(head for path in paths for head in heads_of(path))
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
        if len(node.decorator_list) > is_static(node) or any(map(is_opaque, node.body)):
            return None
        outer_names = self.names_of(self.around[node]).bound if node in self.around else frozenset()
        seen = names.parameters | ((self.bound | outer_names) - names.bound)

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


@lru_cache(maxsize=4)
def attributes_read(source: str) -> Mapping[int, frozenset[str]]:
    """Return the attributes of parameters that functions read by other names, by line.

    By those that name what holds them, and in what they call. None where no class or key is.
    """
    found = dict[int, frozenset[str]]()
    if "class " not in source and not KEYED.search(source):
        return found
    file = file_of(source)
    for node in only(ast.FunctionDef, file.scopes):
        names, done = file.names_of(node), file.done(node)
        members = map(path_of, only(ast.Attribute, names.nodes))
        held = ((one, path_of(names.once.get(root_of(one), node))) for one in members)
        paths = {f"{path}.{one.partition('.')[2]}" for one, path in held if path}
        paths |= set() if done is None else {path for path, _ in done.reads}
        found[node.lineno] = frozenset(one for one in paths if "." in one)
    return found


@lru_cache(maxsize=16)
def names_around(source: str, line: int, *, reduces: bool = False) -> Names:
    """Return what names denote in a line of a file."""
    file = file_of(source, reduces=reduces)
    return file.names_of(file.scope_at(line))


_YIELDING = ast.Yield | ast.YieldFrom
_OF_CLASSES = frozenset({"staticmethod", "classmethod"})
_CALLED = frozenset({"__init__", "__post_init__", "__call__", "__repr__", "__str__"})


def may_be_compiled(node: ast.AST) -> bool:
    """Return whether a decorator may make another function of one, as a compiler does."""
    return not _decorators(node) <= {*_OF_CLASSES, "property"}


def _is_property(node: Function) -> bool:
    return not _decorators(node) <= _OF_CLASSES


def _decorators(node: ast.AST) -> set[str]:
    return {ast.unparse(one) for one in getattr(node, "decorator_list", ())}


def is_static(node: Function) -> bool:
    """Return whether a method is given nothing but what its calls give."""
    return "staticmethod" in _decorators(node)


def _called(func: ast.AST) -> str:
    """Return the name by which something is called."""
    return getattr(func, "attr", getattr(func, "id", ""))


def _is_loaded(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Load)


def _arguments_of(node: ast.FunctionDef, call: ast.Call, bound: bool) -> dict[str, ast.expr] | None:
    """Return what a call gives to parameters, a constant for defaults; None where it is unknown."""
    first = call.func
    if isinstance(first, ast.Attribute) and first.attr == node.name:
        first = first.value
    given = [*([first] if bound else []), *call.args]
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
    many = node.args.vararg or node.args.kwarg or len(given) > len(names)
    if many or any(isinstance(one, ast.Starred) for one in given):
        return None
    if not all(one.arg for one in call.keywords):
        return None
    every_name = (*names, *(one.arg for one in node.args.kwonlyargs))
    found: dict[str, ast.expr] = {one: ast.Constant(None) for one in every_name}
    found |= zip(names, given, strict=False)
    return found | {one.arg: one.value for one in call.keywords if one.arg}
