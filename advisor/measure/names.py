"""What the names of a file mean: modules, functions and classes, values."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from advisor.measure import pure
from advisor.measure.carried import assigned_names
from advisor.measure.command_line import CommandLine, read_command_line
from advisor.measure.trees import is_main, own_members


@dataclass(slots=True)
class Names:
    """The names of a file.

    Attributes
    ----------
    functions : dict of str to FunctionDef or ClassDef
        Those at its top.
    defined : set of str
        Functions and classes anywhere in it.
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
    """

    functions: dict[str, ast.FunctionDef | ast.ClassDef] = field(default_factory=dict)
    defined: set[str] = field(default_factory=set)
    once: set[str] = field(default_factory=set)
    statements: list[ast.stmt] = field(default_factory=list)
    paths: dict[str, str] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)
    own: frozenset[str] = frozenset()
    given: CommandLine = field(default_factory=CommandLine)
    ranks: bool = False
    talking: frozenset[str] = frozenset()
    unlike: frozenset[str] = frozenset()

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
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                found.assigned.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.defined.add(name)
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
    return found


def _import(found: Names, name: str, path: str) -> None:
    found.paths[name] = path if found.paths.get(name, path) == path else "?"
