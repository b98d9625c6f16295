"""What the names of a file mean: modules, functions, values, arguments; what loops carry on."""

from __future__ import annotations

import ast
import builtins
import tomllib
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any, Final

from advisor.ir.waiting import carried
from advisor.numpy_functions import SIZE_AT
from advisor.source import COMPREHENSION, assigned_names
from costdb.records import dataclass, field, only

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

MARKS: Final = frozenset(
    (
        "advisor.kernel",
        "advisor.annotations.kernel",
        "functools.wraps",
        "typing.final",
        "typing.runtime_checkable",
    )
)
"""Decorators that change nothing that counts."""

OPERATORS: Final = frozenset(f"__{name}__" for name in _MEMBERS["operators"].split())
"""Methods that a class of the file may define; none may be asked for by its name."""

BASES: Final = frozenset(_TABLE["names"]["bases"].split())
"""What a class of the file may be made by; called, it would make one of any names."""

TELLING: Final = frozenset(_TABLE["names"]["telling"].split())
"""Functions that tell the user, or how to: what they are given is computed, and that is all."""

WRITING: Final = frozenset(_TABLE["names"]["writing"].split())
"""Functions that only write results: they are left out."""

BUILTINS: Final = frozenset(_TABLE["names"]["builtins"].split())

MEMBERS: Final = frozenset(_MEMBERS["values"].split()) | SIZE_AT.keys()
"""Attributes and methods of arrays, numbers, containers, sparse matrices and generators."""


_FEW = 16
_GROWING = frozenset({"append", "extend", "insert", "pop"})


def argument_of(call: ast.Call) -> str:
    """Return the name by which a parser gives the argument that a call adds to it; or nothing."""
    names: list[Any] = [one.value for one in call.args if isinstance(one, ast.Constant)]
    stated: Any = {
        one.arg: one.value.value
        for one in call.keywords
        if one.arg == "dest" and isinstance(one.value, ast.Constant)
    }
    try:
        return str(ArgumentParser(add_help=False).add_argument(*names, **stated).dest)
    except (TypeError, ValueError):
        return ""  # no program gets any further with it


@dataclass(slots=True)
class Names:
    """The names of a file.

    Attributes
    ----------
    functions : dict of str to FunctionDef or ClassDef
        Those at its top.
    parameters, kept : set of str
        Of functions anywhere in it; names that stay as they are, what is given by name among them.
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
    fields : set of str
        Classes that are made by their fields.
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
    parameters: set[str] = field(default_factory=set)
    kept: frozenset[str] = frozenset()
    once: set[str] = field(default_factory=set)
    statements: list[ast.stmt] = field(default_factory=list)
    paths: dict[str, str] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)
    own: frozenset[str] = frozenset()
    fields: set[str] = field(default_factory=set)
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
            (isinstance(part, ast.Attribute) and part.attr in OF_RANK)
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


def names_of(tree: ast.Module) -> Names:
    """Return what the names of a file mean."""
    found = Names(own=frozenset(own_members(tree)))
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
                | ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                found.assigned.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                if isinstance(node, ast.ClassDef) and _is_made_by_fields(node, found.fields):
                    found.fields.add(name)
                if name not in found.functions:
                    found.assigned.add(name)
            case ast.arg(arg=name):
                found.assigned.add(name)
                found.parameters.add(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if fields_in(value):
                found.fields.add(name)
    named = Counter(one.id for one in ast.walk(tree) if isinstance(one, ast.Name))
    repeated = only(COMPREHENSION | ast.Lambda, ast.walk(tree))
    often = {one.id for node in repeated for one in only(ast.Name, ast.walk(node))}
    calls = (call.func for call in only(ast.Call, ast.walk(tree)))
    called = {one.id for one in only(ast.Name, calls)}
    found.once = {name for name in called - often if named[name] == 1 and name in found.functions}
    # what is written anew has names of its own for the rest: `v0`, `loop0`, `clock`, modules
    roots = {path.partition(".")[0] for path in found.paths.values()}
    others = {"clock", "numba", "types", *roots, *(set(dir(builtins)) - BUILTINS)}
    found.kept = frozenset(
        name
        for name in (found.parameters - others) | BUILTINS
        if name.rstrip("0123456789") not in ("v", "loop", "part")
    )
    # a name that is also assigned is not what was imported
    for name in found.assigned | set(found.functions):
        found.paths.pop(name, None)
    found.ranks = any(path.startswith("mpi4py") for path in found.paths.values())
    if found.ranks:
        functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
        assigned = [one for one in ast.walk(tree) if isinstance(one, ast.Assign)]
        found.talking, before = TALKING, frozenset[str]()
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
        # of a lambda, or of an expression, it is no list
        for body in only(list, (getattr(node, "body", ()), getattr(node, "orelse", ()))):
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
    if isinstance(node, ast.If | ast.With | ast.Try | ast.Match):
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            for part in getattr(node, name, ()):
                inner = [part] if isinstance(part, ast.stmt) else part.body
                for one in inner:
                    yield from own_statements(one)


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
    """Yield what classes of a file define, and what is set in others or in functions."""
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found |= {n.id for n in own_nodes(node) if isinstance(n, ast.Name) and _is_stored(n)}
            for part in ast.walk(node):
                if isinstance(part, ast.FunctionDef | ast.ClassDef):
                    found.add(part.name)
                elif isinstance(part, ast.Attribute) and _is_stored(part):
                    found.add(part.attr)
        elif isinstance(node, ast.Attribute) and _is_stored(node) and node.attr not in MEMBERS:
            found.add(node.attr)
        elif isinstance(node, ast.Call):
            found.update(fields_in(node))
            if getattr(node.func, "attr", "") == "add_argument":
                found.add(argument_of(node))
    yield from (name for name in found if not (name.startswith("__") and name.endswith("__")))


def fields_in(node: ast.expr) -> list[str]:
    """Return the fields that a call of ``namedtuple`` states."""
    match node:
        case ast.Call(func=ast.Name(id="namedtuple") | ast.Attribute(attr="namedtuple"), args=args):
            parts = (part for one in args[1:] for part in ast.walk(one))
            texts = (one.value for one in parts if isinstance(one, ast.Constant))
            return " ".join(str(one) for one in texts).replace(",", " ").split()
        case _:
            return []


def _is_made_by_fields(node: ast.ClassDef, others: set[str]) -> bool:
    """Whether a class states no way of being made, but fields, or is one of such a class."""
    if any(isinstance(one, ast.FunctionDef) and one.name == "__init__" for one in node.body):
        return False
    bases = {one.id for one in node.bases if isinstance(one, ast.Name)}
    return bool(bases & others) or any(isinstance(one, ast.AnnAssign) for one in node.body)


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
    """Return names that an iteration may read as the one before left them: lists that grow, too."""
    calls = (one.func for one in ast.walk(ast.Module(loop.body, [])) if isinstance(one, ast.Call))
    grown = {
        function.value.id
        for function in only(ast.Attribute, calls)
        if function.attr in _GROWING and isinstance(function.value, ast.Name)
    }
    return frozenset(carried(loop, grown))


def stored_arrays(body: Sequence[ast.stmt]) -> frozenset[str]:
    """Return names of which statements change elements."""
    return frozenset(
        node.value.id
        for part in body
        for node in only(ast.Subscript, ast.walk(part))
        if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
    )
