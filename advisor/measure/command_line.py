"""What a script reads from its command line, as if it were called without any arguments."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

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
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=parser), attr="add_argument"),
                args=names,
                keywords=words,
            ) if parser in found.parsers:
                _add(found, names, {one.arg: one.value for one in words}, sizes)
            case _:
                pass
    return found


def _add(
    found: CommandLine,
    names: list[ast.expr],
    words: Mapping[str | None, ast.expr],
    sizes: Mapping[str, int | float],
) -> None:
    texts = [n.value for n in names if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    long = [text for text in texts if text.startswith("--")] or texts
    name = long[0].lstrip("-").replace("-", "_") if long else ""
    given = words.get("dest")
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        name = given.value
    action = words.get("action")
    default = words.get("default")
    if name in sizes:
        found.defaults[name] = ast.Constant(sizes[name])
    elif default is not None:
        found.defaults[name] = default
    elif isinstance(action, ast.Constant) and action.value in ("store_true", "store_false"):
        found.defaults[name] = ast.Constant(action.value == "store_false")
    elif long and long[0].startswith("-"):
        found.defaults[name] = ast.Constant(None)
