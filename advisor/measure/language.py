"""From a file's text to a program that may be sampled: checked, normalised, with loops in windows.

What comes out is written anew, node by node: names are replaced by ``v0``, ``v1`` ..., calls are
of `pure` functions and of functions of the same file that are written anew themselves, and every
loop asks a clock which of its iterations to run. Whatever has no case here is refused with its
text and line. Nothing of the text is executed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from string import Formatter
from typing import Any, TypeVar

from advisor.frontend.trees import check_parseable
from advisor.measure import names as pure
from advisor.measure.names import (
    Names,
    argument_of,
    carried_names,
    is_short,
    names_of,
    own_nodes,
    own_statements,
    root_name,
    run_by,
    stored_arrays,
)
from advisor.source import ParseProblem, assigned_names
from costdb.records import dataclass, field, only, replace

_LONGEST_SHOWN = 60
MPI = "mpi4py.MPI"

# Expressions that are written anew by their parts.
_PLAIN = (
    *(ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp),
    *(ast.Subscript, ast.Slice, ast.Starred, ast.Tuple, ast.List, ast.Set, ast.Dict),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.JoinedStr, ast.FormattedValue, ast.Yield, ast.YieldFrom, ast.NamedExpr),
)
_PARSING = ("parse_args", "parse_known_args", "add_argument_group", "add_mutually_exclusive_group")
_SET = frozenset({"shape", "flat", "real", "imag", "writeable", "prec", "rounding"})
"""What may be set of what is no class of the file."""
_SPELLED = {"collections.namedtuple": 1, "operator.attrgetter": 0, "operator.methodcaller": 0}
"""Functions that take names of members as text, and from which argument on."""
_Placed = list[tuple[int, list[ast.stmt]]]
"""Statements of the top of a file, written anew, and the lines where they stood."""
_Node = TypeVar("_Node", bound=ast.AST)


class Refused(Exception):
    """A part of a program that is not sampled: where it stands, and why."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line, self.why = line, why


@dataclass(frozen=True, slots=True)
class Sampled:
    """A program to sample.

    Attributes
    ----------
    text : str
        Python, written anew; ``clock`` and the roots of `modules` are its only free names.
    plain : str
        The same with loops as they are, to run whole.
    modules : tuple of str
        To import before it runs.
    entry : str or None
        Its name for the function to call; None where the statements of the file are the program.
    parameters : mapping of str to str
        Its names for the parameters of that function, by those of the file.
    kinds : mapping of str to str
        Of those without a default: ``int`` or ``float`` where they are numbers.
    lines : tuple of int
        Where the statements and loops stand that it numbers.
    left_out : tuple of (int, str)
        Statements that it leaves out, which nothing else needs: lines and texts.
    """

    text: str
    plain: str
    modules: tuple[str, ...]
    entry: str | None
    parameters: Mapping[str, str]
    kinds: Mapping[str, str]
    lines: tuple[int, ...]
    left_out: tuple[tuple[int, str], ...]

    @property
    def of_ranks(self) -> bool:
        """Whether it is one of several ranks that communicate."""
        return MPI in self.modules


def sampled_function(path: str, source: str, name: str) -> Sampled:
    """Return a function of a file, with what it calls, as a program to sample.

    Raises
    ------
    Refused
        Some of it is not understood, or not pure.
    ParseProblem
        The text does not parse.
    """
    known = names_of(_parsed(path, source))
    function = known.functions.get(name)
    if not isinstance(function, ast.FunctionDef):
        raise Refused(1, f"there is no function `{name}` at the top of the file")

    def written(writer: _Writer) -> Sampled:
        entry = writer.function(name, marked=True)
        return writer.result(writer.constants(), entry, function)

    return _both(known, source, {}, written)


def sampled_file(path: str, source: str, sizes: Mapping[str, int | float]) -> Sampled:
    """Return the statements of a file, run as a script, as a program to sample.

    What the file assigns to the names of `sizes` at its top is replaced; raises as above.
    """

    def written(writer: _Writer) -> Sampled:
        body = writer.top(writer.known.statements, marked=True)
        if not body and writer.known.ranks:
            body = [(len(source), writer.main())]
        if not any(made for _, made in body):
            raise Refused(1, "nothing in it runs: it defines what other files call")
        return writer.result(body, None, None)

    return _both(names_of(_parsed(path, source)), source, sizes, written)


def _both(
    known: Names,
    source: str,
    sizes: Mapping[str, int | float],
    written: Callable[[_Writer], Sampled],
) -> Sampled:
    """Return a program that is written with loops in windows, and plain."""
    found = written(_Writer(known, source, sizes))
    return replace(found, plain=written(_Writer(known, source, sizes, plain=True)).text)


def _parsed(path: str, source: str) -> ast.Module:
    check_parseable(path, source)
    try:
        tree: ast.Module = _Installed().visit(ast.parse(source, path))
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        raise ParseProblem(path, line, 0, f"this is no Python: {error}") from error
    return tree


class _Installed(ast.NodeTransformer):
    """In the place of imports that may fail, what runs where the modules are there, or are not."""

    def visit_Try(self, node: ast.Try) -> Any:
        self.generic_visit(node)
        first = node.body[0]
        if not isinstance(first, ast.Import | ast.ImportFrom) or not node.handlers:
            return node
        name = getattr(first, "module", None) or first.names[0].name
        there = find_spec(name.partition(".")[0]) is not None
        chosen = [*node.body, *node.orelse] if there else node.handlers[0].body
        return [*chosen, *node.finalbody]


@dataclass(slots=True)
class _Writer:
    known: Names
    source: str
    sizes: Mapping[str, int | float]
    plain: bool = False
    names: dict[str, str] = field(default_factory=dict)
    made: dict[str, ast.stmt] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)
    lines: list[int] = field(default_factory=list)
    left_out: list[tuple[int, str]] = field(default_factory=list)
    left: str = ""
    compiled: bool = False
    alone: bool = False
    marking: bool = False
    once: bool = False
    stored: set[str] = field(default_factory=set)
    maybe: bool = False
    within: str = ""
    inside: frozenset[str] = frozenset()
    foreign: dict[str, Refused] = field(default_factory=dict)

    # what comes out

    def result(self, body: _Placed, entry: str | None, function: ast.FunctionDef | None) -> Sampled:
        """Put functions and other statements in the order of the file, in which each is there
        when it is needed: by a default, by a base, by what calls it."""
        made = [(self.known.functions[name].lineno, [one]) for name, one in self.made.items()]
        ordered = sorted((*made, *body), key=lambda part: part[0])
        statements = [statement for _, part in ordered for statement in part]
        module = ast.fix_missing_locations(ast.Module(statements, []))
        arguments = (
            ast.arguments([], [], None, [], [], None, []) if function is None else function.args
        )
        given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        lacking = given[: len(given) - len(arguments.defaults)]
        return Sampled(
            f"{ast.unparse(module)}\n",
            "",
            tuple(sorted(self.modules)),
            entry,
            {one.arg: self.name(one.arg) for one in given},
            {one.arg: _kind(one.annotation) for one in lacking},
            tuple(self.lines),
            tuple(self.left_out),
        )

    def name(self, name: str) -> str:
        if name in self.known.kept:
            return name
        return self.names.setdefault(name, f"v{len(self.names)}")

    def place(self, node: ast.stmt) -> int:
        self.lines.append(node.lineno)
        return len(self.lines) - 1

    def refused(self, node: ast.AST, why: str) -> Refused:
        return Refused(getattr(node, "lineno", 1), why)

    def shown(self, node: ast.AST) -> str:
        text = " ".join((ast.get_source_segment(self.source, node) or ast.unparse(node)).split())
        return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."

    def top(self, body: Sequence[ast.stmt], *, marked: bool = False) -> _Placed:
        """Write statements of the top of the file, those that come to nothing left out."""
        parts = ((node.lineno, self.block([node], marked=marked)) for node in body)
        return [(line, part) for line, part in parts if part]

    def constants(self) -> _Placed:
        """Return the assignments of the file to names that functions use, as far as they can be.

        A function that needs one which cannot be is refused by the name.
        """
        used = set[str]()

        def use() -> None:
            for name in self.made:
                for part in run_by(self.known.functions[name]):
                    used.update(one.id for one in ast.walk(part) if isinstance(one, ast.Name))

        use()
        found: _Placed = []
        for statement in reversed(self.known.statements):
            assigned = isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign)
            if assigned and used.intersection(assigned_names(statement)):
                used |= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
                found.append((statement.lineno, self.statement(statement)))
                use()  # what it calls needs more
        return found

    def function(self, name: str, *, marked: bool = False) -> str:
        """Write a function of the file; return its name."""
        written = self.name(name)
        if name not in self.made:
            node = self.known.functions[name]
            self.made[name] = ast.Pass()  # it may call itself
            try:
                with self.at(inside=frozenset()):
                    if isinstance(node, ast.ClassDef):
                        made = self.class_(node, written)
                    else:
                        marked = marked or (self.marking and name in self.known.once)
                        made = self.definition(node, written, marked=marked)
            except Refused:
                del self.made[name]
                raise
            self.made[name] = made
        return written

    def is_own(self, name: str) -> bool:
        return name in self.known.functions or name in self.known.assigned

    @contextmanager
    def at(self, **place: Any) -> Iterator[None]:
        """Have the writer somewhere else for a while."""
        before = {name: getattr(self, name) for name in place}
        for name, value in place.items():
            setattr(self, name, value)
        try:
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)

    def main(self) -> list[ast.stmt]:
        """Return a call of the function that ranks run with the communicator of all."""
        match self.known.functions.get("main"):
            case ast.FunctionDef(args=given) as function:
                lacking = len(given.posonlyargs) + len(given.args) - len(given.defaults)
                if lacking > 1:
                    return []
                world = [self.of_path(f"{MPI}.COMM_WORLD")] * lacking
                name = ast.Name(self.function("main"))
                mark = _lines(f"clock.mark({self.place(function)})")
                return [*mark, ast.Expr(ast.Call(name, world, []))]
            case _:
                return []

    def definition(
        self, node: ast.FunctionDef, name: str, *, marked: bool = False, method: bool = False
    ) -> ast.stmt:
        """Return a function written anew; nobody may ever call a method."""
        decorators = [one for part in node.decorator_list for one in self.decorator(part)]
        # who asks a generator for its values needs all of them
        parts = [one for part in node.body for one in own_nodes(part)]
        yields = any(isinstance(one, ast.Yield | ast.YieldFrom) for one in parts)
        functions = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
        compiled = any(self.known.path(one) in pure.COMPILERS for one in functions)
        compiled = self.compiled or compiled or yields
        apart = node in self.known.apart
        with self.at(left="", compiled=compiled, alone=apart, stored=set(), maybe=False):
            given = self.copied(node.args)
            try:
                with self.at(inside=frozenset()):
                    body = self.block(node.body, marked=marked and not compiled) or [ast.Pass()]
            except Refused as refused:
                if not method:
                    raise
                body = self.refusal(refused)
        return ast.FunctionDef(name, given, body, decorators)

    def refusal(self, refused: Refused) -> list[ast.stmt]:
        """Return what ends the run where it comes to what is not sampled."""
        self.lines.append(refused.line)
        return _lines(f"clock.refuse({len(self.lines) - 1}, {refused.why!r})")

    def class_(self, node: ast.ClassDef, name: str) -> ast.stmt:
        """Return a class written anew: methods and values, on classes of the file and others."""
        decorators = [one for part in node.decorator_list for one in self.decorator(part)]
        bases = [one for base in node.bases if (one := self.base(base)) is not None]
        if any("enum." in ast.unparse(one) for one in bases) and not any(
            map(self._is_member, node.body)
        ):
            # called, it would make classes of any names
            raise self.refused(node, f"class `{node.name}` has no members")
        if any(self.known.path(one.value) != "abc.ABCMeta" for one in node.keywords):
            raise self.refused(node, f"class `{node.name}` is not sampled")
        with self.at(within=node.name, inside=frozenset()):
            body = [one for part in node.body for one in self.of_class(part)]
        return ast.ClassDef(name, bases, [], body or [ast.Pass()], decorators)

    def _is_member(self, node: ast.stmt) -> bool:
        """Whether a statement surely makes a member of an enumeration."""
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name[0] != "_":
                made = self.known.path(value.func) if isinstance(value, ast.Call) else ""
                return made == "enum.auto" or isinstance(value, ast.Constant | ast.Tuple)
            case _:
                return False

    def base(self, node: ast.expr) -> ast.expr | None:
        """Return what a class is made of; nothing for what only says so."""
        node = node.value if isinstance(node, ast.Subscript) else node
        path = self.known.path(node)
        if path in ("typing.Generic", "typing.Protocol"):
            return None
        return self.of_path(path) if path and path in pure.BASES else self.expression(node)

    def of_class(self, part: ast.stmt) -> list[ast.stmt]:
        """Return a part of a class written anew."""
        match part:
            case ast.FunctionDef(name=name):
                if name.startswith("__") and name.endswith("__") and name not in pure.OPERATORS:
                    raise self.refused(part, f"`{name}` is not sampled")
                shown = name if name in pure.OPERATORS else self.member(part, name)
                made = [self.definition(part, shown, method=True)]
            case ast.ClassDef(name=name):
                made = [self.class_(part, self.member(part, name))]
            case ast.Assign(targets=[ast.Name(id="__slots__" | "__match_args__" as name)]):
                return [ast.Assign([ast.Name(name)], self.spelled(part.value))]
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                made = [ast.Assign([ast.Name(self.member(part, name))], self.expression(value))]
            case ast.AnnAssign(target=ast.Name(id=name), annotation=said, value=given):
                said = said.value if isinstance(said, ast.Subscript) else said
                path = self.known.path(said)
                kind = self.of_path(path) if path in pure.CALLS else ast.Name("object")
                first = None if given is None else self.expression(given)
                made = [ast.AnnAssign(ast.Name(self.member(part, name)), kind, first, 1)]
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return []
            case _:
                raise self.refused(part, f"`{self.shown(part)}` is not sampled")
        self.inside |= {name}
        return made

    def spelled(self, node: ast.expr) -> ast.expr:
        """Return texts that name members, as these are named here."""
        match node:
            case ast.Constant(value=str(text)):
                words = (word.split(".") for word in text.replace(",", " ").split())
                made = (".".join(self.member(node, one) for one in word) for word in words)
                return ast.Constant(" ".join(made))
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return ast.Tuple([self.spelled(one) for one in parts])
            case _:
                raise self.refused(node, f"`{self.shown(node)}` is not known before it runs")

    def decorator(self, node: ast.expr) -> list[ast.expr]:
        """Return what compiles a function, or wraps it; nothing for marks."""
        words = node.keywords if isinstance(node, ast.Call) else []
        path = self.known.path(node.func if isinstance(node, ast.Call) else node)
        if path in pure.MARKS:
            return []
        root = root_name(node)
        if path in pure.CALLS or (path is None and (self.is_own(root) or root in pure.BUILTINS)):
            return [self.expression(node)]
        if path not in pure.COMPILERS:
            raise self.refused(node, f"`@{self.shown(node)}` is not known")
        self.modules.add("numba")
        kept = [
            ast.keyword(one.arg, self.expression(one.value))
            for one in words
            if one.arg in pure.COMPILER_OPTIONS
        ]
        return [ast.Call(ast.Attribute(ast.Name("numba"), "jit"), [], kept)]

    # statements

    def block(self, body: Sequence[ast.stmt], *, marked: bool = False) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for node in body:
            before = len(self.lines)
            mark = _lines(f"clock.mark({self.place(node)})") if marked else []
            # what runs once in a statement that runs once is told by its own statements
            self.marking = marked and isinstance(node, ast.Expr | ast.Assign | ast.Return)
            self.once = marked
            try:
                with self.at(alone=self.alone or node in self.known.apart):
                    found = self.statement(node)
            except Refused as refused:
                if not self._is_foreign(node):
                    if not self.maybe:
                        raise
                    found = self.refusal(refused)
                else:
                    found = self.leave_out(node, refused)
            if not found:
                del self.lines[before:]
                continue
            made += [*mark, *found]
        return made

    def leave_out(self, node: ast.stmt, refused: Refused) -> list[ast.stmt]:
        self.foreign |= dict.fromkeys(assigned_names(node), refused)
        self.left_out.append((node.lineno, self.shown(node)))
        return []

    def _is_foreign(self, node: ast.stmt) -> bool:
        """Whether a statement only calls, or assigns, what comes of other libraries.

        It can be left out: whatever else uses what it assigns is refused. What it has a function of
        the file do is not.
        """
        names = (one.id for one in ast.walk(node) if isinstance(one, ast.Name))
        if any(name in self.known.functions for name in names):
            return False
        match node:
            case ast.Assign(targets=[ast.Subscript() | ast.Attribute() as value]):
                root = root_name(value)
            case ast.Expr(value=ast.Tuple(elts=parts)):
                return all(self._is_foreign(ast.Expr(part)) for part in parts)
            case ast.Expr(value=value) | ast.Assign(value=value):
                root = root_name(value)
            case _:
                return False
        path = self.known.paths.get(root)
        if path is not None:
            writes = isinstance(value, ast.Call) and self.known.path(value.func) in pure.WRITING
            return writes or path.partition(".")[0] not in ("numpy", "scipy")
        known = not root or self.is_own(root) or root in pure.BUILTINS
        return root in self.foreign or not known

    def inner(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        return self.block(body) or [ast.Pass()]

    def way(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Write statements that may never run: one that is refused ends only a run with it."""
        with self.at(maybe=True):
            return self.block(body)

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.AnnAssign(value=None):
                return []  # what is used of a module is looked at where it is
            case ast.Expr(value=ast.Constant()):
                return []
            case ast.FunctionDef() | ast.ClassDef() if node in self.known.functions.values():
                return []
            case ast.FunctionDef(name=name):
                return [self.definition(node, self.name(name))]
            case ast.ClassDef(name=name):
                return [self.class_(node, self.name(name))]
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                return [type(node)([self.name(name) for name in names])]
            case ast.Expr(value=ast.Call(func=function, args=args)) if (
                self.known.path(function) or getattr(function, "id", "")
            ) in pure.TELLING:
                # what is computed for it; what is at hand takes no time to speak of
                computed = [one for one in args if [*only(ast.Call, ast.walk(one))]]
                return [ast.Expr(ast.Tuple(self.part(computed)))] if computed else []
            case ast.Raise(exc=raised):
                return [ast.Raise(self.part(raised))]
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(attr="exit") | ast.Name(id="exit" | "quit"), args=args
                )
            ):
                return [ast.Raise(ast.Call(ast.Name("SystemExit"), self.part(args), []))]
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="Abort"))):
                return [ast.Raise(ast.Call(ast.Name("RuntimeError"), [], []))]
            case ast.Assign(targets=[ast.Name(id=name)]) if (
                name in self.sizes and node in self.known.statements
            ):
                return [ast.Assign([ast.Name(self.name(name))], ast.Constant(self.sizes[name]))]
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                return [self.copied(ast.Assign([target], value))]
            case ast.Expr() | ast.Assign() | ast.AugAssign() | ast.Return() | ast.Continue():
                return [self.copied(node)]
            case ast.Match():
                return [self.copied(node)]
            case ast.If(test=test, body=then, orelse=orelse):
                chosen = self.expression(test)
                return [ast.If(chosen, self.way(then) or [ast.Pass()], self.way(orelse))]
            case ast.For():
                return self.loop(node)
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=last):
                caught = [self.handler(one) for one in handlers]
                return [ast.Try(self.inner(body), caught, self.block(orelse), self.block(last))]
            case ast.While(test=test, body=body, orelse=orelse):
                # counting trips takes as long as a short one: only where nothing else would end it
                counted = self.once and not self.compiled
                number = self.place(node) if counted else 0
                with self.at(left=""):
                    inside = self.inner(body)
                repeated = ast.While(self.expression(test), inside, self.block(orelse))
                if not counted or self.plain:
                    return [repeated]
                inside[:0] = _lines(f"clock.trip({number})")
                return [*_lines(f"clock.enter({number})"), repeated]
            case ast.Break():
                return [*_lines(f"{self.left}.broke = True" if self.left else ""), ast.Break()]
            case ast.Assert(test=test):
                return [ast.Assert(self.expression(test))]
            case ast.Delete(targets=targets):
                return [ast.Delete([self.target(one) for one in targets])]
            case ast.With(
                items=[ast.withitem(context_expr=ast.Call(func=ast.Name(id="open")) as call)],
                body=body,
            ):  # whatever does more with the file than write to it is refused by its name
                why = self.refused(node, f"`{self.shown(call)}` has no row among what is sampled")
                self.leave_out(ast.With(node.items, [], lineno=node.lineno), why)
                return self.block(body)
            case ast.With(items=items, body=body):
                return [ast.With(self.part(items), self.inner(body))]
            case _:
                raise self.refused(node, f"`{self.shown(node)}` is not sampled")

    def loop(self, node: ast.For) -> list[ast.stmt]:
        """Write a loop whose iterations come in parts that the clock chooses."""
        talks = self.known.talks(node)
        # of a loop in which a rank talks to others in other loops no iteration is left out
        whole = self.compiled or is_short(node.iter) or (talks and self.alone)
        place = 0 if whole else self.place(node)
        if whole or self.plain:
            over = self.expression(node.iter)
            target = self.target(node.target)
            with self.at(left=""):
                body = self.inner(node.body)
            return [ast.For(target, over, body, self.block(node.orelse))]
        name, part = f"loop{place}", f"part{place}"
        kind, over = "", node.iter
        if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and not over.keywords:
            function, given = over.func.id, over.args
            own = self.is_own(function)
            if function == "enumerate" and len(given) == 1 and not own:
                kind, over = "numbered", given[0]
            elif function == "zip" and given and not own:
                kind, over = "zipped", ast.Tuple(list(given))
        sequence = self.expression(over)
        # what has no value before the loop is handed on by no first iteration
        there = self.stored.copy()
        target = self.target(node.target)
        with self.at(left=name):
            body = self.inner(node.body)
        after = self.block(node.orelse)
        names = sorted(self.name(n) for n in carried_names(node) if n in there)
        handed = f"{', '.join(names)}, = {name}.%s({', '.join(names)})" if names else ""
        known = self.known.kept | self.names.keys()
        stored = sorted(self.name(one) for one in stored_arrays(node.body) if one in known)
        ends = any(
            isinstance(one, ast.Break) for part_ in node.body for one in own_statements(part_)
        )
        asked = ast.Attribute(ast.Name("clock"), "loop")
        given = [ast.Constant(place), sequence, ast.Constant(kind)]
        flags = [ast.keyword("talks", ast.Constant(True))] if talks else []
        broke = ast.Attribute(ast.Name(name), "broke")
        within = [
            *_lines(handed.replace("%s", "carry")),
            ast.For(target, ast.Name(part), body, []),
            *_lines(f"if {name}.broke: break" if ends else ""),
        ]
        return [
            ast.Assign([ast.Name(name)], ast.Call(asked, given, flags)),
            ast.For(ast.Name(part), ast.Name(name), within, []),
            *_lines(handed.replace("%s", "left")),
            *_lines(f"{name}.touch({', '.join(stored)})" if stored else ""),
            *([ast.If(ast.UnaryOp(ast.Not(), broke), after, [])] if after else ()),
        ]

    def handler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        """Write what follows an exception; the clock's own are none that a name stands for."""
        kind = ast.Name("Exception") if node.type is None else self.expression(node.type)
        name = None if node.name is None else self.name(node.name)
        return ast.ExceptHandler(kind, name, self.way(node.body) or [ast.Pass()])

    def target(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Name(id=name, ctx=context):
                self.stored.add(name)
                return ast.Name(self.name(name), context)
            case ast.Tuple() | ast.List() | ast.Starred() | ast.Subscript():
                return self.copied(node)
            case ast.Attribute(value=value, attr=name) if self.known.path(value) is None and (
                name in self.known.own or name in _SET
            ):
                return ast.Attribute(self.expression(value), self.member(node, name), node.ctx)
            case _:
                raise self.refused(node, f"`{self.shown(node)}` is assigned")

    # expressions

    def of_path(self, path: str) -> ast.expr:
        root, *rest = path.split(".")
        found: ast.expr = ast.Name(root)
        for name in rest:
            found = ast.Attribute(found, name)
        module = path.rpartition(".")[0] if root == "scipy" else root
        self.modules.add(MPI if root == "mpi4py" else module)
        return found

    def imported(self, node: ast.expr, path: str) -> ast.expr:
        """Return what is imported, or an attribute of such a value, if it is pure."""
        base, _, last = path.rpartition(".")
        if path in pure.CALLS or path in pure.VALUES:
            return self.of_path(path)
        if base in pure.CALLS | pure.VALUES and isinstance(node, ast.Attribute):
            return ast.Attribute(self.of_path(base), self.member(node, last))
        raise self.refused(node, f"`{self.shown(node)}`: {path} has no row among what is sampled")

    def copied(self, node: _Node) -> _Node:
        """Return a node of the same kind whose parts are written anew."""
        return type(node)(**{name: self.part(one) for name, one in ast.iter_fields(node)})

    def part(self, part: Any) -> Any:
        match part:
            case list():
                return [self.part(one) for one in part]
            case ast.expr() if isinstance(getattr(part, "ctx", None), ast.Store):
                return self.target(part)
            case ast.expr():
                return self.expression(part)
            case ast.match_case(pattern=pattern, guard=guard, body=body):
                inside = self.way(body) or [ast.Pass()]
                return ast.match_case(self.part(pattern), self.part(guard), inside)
            case ast.pattern():
                made = self.copied(part)
                for place in ("name", "rest"):
                    if (name := getattr(part, place, None)) is not None:
                        setattr(made, place, self.name(name))
                if isinstance(made, ast.MatchClass):
                    made.kwd_attrs = [self.member(part, name) for name in made.kwd_attrs]
                return made
            case ast.arg(arg=name):
                self.stored.add(name)
                return ast.arg(self.name(name))
            case ast.comprehension() | ast.withitem():
                return self.copied(part)
            case _:
                return part  # an operator, a context, what a constant is

    def expression(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Name(id=name):
                return self.named(node, name)
            case ast.Attribute(value=value, attr=name):
                path = self.known.path(node)
                if path == "sys.argv":
                    return ast.List([ast.Constant("script")])
                if path is not None:
                    return self.imported(node, path)
                if name == "__class__" and isinstance(value, ast.Name):
                    return ast.Call(ast.Name("type"), [self.expression(value)], [])
                return ast.Attribute(self.expression(value), self.member(node, name))
            case ast.Call(func=function, args=args, keywords=words):
                return self.special(node) or ast.Call(
                    self.expression(function),
                    self.part(args),
                    [self.keyword(one, node) for one in words],
                )
            case ast.Lambda(args=arguments, body=body):
                return ast.Lambda(self.copied(arguments), self.expression(body))
            case _ if isinstance(node, _PLAIN):
                return self.copied(node)
            case _:
                raise self.refused(node, f"`{self.shown(node)}` is not sampled")

    def special(self, node: ast.Call) -> ast.expr | None:
        """Return a call of something that takes names as text, or asks for what no run here has."""
        path = self.known.path(node.func)
        builtin = not path and not self.is_own(root_name(node.func))
        own = getattr(node.func, "attr", "") in self.known.own
        match node:
            case ast.Call(args=[_, *rest]) if path in ("os.environ.get", "os.getenv"):
                return self.expression(rest[0]) if rest else ast.Constant(None)
            case ast.Call(args=args) if path in _SPELLED and path is not None:
                first = _SPELLED[path]
                last = first + 1 if path != "operator.attrgetter" else len(args)
                texts = [self.spelled(one) for one in args[first:last]]
                given = [*self.part(args[:first]), *texts, *self.part(args[last:])]
                words = [self.keyword(one, node) for one in node.keywords]
                return ast.Call(self.of_path(path), given, words)
            case ast.Call(func=ast.Attribute(value=value, attr="add_argument")) if not own:
                return self.argument(node, value)
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if (
                not own and path is None and name in _PARSING
            ):  # the command line is empty; what only shows how to use it is left out
                given = [ast.List([])] if name.startswith("parse") else []
                return ast.Call(ast.Attribute(self.expression(value), name), given, [])
            case ast.Call() if path == "argparse.ArgumentParser":
                return ast.Call(self.of_path(path), [], [])
            case ast.Call(
                func=ast.Name(id="getattr" | "hasattr" | "setattr")
                | ast.Attribute(value=ast.Name(id="object"), attr="__setattr__") as function,
                args=[whole, ast.Constant(value=str(name)), *rest],
                keywords=[],
            ) if builtin:
                if "setattr" in ast.unparse(function):
                    self.target(ast.Attribute(whole, name, ast.Store(), lineno=node.lineno))
                given = [self.expression(whole), ast.Constant(self.member(node, name))]
                return ast.Call(function, [*given, *self.part(rest)], [])
            case ast.Call(func=ast.Name(id="type"), args=[one], keywords=[]) if builtin:
                return ast.Call(ast.Name("type"), [self.expression(one)], [])
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")
            ) if _is_plain(text):
                words = [ast.keyword(one.arg, self.expression(one.value)) for one in node.keywords]
                function = ast.Attribute(ast.Constant(text), "format")
                return ast.Call(function, self.part(node.args), words)
            case _:
                return None

    def argument(self, node: ast.Call, parser: ast.expr) -> ast.expr:
        """Return a call that has a parser give an argument by the name that it has here."""
        name, names = argument_of(node), node.args
        shown = ("help", "metavar", "dest")
        words = {one.arg: one.value for one in node.keywords if one.arg not in shown}
        optional = ast.unparse(names[0])[1:2] == "-" if names else False
        if name in self.sizes:
            words |= {"default": ast.Constant(self.sizes[name])}
            words |= {"required": ast.Constant(False)} if optional else {"nargs": ast.Constant("?")}
        elif "required" in words or not (optional or "nargs" in words):
            raise self.refused(node, f"`{name}` has no default: pass -D {name}=...")
        taken = ast.Constant(self.member(node, name))
        kept = [ast.keyword(word, self.expression(value)) for word, value in words.items()]
        kept += [ast.keyword("dest", taken)] if optional else []
        function = ast.Attribute(self.expression(parser), "add_argument")
        return ast.Call(function, self.part(names) if optional else [taken], kept)

    def named(self, node: ast.expr, name: str) -> ast.expr:
        if name in self.inside:
            return ast.Name(self.member(node, name))
        if name in self.known.paths:
            return self.imported(node, self.known.paths[name])
        if name in self.known.functions:
            return ast.Name(self.function(name))
        if name in pure.BUILTINS and name not in self.known.assigned:
            return ast.Name(name)
        if name in self.foreign:
            raise self.refused(node, f"`{name}` is not known: {self.foreign[name]}")
        if name == "__name__":
            return ast.Constant("__main__")
        if name not in self.known.assigned:
            raise self.refused(node, f"nothing is known of `{name}`")
        return ast.Name(self.name(name))

    def member(self, node: ast.AST, name: str) -> str:
        of_mpi = self.known.ranks and name in pure.MPI_MEMBERS
        if name in self.known.own and name not in pure.MEMBERS and not of_mpi:
            # never the name of what an array has
            return f"own_{name}"
        if name not in pure.MEMBERS | pure.OPERATORS and not of_mpi:
            raise self.refused(node, f"`.{name}` has no row among what is sampled")
        return name

    def keyword(self, word: ast.keyword, call: ast.Call) -> ast.keyword:
        """Write what a call gives by name: to a function, or for fields."""
        path, function = self.known.path(call.func), call.func
        name = getattr(function, "attr", getattr(function, "id", ""))
        if self.within and (name in ("cls", "__class__") or isinstance(function, ast.Call)):
            name = self.within
        given, value = word.arg, self.expression(word.value)
        fields = path == "dataclasses.replace" or name == "_replace"
        if fields or (path is None and name in self.known.fields):
            if given is None:
                raise self.refused(word.value, "`**` is not known before it runs")
            return ast.keyword(self.member(call, given), value)
        own = path is None and given in self.known.parameters
        return ast.keyword(self.name(given) if own and given else given, value)


def _is_plain(text: str) -> bool:
    """Whether a format asks for no part of what it is given."""
    try:
        fields = [(name or "", inner or "") for _, name, inner, _ in Formatter().parse(text)]
    except ValueError:
        return False
    return all(f"_{name}".isidentifier() and _is_plain(inner) for name, inner in fields)


def _lines(text: str) -> list[ast.stmt]:
    """Return statements that ask or tell the clock."""
    return ast.parse(text).body


def _kind(annotation: ast.expr | None) -> str:
    """Return what kind of number an annotation means; ``float`` where it says nothing."""
    return "int" if annotation is not None and ast.unparse(annotation) == "int" else "float"
