"""What the names of a file mean: modules, functions, values, arguments; what loops carry on."""

from __future__ import annotations

import ast
import tomllib
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

from advisor.measure import names as pure
from advisor.numpy_functions import SIZE_AT
from costdb.records import dataclass, field

# What a sampled program may call: functions that only compute on what they are given.
#
# The rows are those of ``pure.toml`` beside this module. A function without a row is not called;
# whatever needs it is not sampled, and is named.

_TABLE: Final = tomllib.loads((files("advisor") / "measure" / "pure.toml").read_text("utf-8"))
_MEMBERS: Final = _TABLE["members"]

CALLS: Final = frozenset(
    f"{module}.{name}"
    for module, names in (*_TABLE["calls"].items(), ("numpy.random", " ".join(SIZE_AT)))
    for name in names.split()
) - {"numpy.random.integers"}
"""Dotted names of functions; types of elements are among them."""

WITH_FUNCTIONS: Final = frozenset(
    {"numpy.fromfunction", "numpy.apply_along_axis", "numpy.vectorize", "numpy.piecewise"}
)
"""Those that call what they are given, which must be a function of the same file."""

TALKING: Final = frozenset(_MEMBERS["talking"].split())
"""Methods by which ranks send to each other or wait for each other."""

OF_RANK: Final = frozenset({"Get_rank", "rank", "coords", "Get_coords", "Get_cart_rank"})
"""What gives each rank another value."""

MPI_MEMBERS: Final = TALKING | frozenset(_MEMBERS["of_ranks"].split())
"""What communicators, requests, datatypes and windows have; of files that import mpi4py."""

VALUES: Final = frozenset(f"numpy.{name}" for name in _TABLE["names"]["numpy"].split())
"""Names of NumPy that are no functions."""

COMPILERS: Final = frozenset(
    {"numba.njit", "numba.jit", "numba.core.decorators.njit", "advisor.compiler.advised_njit"}
)
"""Decorators that compile a function; what is compiled is one piece, and runs whole."""

COMPILER_OPTIONS: Final = frozenset(
    ("parallel", "fastmath", "nogil", "boundscheck", "error_model", "nopython", "forceobj")
)

REMEMBERING: Final = frozenset({"functools.cache", "functools.lru_cache"})
"""Decorators that keep what a function gave."""

MARKS: Final = frozenset({"advisor.kernel", "advisor.annotations.kernel"})
"""Decorators that change nothing."""

OPERATORS: Final = frozenset(f"__{name}__" for name in _MEMBERS["operators"].split())
"""Methods that a class of the file may define; none may be asked for by its name."""

OF_CLASSES: Final = frozenset({"property", "staticmethod", "classmethod"})
"""Decorators of methods."""

UFUNC_METHODS: Final = frozenset({"accumulate", "at", "outer", "reduce", "reduceat"})

BUILTINS: Final = frozenset(_TABLE["names"]["builtins"].split())

MEMBERS: Final = frozenset(_MEMBERS["values"].split()) | SIZE_AT.keys()
"""Attributes and methods of arrays, numbers, containers, sparse matrices and generators."""


_FEW = 16
_GROWING = frozenset({"append", "extend", "insert", "pop"})
_PARSERS = frozenset({"argparse.ArgumentParser", "ArgumentParser"})


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Parsers of a script, and what they give.

    Attributes
    ----------
    parsers, results : set of str
        Names of parsers, and of what parsing gives.
    defaults : mapping of str to ast.expr
        What each argument is without being given.
    """

    parsers: set[str] = field(default_factory=set)
    results: set[str] = field(default_factory=set)
    defaults: dict[str, ast.expr] = field(default_factory=dict)

    def is_setting_up(self, node: ast.stmt) -> bool:
        """Whether a statement only makes or fills a parser, or parses."""
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]):
                return name in self.parsers or name in self.results
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
                return name in self.parsers
            case _:
                return False


def read_command_line(tree: ast.Module, sizes: Mapping[str, int | float]) -> CommandLine:
    """Return the parsers of a file; `sizes` are given instead of defaults."""
    found = CommandLine()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=made)) if (
                ast.unparse(made) in _PARSERS
            ):
                found.parsers.add(name)
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Attribute(value=ast.Name(id=parser), attr="parse_args")),
            ) if parser in found.parsers:
                found.results.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=parser), attr="add_argument")) if (
                parser in found.parsers
            ):
                _add(found, node, sizes)
            case _:
                pass
    return found


def _add(found: CommandLine, call: ast.Call, sizes: Mapping[str, int | float]) -> None:
    words = {one.arg: one.value for one in call.keywords}
    names: list[Any] = [one.value for one in call.args if isinstance(one, ast.Constant)]
    stated: Any = {
        name: one.value
        for name, one in words.items()
        if name in ("dest", "action") and isinstance(one, ast.Constant)
    }
    try:
        made = ArgumentParser(add_help=False).add_argument(*names, **stated)
    except (TypeError, ValueError):
        return  # no program gets any further with it
    if made.dest in sizes:
        found.defaults[made.dest] = ast.Constant(sizes[made.dest])
    elif "default" in words:
        found.defaults[made.dest] = words["default"]
    elif made.option_strings:
        found.defaults[made.dest] = ast.Constant(made.default)


@dataclass(slots=True)
class Names:
    """The names of a file.

    Attributes
    ----------
    functions : dict of str to FunctionDef or ClassDef
        Those at its top.
    parameters : dict of str to set of str
        Of functions anywhere in it; of classes, those of all methods and of all `__init__`.
    once : set of str
        Functions at its top that one place of it calls, and none for each of many values.
    statements : list of stmt
        What runs when it is a script.
    paths : dict of str to str
        Dotted names of what is imported, by the names that stand for it.
    assigned : set of str
        Names that stand for values.
    own : frozenset of str
        What classes of the file have.
    given : CommandLine
    ranks : bool
        Whether it imports mpi4py.
    talking : frozenset of str
        Functions and methods in which ranks talk to each other.
    unlike : frozenset of str
        Names that may stand for another value on each rank.
    apart : frozenset of ast.AST
        Statements that not all ranks run, and functions and methods that those call.
    """

    functions: dict[str, ast.FunctionDef | ast.ClassDef] = field(default_factory=dict)
    parameters: dict[str, set[str]] = field(default_factory=dict)
    once: set[str] = field(default_factory=set)
    statements: list[ast.stmt] = field(default_factory=list)
    paths: dict[str, str] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)
    own: frozenset[str] = frozenset()
    given: CommandLine = field(default_factory=CommandLine)
    ranks: bool = False
    talking: frozenset[str] = frozenset()
    unlike: frozenset[str] = frozenset()
    apart: frozenset[ast.AST] = frozenset()

    def talks(self, node: ast.AST) -> bool:
        """Whether ranks talk to each other in a part of the file."""
        return any(isinstance(part, ast.Call) and self._called(part) for part in ast.walk(node))

    def differs(self, node: ast.AST) -> bool:
        """Whether ranks may find another value of an expression, each by its number."""
        return any(
            (isinstance(part, ast.Attribute) and part.attr in pure.OF_RANK)
            or (isinstance(part, ast.Name) and part.id in self.unlike)
            for part in ast.walk(node)
        )

    def _called(self, call: ast.Call) -> bool:
        path = self.path(call.func)
        if path is not None and not path.startswith("mpi4py."):
            return False
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        return name in self.talking

    def path(self, node: ast.expr) -> str | None:
        """Return the dotted name of something imported; None for anything else."""
        match node:
            case ast.Name(id=name):
                return self.paths.get(name)
            case ast.Attribute(value=value, attr=name):
                base = self.path(value)
                return None if base is None else f"{base}.{name}"
            case _:
                return None


def names_of(tree: ast.Module, sizes: Mapping[str, int | float]) -> Names:
    """Return what the names of a file mean; `sizes` are given on its command line."""
    found = Names(own=frozenset(own_members(tree)), given=read_command_line(tree, sizes))
    for statement in tree.body:
        match statement:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.functions[name] = statement
            case ast.If(test=test, body=body) if is_main(test):
                found.statements += body
            case _:
                found.statements.append(statement)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for one in names:
                    name = one.asname or one.name.partition(".")[0]
                    _import(found, name, one.name if one.asname else name)
            case ast.ImportFrom(module=module, names=names, level=0):
                for one in names:
                    _import(found, one.asname or one.name, f"{module}.{one.name}")
                if names[0].name == "*":
                    known = (path.rpartition(".") for path in CALLS | VALUES)
                    found.paths |= {last: f"{of}.{last}" for of, _, last in known if of == module}
            case (
                ast.Name(id=name, ctx=ast.Store() | ast.Del())
                | ast.arg(arg=name)
                | ast.ExceptHandler(name=str(name))
            ):
                found.assigned.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                arguments = node.args if isinstance(node, ast.FunctionDef) else node
                given = {one.arg for one in ast.walk(arguments) if isinstance(one, ast.arg)}
                found.parameters[name] = found.parameters.get(name, set()) | given
                if name not in found.functions:
                    found.assigned.add(name)
            case _:
                pass
    named = Counter(one.id for one in ast.walk(tree) if isinstance(one, ast.Name))
    repeated = (
        ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
    )  # fmt: skip
    often = {
        one.id
        for node in ast.walk(tree)
        if isinstance(node, repeated)
        for one in ast.walk(node)
        if isinstance(one, ast.Name)
    }
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    found.once = {name for name in called - often if named[name] == 1 and name in found.functions}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):  # it may be made as its base is
            found.parameters[node.name] |= found.parameters.get("__init__", set())
    # a name that is also assigned is not what was imported
    for name in found.assigned | set(found.functions):
        found.paths.pop(name, None)
    found.ranks = any(path.startswith("mpi4py") for path in found.paths.values())
    if found.ranks:
        functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
        assigned = [one for one in ast.walk(tree) if isinstance(one, ast.Assign)]
        found.talking, before = pure.TALKING, frozenset[str]()
        while found.talking != before:
            before = found.talking
            found.talking |= {one.name for one in functions if found.talks(one)}
        while found.unlike != before:
            before = found.unlike
            found.unlike |= {
                name for one in assigned if found.differs(one.value) for name in assigned_names(one)
            }
        found.apart = frozenset(_apart(tree, found, functions))
    return found


def _apart(
    tree: ast.Module, names: Names, functions: Sequence[ast.FunctionDef]
) -> Iterator[ast.AST]:
    """Yield what some ranks run and others do not, as conditions on their numbers tell."""
    pending: list[ast.AST] = []
    for node in ast.walk(tree):
        for body in (getattr(node, "body", ()), getattr(node, "orelse", ())):
            if not isinstance(body, list):
                continue  # of a lambda, or of an expression
            for place, one in enumerate(body):
                if isinstance(one, ast.If) and names.differs(one.test):
                    pending += (*one.body, *one.orelse)
                    if isinstance(one.body[-1], ast.Return | ast.Continue | ast.Break):
                        pending += body[place + 1 :]
    seen = set[ast.AST]()
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        calls = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
        called = {getattr(one, "attr", getattr(one, "id", "")) for one in calls}
        pending += (one for one in functions if one.name in called)


def _import(found: Names, name: str, path: str) -> None:
    found.paths[name] = path if found.paths.get(name, path) == path else "?"


# Parts of a tree.


def is_main(test: ast.expr) -> bool:
    """Whether a condition asks if the file is run as a script."""
    return ast.unparse(test) in ("__name__ == '__main__'", "'__main__' == __name__")


def own_statements(node: ast.stmt) -> Iterator[ast.stmt]:
    """Yield a statement and those in it that belong to the same loop."""
    yield node
    if isinstance(node, ast.If | ast.With | ast.Try):
        parts = [*node.body, *getattr(node, "orelse", ()), *getattr(node, "finalbody", ())]
        for part in parts + [one for way in getattr(node, "handlers", ()) for one in way.body]:
            yield from own_statements(part)


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those in it that belong to the same function."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            yield from own_nodes(child)


def run_by(function: ast.FunctionDef | ast.ClassDef) -> Iterator[ast.AST]:
    """Yield the parts of a function that run: no annotations, no decorators."""
    yield from function.body
    if isinstance(function, ast.ClassDef):
        return
    yield from function.args.defaults
    yield from (one for one in function.args.kw_defaults if one is not None)


def own_members(tree: ast.Module) -> Iterator[str]:
    """Yield what classes of a file define, and what their methods set."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        found = {n.id for n in own_nodes(node) if isinstance(n, ast.Name) and _is_stored(n)}
        for part in ast.walk(node):
            if isinstance(part, ast.FunctionDef):
                found.add(part.name)
            elif isinstance(part, ast.Attribute) and _is_stored(part):
                found.add(part.attr)
        yield from (name for name in found if not name.startswith("__"))


def _is_stored(node: ast.Name | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store)


def root_name(node: ast.expr) -> str:
    """Return the name that a chain of calls, attributes and subscripts begins with."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_short(over: ast.expr) -> bool:
    """Whether a loop runs a few times that the text tells: it is part of what is around it."""
    match over:
        case ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]):
            values = [b.value for b in bounds if isinstance(b, ast.Constant)]
            whole = [v for v in values if isinstance(v, int)]
            if not whole or len(whole) != len(bounds) or whole[2:] == [0]:
                return False
            return len(range(*whole)) <= _FEW
        case _:
            return False


# What one iteration of a loop hands to the next.


def carried_names(loop: ast.For) -> frozenset[str]:
    """Return names that an iteration may read as the one before left them.

    What an iteration assigns before it reads it is none of them, nor is an array of which only
    elements change. A list that grows is.
    """
    exposed: set[str] = set()
    _through(loop.body, set(names_in(loop.target)), exposed)
    assigned = {name for part in loop.body for name in assigned_names(part)}
    grown = {
        node.func.value.id
        for part in loop.body
        for node in ast.walk(part)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _GROWING
        and isinstance(node.func.value, ast.Name)
    }
    return frozenset((assigned | grown) & exposed)


def stored_arrays(body: Sequence[ast.stmt]) -> frozenset[str]:
    """Return names of which statements change elements."""
    return frozenset(
        node.value.id
        for part in body
        for node in ast.walk(part)
        if isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
    )


def names_in(node: ast.AST) -> Iterator[str]:
    """Yield every name of an expression, except those that comprehensions have for themselves."""
    inner = {one.id for one in _own_of_comprehensions(node)}
    names = (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
    return (name for name in names if name not in inner)


def _own_of_comprehensions(node: ast.AST) -> Iterator[ast.Name]:
    for part in ast.walk(node):
        if isinstance(part, ast.comprehension):
            yield from (one for one in ast.walk(part.target) if isinstance(one, ast.Name))


def assigned_names(node: ast.AST) -> Iterator[str]:
    """Yield names that a statement assigns, those of its parts included."""
    inner = {id(one) for one in _own_of_comprehensions(node)}
    for part in ast.walk(node):
        if id(part) in inner:
            continue
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store | ast.Del):
            yield part.id


def _through(body: Iterable[ast.stmt], written: set[str], exposed: set[str]) -> None:
    """Go through statements in order: what is surely `written`, and what is read before."""
    for statement in body:
        match statement:
            case ast.If(test=test, body=then, orelse=orelse):
                exposed.update(set(names_in(test)) - written)
                one, other = set(written), set(written)
                _through(then, one, exposed)
                _through(orelse, other, exposed)
                written |= one & other
            case ast.For(target=target, iter=over, body=inner):
                exposed.update(set(names_in(over)) - written)
                _through(inner, written | set(names_in(target)), exposed)
            case ast.While(test=test, body=inner):
                exposed.update(set(names_in(test)) - written)
                _through(inner, set(written), exposed)
            case ast.With(body=inner):
                _through(inner, written, exposed)
            case ast.Assign(targets=targets, value=value):
                exposed.update(set(names_in(value)) - written)
                for target in targets:
                    if not isinstance(target, ast.Name | ast.Tuple | ast.List):
                        exposed.update(set(names_in(target)) - written)
                written.update(assigned_names(statement))
            case _:
                exposed.update(set(names_in(statement)) - written)
                written.update(assigned_names(statement))
