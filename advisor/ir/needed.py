"""Which names are needed behind each statement of a function, where some branches are not taken.

What a statement computes may be left out where nobody needs it: on ranks that never get to where it
is used, or in iterations that do not.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping

from advisor.ir.changes import Function, Names, root_of
from advisor.source import every, names_in

Arms = Callable[[ast.If], tuple[bool, bool]]
"""Says whether the first and the other part of a branch may run."""

_COMPUTING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Pass)


class Needed:
    """What a function needs of what its statements make.

    Parameters
    ----------
    names : Names
        Of the function, or of the whole file.
    arms : callable
    every : bool
        All that runs is needed, used or not.
    given : bool
        Whether what it returns is.
    until : ast.stmt, optional
        Nothing behind it is.
    calls : mapping of ast.stmt to frozenset of str, optional
        Statements that make what these names denote, and do nothing else but for what they are
        given.

    Attributes
    ----------
    behind : dict of ast.stmt to set of str
        Names that are needed once a statement has run.
    kept : set of ast.stmt
        Statements that are needed: others use what they make, or they do more than compute.
    """

    def __init__(
        self,
        names: Names,
        arms: Arms,
        *,
        every: bool = False,
        given: bool = True,
        until: ast.stmt | None = None,
        calls: Mapping[ast.stmt, frozenset[str]] | None = None,
    ) -> None:
        self.behind: dict[ast.stmt, set[str]] = {}
        self.kept: set[ast.stmt] = set()
        self._names, self._arms, self._every, self._given = names, arms, every, given
        self._until, self._calls = until, calls or {}
        # others may read what is outside of functions, or what a function in there captures
        outside = names.node is names.file.tree
        functions = names.file.scopes[1:] if outside else ()
        self._always = {
            *names.captured,
            *names.file.changed,
            *(n for one in functions for n in names_in(one)),
        }
        self._again: list[set[str]] = []
        self._kills = True
        self._body(names.node.body, set(self._always))

    def _body(self, body: Iterable[ast.stmt], live: set[str]) -> set[str]:
        """Return what is needed before statements, of what is needed behind them."""
        for one in reversed([*body]):
            self.behind.setdefault(one, set()).update(live)
            live = self._before(one, live)
        return live

    def _before(self, one: ast.stmt, live: set[str]) -> set[str]:
        if one is self._until:
            live = set(self._always)
        match one:
            case ast.If(test, then, orelse):
                ways = zip((then, orelse), self._arms(one), strict=True)
                taken = [self._body(body, set(live)) for body, runs in ways if runs]
                return self._read(test).union(*taken)
            case ast.For(target, given, body, orelse):
                inner = self._repeated(body, self._body(orelse, set(live)))
                return inner | self._read(given) | self._read(target)
            case ast.While(test, body, orelse):
                return self._repeated(body, self._body(orelse, set(live)) | self._read(test))
            case ast.With(items, body):
                return self._body(body, live) | self._read(*items)
            case ast.Try(body, handlers, orelse, last):
                # it may end anywhere, so that nothing is surely bound again
                kills, self._kills = self._kills, False
                live = self._body(last, live)
                live = live.union(*(self._body(each.body, set(live)) for each in handlers))
                live = self._body([*body, *orelse], live)
                self._kills = kills
                return live | self._read(*(each.type for each in handlers if each.type))
            case ast.Return() | ast.Raise():
                used = isinstance(one, ast.Raise) or self._given or self._every
                read = self._read(one) if used or not self._is_quiet(one) else set[str]()
                return (self._always if self._kills else live) | read
            case ast.Break() | ast.Continue():
                return self._again[-1] | (set() if self._kills else live)
            case _:
                return self._simple(one, live)

    def _repeated(self, body: list[ast.stmt], live: set[str]) -> set[str]:
        """Return what is needed before a loop, which may run any number of times."""
        while True:
            self._again.append(set(live))
            more = self._body(body, set(live)) | live
            self._again.pop()
            if more == live:
                return live
            live = more

    def _simple(self, one: ast.stmt, live: set[str]) -> set[str]:
        if not self._is_kept(one) and live.isdisjoint(self.made(one)):
            return live
        self.kept.add(one)
        plain = isinstance(one, ast.Assign | ast.AnnAssign) and self._kills
        gone = self._names.changes([one]).bound - self._always if plain else set[str]()
        return live - gone | self._read(one)

    def _is_kept(self, one: ast.stmt) -> bool:
        """Return whether a statement does more than to compute what is the function's own."""
        if self._every:
            return True
        if one in self._calls:
            given = (part for x in every(ast.Call, one) for part in (*x.args, *x.keywords))
            return not all(map(self._names.is_quiet, every(ast.Call, *given)))
        made = self._names.changes([one])
        own = all(map(self._names.is_own, made.wholly | made.elements))
        known = isinstance(one, _COMPUTING) and own and not (made.unknown or made.strange)
        return not known or not self._is_quiet(one)

    def _is_quiet(self, one: ast.stmt) -> bool:
        return all(map(self._names.is_quiet, every(ast.Call, one)))

    def made(self, one: ast.stmt) -> frozenset[str]:
        """Return the names through which others see what a statement makes or changes."""
        if one in self._calls:
            return self._calls[one]
        changes = self._names.changes([one])
        paths = self._names.reached(changes.wholly | changes.elements)
        return frozenset(map(root_of, paths)) | changes.bound

    def _read(self, *nodes: ast.AST) -> set[str]:
        inner = (part for node in nodes if isinstance(node, Function) for part in names_in(node))
        return {root_of(path) for node in nodes for path, _ in self._names.reads(node)} | {*inner}
