"""A program written anew so that it notes what is said to be the same in each call."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Sequence
from typing import Any

from advisor.ir.same_calls import Again


class Recorder:
    """Compares values with those of the same statement earlier in the same run of a loop.

    Attributes
    ----------
    seen : dict of str to int
        How often each was the same as before.
    differing : set of str
    """

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}
        self.differing: set[str] = set()
        self._open: dict[int, list[dict[str, bytes]]] = {}

    def enter(self, number: int) -> None:
        """Begin a loop."""
        self._open.setdefault(number, []).append({})

    def leave(self, number: int, value: Any = None) -> Any:
        """End it; return a value."""
        self._open[number].pop()
        return value

    def first(self, number: int, text: str, value: Any) -> Any:
        """Note a value that a block computes there first, and then again."""
        self._open[number] = [{}]
        return self.note(number, text, value)

    def note(self, number: int, text: str, value: Any, *turning: Any) -> Any:
        """Note a value, of each of what loops go through, and return it."""
        if self._open.get(number):
            now, known = _frozen(value), self._open[number][-1]
            if known.setdefault(f"{text}{_frozen(turning)!r}", now) != now:
                self.differing.add(text)
            self.seen[text] = self.seen.get(text, -1) + 1
        return value


def _frozen(value: Any) -> bytes:
    try:
        return pickle.dumps(value)
    except (pickle.PicklingError, AttributeError):  # a class of the program
        parts = sorted((name, _frozen(one)) for name, one in vars(value).items())
        return repr((type(value).__name__, parts)).encode()


class _Written(ast.NodeTransformer):
    def __init__(self, found: Sequence[Again]) -> None:
        self.loops: dict[int, list[int]] = {}
        self.parts: dict[tuple[int, int, int, int], int] = {}
        self.each = [again.each for again in found]
        self.around: list[str] = []
        self.firsts = {_place(again.found[0]) for again in found if not again.line}
        self.blocks = {number for number, again in enumerate(found) if not again.line}
        for number, again in enumerate(found):
            self.loops.setdefault(again.line, []).append(number)
            for one in again.found:
                self.parts[_place(one)] = number

    def visit(self, node: ast.AST) -> Any:
        turns = isinstance(node, ast.For)
        names = (
            [one.id for one in ast.walk(node.target) if isinstance(one, ast.Name)] if turns else []
        )
        self.around += names
        made = super().generic_visit(node)
        del self.around[len(self.around) - len(names) :]
        number = self.parts.get(_place(node))
        if number is not None and isinstance(node, ast.expr):
            line = 0 if number in self.blocks else node.lineno
            text = f"{line}: {ast.unparse(node)}"
            turned = self.each[number] & {*self.around}
            turning = [ast.Name(one, ast.Load()) for one in sorted(turned)]
            noted = "first" if _place(node) in self.firsts else "note"
            return _call(noted, ast.Constant(number), ast.Constant(text), made, *turning)
        if number is not None and isinstance(node, ast.Assign):
            names = [one.id for one in ast.walk(node.targets[0]) if isinstance(one, ast.Name)]
            notes = [
                ast.Expr(
                    _call(
                        "note",
                        ast.Constant(number),
                        ast.Constant(f"{node.lineno}: {ast.unparse(node)} ({name})"),
                        ast.Name(name, ast.Load()),
                    )
                )
                for name in names
            ]
            return [made, *notes]
        line = getattr(node, "lineno", 0)
        comprehension = isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp)
        for number in self.loops.get(line, ()):
            if isinstance(node, ast.For | ast.While):
                enter = ast.Expr(_call("enter", ast.Constant(number)))
                leave = ast.Expr(_call("leave", ast.Constant(number)))
                body = made if isinstance(made, list) else [made]
                made = [enter, ast.Try(body, [], [], [leave])]
            elif comprehension or isinstance(node, ast.GeneratorExp):
                if isinstance(made, ast.GeneratorExp):
                    made = ast.ListComp(made.elt, made.generators)
                entered = _call("enter", ast.Constant(number))
                listed = _call("leave", ast.Constant(number), made)
                made = ast.Subscript(
                    ast.Tuple([entered, listed], ast.Load()), ast.Constant(1), ast.Load()
                )
        return made


def _place(node: ast.AST) -> tuple[int, int, int, int]:
    names = ("lineno", "col_offset", "end_lineno", "end_col_offset")
    found = tuple(getattr(node, one, -1) for one in names)
    if not isinstance(node, ast.expr | ast.stmt) or isinstance(node, ast.Expr):
        return -1, -1, -1, -1
    return found  # type: ignore[return-value]


def _call(name: str, *args: ast.expr) -> ast.Call:
    recorder = ast.Name("_recorder", ast.Load())
    return ast.Call(ast.Attribute(recorder, name, ast.Load()), list(args), [])


def recorded(source: str, found: Sequence[Again], name: str = "__main__") -> Recorder:
    """Run a program with notes; return what they tell."""
    tree = ast.fix_missing_locations(_Written(found).visit(ast.parse(source)))
    recorder = Recorder()
    exec(compile(tree, "<recorded>", "exec"), {"__name__": name, "_recorder": recorder})
    return recorder
