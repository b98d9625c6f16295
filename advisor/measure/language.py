"""From a file's text to a program that may be sampled: checked, normalised, with loops in windows.

What comes out is written anew, node by node: names are replaced by ``v0``, ``v1`` ..., calls are
of `pure` functions and of functions of the same file that are written anew themselves, and every
loop asks a clock which of its iterations to run. Whatever has no case here is refused with its
text and line. Nothing of the text is executed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from advisor.frontend.trees import check_parseable
from advisor.measure import names as pure
from advisor.measure.names import (
    Names,
    assigned_names,
    carried_names,
    is_short,
    names_of,
    own_nodes,
    own_statements,
    root_name,
    run_by,
    stored_arrays,
)
from advisor.source import ParseProblem
from costdb.records import dataclass, field

_LONGEST_SHOWN = 60
MPI = "mpi4py.MPI"

# Expressions that are written anew by their parts.
_PLAIN = (
    *(ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp),
    *(ast.Subscript, ast.Slice, ast.Starred, ast.Tuple, ast.List, ast.Set, ast.Dict),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.JoinedStr, ast.FormattedValue, ast.Yield),
)
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
    writer = _Writer(names_of(_parsed(path, source), {}), source)
    function = writer.known.functions.get(name)
    if not isinstance(function, ast.FunctionDef):
        raise Refused(1, f"there is no function `{name}` at the top of the file")
    entry = writer.function(name, marked=True)
    return writer.result(writer.constants(), entry, function)


def sampled_file(path: str, source: str, sizes: Mapping[str, int | float]) -> Sampled:
    """Return the statements of a file, run as a script, as a program to sample.

    What the file assigns to the names of `sizes` at its top is replaced; raises as above.
    """
    writer = _Writer(names_of(_parsed(path, source), sizes), source, sizes)
    body = writer.top(writer.known.statements, marked=True)
    if not body and writer.known.ranks:
        body = [(len(source), writer.main())]
    if not any(made for _, made in body):
        raise Refused(1, "nothing in it runs: it defines what other files call")
    return writer.result(body, None, None)


def _parsed(path: str, source: str) -> ast.Module:
    check_parseable(path, source)
    try:
        return ast.parse(source, path)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        raise ParseProblem(path, line, 0, f"this is no Python: {error}") from error


@dataclass(slots=True)
class _Writer:
    known: Names
    source: str
    sizes: Mapping[str, int | float] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    made: dict[str, ast.stmt] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)
    lines: list[int] = field(default_factory=list)
    left_out: list[tuple[int, str]] = field(default_factory=list)
    breaks: list[str] = field(default_factory=list)
    compiled: bool = False
    alone: bool = False
    marking: bool = False
    once: bool = False
    stored: set[str] = field(default_factory=set)
    foreign: dict[str, Refused] = field(default_factory=dict)

    # what comes out

    def result(self, body: _Placed, entry: str | None, function: ast.FunctionDef | None) -> Sampled:
        """Put functions and other statements in the order of the file, in which each is there
        when it is needed: by a default, by a base, by what calls it."""
        made = [(self.known.functions[name].lineno, [one]) for name, one in self.made.items()]
        ordered = sorted((*made, *body), key=lambda part: part[0])
        statements = [statement for _, part in ordered for statement in part]
        module = ast.fix_missing_locations(ast.Module(statements, []))
        arguments = ast.arguments([], [], None, [], [], None, [])
        arguments = arguments if function is None else function.args
        given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        bound = len(arguments.defaults)
        lacking = given[: len(given) - bound] if bound else given
        return Sampled(
            f"{ast.unparse(module)}\n",
            tuple(sorted(self.modules)),
            entry,
            {one.arg: self.name(one.arg) for one in given},
            {one.arg: _kind(one.annotation) for one in lacking},
            tuple(self.lines),
            tuple(self.left_out),
        )

    def name(self, name: str) -> str:
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
            names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
            stored = {
                n.id
                for n in ast.walk(statement)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            }
            if assigned and stored & used:
                used |= names
                found.append((statement.lineno, self.statement(statement)))
                use()  # what it calls needs more
        return found

    def function(self, name: str, *, marked: bool = False) -> str:
        """Write a function of the file; return its name."""
        written = self.name(name)
        if name not in self.made:
            node = self.known.functions[name]
            self.made[name] = ast.Pass()  # it may call itself
            if isinstance(node, ast.ClassDef):
                made = self.class_(node, written)
            else:
                marked = marked or (self.marking and name in self.known.once)
                made = self.definition(node, written, marked=marked)
            self.made[name] = made
        return written

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

    def definition(self, node: ast.FunctionDef, name: str, *, marked: bool = False) -> ast.stmt:
        """Return a function written anew."""
        decorators = [one for part in node.decorator_list for one in self.decorator(part)]
        outer = self.breaks, self.compiled, self.alone, self.stored
        self.breaks, self.alone, self.stored = [], node in self.known.apart, set()
        # who asks a generator for its values needs all of them
        yields = any(isinstance(one, ast.Yield) for part in node.body for one in own_nodes(part))
        compiled = any(isinstance(one, ast.Call) for one in decorators)
        self.compiled = self.compiled or compiled or yields
        given = self.arguments(node.args)
        body = self.block(node.body, marked=marked and not self.compiled) or [ast.Pass()]
        self.breaks, self.compiled, self.alone, self.stored = outer
        return ast.FunctionDef(name, given, body, decorators)

    def class_(self, node: ast.ClassDef, name: str) -> ast.stmt:
        """Return a class written anew: methods and plain values, on classes of the file."""
        if node.decorator_list or node.keywords:
            raise self.refused(node, f"class `{node.name}` is not sampled")
        body: list[ast.stmt] = []
        for part in node.body:
            match part:
                case ast.FunctionDef(name=method):
                    known = method in pure.OPERATORS or not method.startswith("__")
                    if not known:
                        raise self.refused(part, f"`{method}` is not sampled")
                    shown = method if method in pure.OPERATORS else self.member(part, method)
                    body.append(self.definition(part, shown))
                case ast.Assign(targets=[ast.Name(id=value)]):
                    place = ast.Name(self.member(part, value))
                    body.append(ast.Assign([place], self.expression(part.value)))
                case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.AnnAssign(value=None):
                    pass
                case _:
                    raise self.refused(part, f"`{self.shown(part)}` is not sampled")
        bases = [self.named(base, base.id) for base in node.bases if isinstance(base, ast.Name)]
        bases = [base for base in bases if ast.unparse(base) != "object"]
        return ast.ClassDef(name, bases, [], body or [ast.Pass()], [])

    def decorator(self, node: ast.expr) -> list[ast.expr]:
        """Return what compiles a function, nothing for marks."""
        words = node.keywords if isinstance(node, ast.Call) else []
        path = self.known.path(node.func if isinstance(node, ast.Call) else node)
        if path in pure.MARKS:
            return []
        if path is None and isinstance(node, ast.Name) and node.id in pure.OF_CLASSES:
            return [ast.Name(node.id)]
        if path in pure.REMEMBERING:
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

    def arguments(self, given: ast.arguments) -> ast.arguments:
        def renamed(one: ast.arg) -> ast.arg:
            self.stored.add(one.arg)
            return ast.arg(self.name(one.arg))

        return ast.arguments(
            [renamed(one) for one in given.posonlyargs],
            [renamed(one) for one in given.args],
            renamed(given.vararg) if given.vararg else None,
            [renamed(one) for one in given.kwonlyargs],
            [None if one is None else self.expression(one) for one in given.kw_defaults],
            None if given.kwarg is None else self._no_names(given.kwarg),
            [self.expression(one) for one in given.defaults],
        )

    def _no_names(self, node: ast.arg) -> ast.arg:
        raise self.refused(node, f"`**{node.arg}` is not known before it runs")

    # statements

    def block(self, body: Sequence[ast.stmt], *, marked: bool = False) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for node in body:
            before = len(self.lines)
            mark = _lines(f"clock.mark({self.place(node)})") if marked else []
            # what runs once in a statement that runs once is told by its own statements
            self.marking = marked and isinstance(node, ast.Expr | ast.Assign | ast.Return)
            self.once = marked
            outer, self.alone = self.alone, self.alone or node in self.known.apart
            try:
                found = self.statement(node)
            except Refused as refused:
                if not self._is_foreign(node):
                    raise
                self.foreign |= dict.fromkeys(assigned_names(node), refused)
                self.left_out.append((node.lineno, self.shown(node)))
                found = []
            finally:
                self.alone = outer
            if not found:
                del self.lines[before:]
                continue
            made += [*mark, *found]
        return made

    def _is_foreign(self, node: ast.stmt) -> bool:
        """Whether a statement only calls, or assigns, what comes of other libraries.

        It can be left out: whatever else uses what it assigns is refused. What it has a function of
        the file do is not.
        """
        names = (one.id for one in ast.walk(node) if isinstance(one, ast.Name))
        if any(name in self.known.functions for name in names):
            return False
        match node:
            case ast.Assign(targets=[ast.Subscript() | ast.Attribute() as whole]):
                root = root_name(whole)
            case ast.Expr(value=ast.Tuple(elts=parts)):
                return all(self._is_foreign(ast.Expr(part)) for part in parts)
            case ast.Expr(value=value) | ast.Assign(value=value):
                root = root_name(value)
            case _:
                return False
        path = self.known.paths.get(root)
        if path is not None:
            return path.partition(".")[0] not in ("numpy", "scipy")
        own = root in self.known.functions or root in self.known.assigned
        known = not root or own or root in pure.BUILTINS
        return root in self.foreign or not known

    def inner(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        return self.block(body) or [ast.Pass()]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.Import() | ast.ImportFrom():
                return []  # what is used of it is looked at where it is
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return []
            case ast.FunctionDef() | ast.ClassDef() if node in self.known.functions.values():
                return []
            case ast.FunctionDef(name=name):
                return [self.definition(node, self.name(name))]
            case ast.Global(names=names):
                return [ast.Global([self.name(name) for name in names])]
            case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=args)):
                return self.printed(args)
            case ast.Assign() | ast.Expr() if self.known.given.is_setting_up(node):
                return []
            case ast.Raise(exc=None):
                return [ast.Raise()]
            case ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name))) if (
                name in pure.BUILTINS or name in self.known.functions
            ):
                return [ast.Raise(self.part(node.exc))]
            case ast.Raise() | ast.Expr(value=ast.Call(func=ast.Attribute(attr="exit" | "Abort"))):
                return [ast.Raise(ast.Call(ast.Name("RuntimeError"), [], []))]
            case ast.Assign(targets=[ast.Name(id=name)]) if (
                name in self.sizes and node in self.known.statements
            ):
                return [ast.Assign([ast.Name(self.name(name))], ast.Constant(self.sizes[name]))]
            case ast.AnnAssign(value=None):
                return []
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                return [self.copied(ast.Assign([target], value))]
            case ast.Expr(value=ast.Call() | ast.Yield()):
                return [self.copied(node)]
            case ast.Assign() | ast.AugAssign() | ast.Return() | ast.Continue():
                return [self.copied(node)]
            case ast.If(test=test, body=then, orelse=orelse):
                return [ast.If(self.expression(test), self.inner(then), self.block(orelse))]
            case ast.For():
                return self.loop(node)
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=last):
                caught = [self.handler(one) for one in handlers]
                return [ast.Try(self.inner(body), caught, self.block(orelse), self.block(last))]
            case ast.While(test=test, body=body, orelse=orelse):
                # counting trips takes as long as a short one: only where nothing else would end it
                counted = self.once and not self.compiled
                number = self.place(node) if counted else 0
                self.breaks.append("")
                inside = self.inner(body)
                self.breaks.pop()
                repeated = ast.While(self.expression(test), inside, self.block(orelse))
                if not counted:
                    return [repeated]
                inside[:0] = _lines(f"clock.trip({number})")
                return [*_lines(f"clock.enter({number})"), repeated]
            case ast.Break():
                name = self.breaks[-1] if self.breaks else ""
                return [*(_lines(f"{name}.broke = True") if name else ()), ast.Break()]
            case ast.Assert(test=test):
                return [ast.Assert(self.expression(test))]
            case ast.Delete(targets=targets) if all(isinstance(t, ast.Name) for t in targets):
                return [ast.Delete([self.target(one) for one in targets])]
            case ast.With(items=[ast.withitem(context_expr=ast.Call() as call)], body=body) if (
                self.known.path(call.func) == "numpy.errstate"
            ):
                return self.inner(body)
            case _:
                raise self.refused(node, f"`{self.shown(node)}` is not sampled")

    def printed(self, nodes: Iterable[ast.expr]) -> list[ast.stmt]:
        """Return what is computed to be printed; printing itself is left out."""
        values = (
            part.value if isinstance(part, ast.FormattedValue) else part
            for node in nodes
            for part in (node.values if isinstance(node, ast.JoinedStr) else [node])
        )
        computed = [one for one in values if any(isinstance(p, ast.Call) for p in ast.walk(one))]
        return [ast.Expr(self.expression(one)) for one in computed]

    def loop(self, node: ast.For) -> list[ast.stmt]:
        """Write a loop whose iterations come in parts that the clock chooses."""
        talks = self.known.talks(node)
        # of a loop in which a rank talks to others in other loops no iteration is left out
        if self.compiled or is_short(node.iter) or (talks and self.alone):
            over = self.expression(node.iter)
            target = self.target(node.target)
            self.breaks.append("")
            body = self.inner(node.body)
            self.breaks.pop()
            return [ast.For(target, over, body, self.block(node.orelse))]
        place = self.place(node)
        name, part = f"loop{place}", f"part{place}"
        kind, over = "", node.iter
        if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and not over.keywords:
            function, given = over.func.id, over.args
            if function == "enumerate" and len(given) == 1 and function not in self.names:
                kind, over = "numbered", given[0]
            elif function == "zip" and given and function not in self.names:
                kind, over = "zipped", ast.Tuple(list(given))
        sequence = self.expression(over)
        # what has no value before the loop is handed on by no first iteration
        there = self.stored.copy()
        target = self.target(node.target)
        self.breaks.append(name)
        body = self.inner(node.body)
        self.breaks.pop()
        after = self.block(node.orelse)
        names = sorted(self.name(n) for n in carried_names(node) if n in there)
        handed = f"{', '.join(names)}, = {name}.%s({', '.join(names)})" if names else ""
        stored = sorted(self.name(one) for one in stored_arrays(node.body) if one in self.names)
        ends = any(
            isinstance(one, ast.Break) for part_ in node.body for one in own_statements(part_)
        )
        asked = ast.Attribute(ast.Name("clock"), "loop")
        given = [ast.Constant(place), sequence, ast.Constant(kind)]
        flags = [ast.keyword("talks", ast.Constant(True))] if talks else []
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
            *([ast.If(_expression(f"not {name}.broke"), after, [])] if after else ()),
        ]

    def handler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        """Write what follows an exception; the clock's own are none that a name stands for."""
        kind = ast.Name("Exception") if node.type is None else self.expression(node.type)
        name = None if node.name is None else self.name(node.name)
        return ast.ExceptHandler(kind, name, self.inner(node.body))

    def target(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Name(id=name, ctx=context):
                self.stored.add(name)
                return ast.Name(self.name(name), context)
            case ast.Tuple() | ast.List() | ast.Starred():
                return self.copied(node)
            case ast.Subscript():
                return self.copied(node)
            case ast.Attribute(value=value, attr=name) if self.known.path(value) is None and (
                name in self.known.own or name in ("shape", "flat", "real", "imag")
            ):
                return ast.Attribute(self.expression(value), self.member(node, name), ast.Store())
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

    def imported(self, node: ast.expr, path: str, *, called: bool = False) -> ast.expr:
        """Return what is imported, or an attribute of such a value, if it is pure."""
        base, _, last = path.rpartition(".")
        if path in pure.CALLS or path in pure.VALUES or (called and path in pure.WITH_FUNCTIONS):
            return self.of_path(path)
        if base in pure.CALLS and base.startswith("numpy.") and last in pure.UFUNC_METHODS:
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
            case ast.comprehension():
                return self.copied(part)
            case _:
                return part  # an operator, a context, what a constant is

    def expression(self, node: ast.expr, *, called: bool = False) -> ast.expr:
        match node:
            case ast.Name(id=name):
                return self.named(node, name, called=called)
            case ast.Attribute(value=value, attr=name):
                path = self.known.path(node)
                if path == "sys.argv":
                    return ast.List([ast.Constant("script")])
                if isinstance(value, ast.Name) and value.id in self.known.given.results:
                    return self.option(node, name)
                if path is not None:
                    return self.imported(node, path, called=called)
                return ast.Attribute(self.expression(value), self.member(node, name))
            case ast.Call(
                func=ast.Name() | ast.Attribute() | ast.Lambda() | ast.Call() as function
            ):
                named = [self.keyword(one, self.asked(node)) for one in node.keywords]
                return ast.Call(self.expression(function, called=True), self.part(node.args), named)
            case ast.Call():
                raise self.refused(node.func, f"`{self.shown(node.func)}` is called")
            case ast.Lambda(args=arguments, body=body):
                return ast.Lambda(self.arguments(arguments), self.expression(body))
            case ast.Dict(keys=keys) if None in keys:
                raise self.refused(node, f"`{self.shown(node)}` is not sampled")
            case _ if isinstance(node, _PLAIN):
                return self.copied(node)
            case _:
                raise self.refused(node, f"`{self.shown(node)}` is not sampled")

    def option(self, node: ast.Attribute, name: str) -> ast.expr:
        default = self.known.given.defaults.get(name)
        if default is None:
            raise self.refused(node, f"`{self.shown(node)}` has no default: pass -D {name}=...")
        return self.expression(default)

    def named(self, node: ast.expr, name: str, *, called: bool = False) -> ast.expr:
        if name in self.known.paths:
            return self.imported(node, self.known.paths[name], called=called)
        if name in self.known.functions:
            return ast.Name(self.function(name))
        if name in pure.BUILTINS and name not in self.known.assigned:
            return ast.Name(name)
        if name in self.foreign:
            raise self.refused(node, f"`{name}` is not known: {self.foreign[name]}")
        if name not in self.known.assigned:
            raise self.refused(node, f"nothing is known of `{name}`")
        return ast.Name(self.name(name))

    def member(self, node: ast.AST, name: str) -> str:
        of_mpi = self.known.ranks and name in pure.MPI_MEMBERS
        if name in self.known.own and name not in pure.MEMBERS and not of_mpi:
            # never the name of what an array has
            return f"own_{name}"
        if name not in pure.MEMBERS and not of_mpi:
            raise self.refused(node, f"`.{name}` has no row among what is sampled")
        return name

    def asked(self, call: ast.Call) -> str:
        """Return the name of the function of the file that takes what a call gives, if any."""
        function, path = call.func, self.known.path(call.func)
        if path == "functools.partial" and call.args:
            function, path = call.args[0], self.known.path(call.args[0])
        return "" if path is not None else getattr(function, "attr", getattr(function, "id", ""))

    def keyword(self, word: ast.keyword, function: str) -> ast.keyword:
        if word.arg is None:
            raise self.refused(word.value, "`**` is not known before it runs")
        # parameters of functions of the file are renamed with it
        own = word.arg in self.known.parameters.get(function, ())
        return ast.keyword(self.name(word.arg) if own else word.arg, self.expression(word.value))


def _lines(text: str) -> list[ast.stmt]:
    """Return statements that ask or tell the clock."""
    return ast.parse(text).body


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _kind(annotation: ast.expr | None) -> str:
    """Return what kind of number an annotation means; ``float`` where it says nothing."""
    return "int" if annotation is not None and ast.unparse(annotation) == "int" else "float"
