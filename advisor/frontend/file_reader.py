"""The kernels of a file, and what its module level says that they may rely on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import libcst as cst

from advisor.frontend.directives import AnyDirective, KernelComment
from advisor.frontend.declarations import Asked, Declarations, asked_of_numba
from advisor.frontend.indices import constant_int
from advisor.frontend.bindings import Imports, NameScope, ScopeVisitor
from advisor.frontend.bindings import dotted, resolve
from advisor.frontend.scope import is_kept, is_of_literals
from advisor.ir.kernel import SizeBinding
from advisor.observed import Seen, by_kind, by_signature
from advisor.source import Span

KERNEL_DECORATORS = frozenset({"advisor.kernel", "advisor.annotations.kernel"})
# these leave the text of a function alone, and call it as it stands
_HARMLESS_DECORATORS = frozenset(
    {
        "functools.cache",
        "functools.lru_cache",
        "functools.wraps",
        "typing.final",
        "typing.no_type_check",
        "typing.override",
        "typing_extensions.override",
    }
)
_HARMLESS_BUILTINS = frozenset({"staticmethod", "classmethod"})


@dataclass(slots=True)
class FoundKernel:
    """A function that is a kernel.

    Attributes
    ----------
    node : libcst.FunctionDef
    sizes : dict of str to SizeBinding
        Usual values from its decorator and comments.
    first_line : int
        Of the comments and decorators above it.
    scopes : tuple of NameScope
        The module's, those of what it is nested in, and its own.
    decorators : tuple of str
        Those that may do anything with it.
    marked : bool
        Whether the source calls it a kernel; otherwise it is one because it was seen to run.
    seen : Seen or None
        What a run showed of it, or the calls in its file.
    line : int
        Where its definition begins, with its decorators.
    asked : Asked or None
        What its only decorator asks of numba.
    numbers : frozenset of str
        Parameters that are said to be numbers, and no sizes.
    kinds : tuple of Seen
        Every kind of call that was seen of it.
    """

    node: cst.FunctionDef
    sizes: dict[str, SizeBinding]
    first_line: int
    scopes: tuple[NameScope, ...]
    decorators: tuple[str, ...]
    marked: bool = True
    seen: Seen | None = None
    line: int = 0
    asked: Asked | None = None
    numbers: frozenset[str] = frozenset()
    kinds: tuple[Seen, ...] = ()


class FileReader(ScopeVisitor):
    """Collects names, module-level constants and declarations, and kernels.

    A function that was seen to run with several signatures is as many kernels.
    """

    def __init__(
        self,
        path: str,
        span_of: Callable[[cst.CSTNode], Span],
        directives: tuple[AnyDirective, ...],
        observed: Iterable[Seen] = (),
    ) -> None:
        super().__init__()
        self.path = path
        self.directives = directives
        self._observed: dict[str, list[Seen]] = {}
        for seen in observed:
            self._observed.setdefault(seen.function, []).append(seen)
        self._qualified: list[str] = []
        self.span_of = span_of
        self.kernels: list[FoundKernel] = []
        self.integers: dict[str, SizeBinding] = {}
        self.floats: set[str] = set()
        self.tables: dict[str, cst.BaseExpression] = {}
        self.declarations = Declarations(path, span_of, Imports(self.scopes))
        self._alone = {d.line for d in directives if d.own_line}
        self._kernel_comments = {
            d.line: d for d in directives if isinstance(d, KernelComment) and d.own_line
        }

    def constants(self, module: cst.Module) -> None:
        """Keep of module-level names only those that are bound once, and never changed."""
        once = {name for name, targets in self.module.bound.items() if len(targets) == 1}
        self.integers = {n: value for n, value in self.integers.items() if n in once}
        self.floats &= once
        self.tables = {
            name: table
            for name, table in self.tables.items()
            if name in once and (isinstance(table, cst.Tuple) or is_kept(name, module))
        }
        self.declarations.keep(once)

    def seen(self, node: cst.CSTNode) -> None:
        """Note module-level values besides names."""
        match node:
            case cst.Assign(targets=[target], value=value):
                self._note(target.target, value)
            case cst.AnnAssign(target=target, value=cst.BaseExpression() as value):
                self._note(target, value)
            case cst.TypeAlias(name=name, value=value):
                self._note(name, value)
            case _:
                pass
        super().seen(node)

    def _note(self, target: cst.BaseExpression, value: cst.BaseExpression) -> None:
        if len(self.scopes) > 1 or not isinstance(target, cst.Name):
            return
        name = target.value
        self.declarations.note(name, value)
        number = constant_int(value)
        if number is not None and number >= 1:
            self.integers[name] = SizeBinding(number, self.span_of(value))
        elif isinstance(value, cst.Float):
            self.floats.add(name)
        elif is_of_literals(value):
            self.tables[name] = value

    def entered(self, node: cst.CSTNode) -> None:
        """Note a function that is a kernel."""
        if isinstance(node, cst.ClassDef):
            self._qualified.append(node.name.value)
        if not isinstance(node, cst.FunctionDef):
            return
        qualified = ".".join((*self._qualified, node.name.value))
        self._qualified += (node.name.value, "<locals>")
        sizes: dict[str, SizeBinding] = {}
        numbers: set[str] = set()
        is_kernel = False
        others: list[str] = []
        asked: Asked | None = None
        lines = [self.span_of(node.name).start_line]
        # decorators belong to the scope around the function
        imports = Imports(self.scopes[:-1])
        for decorator in node.decorators:
            lines.append(self.span_of(decorator.decorator).start_line)
            call = decorator.decorator
            function = call.func if isinstance(call, cst.Call) else call
            full = resolve(function, imports)
            if full in KERNEL_DECORATORS:
                is_kernel = True
                if isinstance(call, cst.Call):
                    sizes.update(self._sizes(call, numbers))
            elif not self._is_harmless(function, full):
                others.append(dotted(function) or "an expression")
                asked = asked_of_numba(full, call)
        above = min(lines) - 1
        while above in self._alone:
            comment = self._kernel_comments.get(above)
            if comment is not None:
                is_kernel = True
                for name, value in comment.sizes:
                    sizes[name] = SizeBinding(value, comment.span)
                numbers.update(comment.numbers)
            above -= 1
        shown = self._observed.get(qualified, [])
        if is_kernel:
            # what the author states goes over what the calls in the file suggest
            shown = [seen for seen in shown if seen.source != "text"]
        runs: tuple[Seen | None, ...] = by_signature(seen for seen in shown if seen.arrays)
        kinds = by_kind(shown)
        if is_kernel and not runs:
            runs = (None,)
        self.kernels += (
            FoundKernel(
                node,
                sizes,
                above + 1,
                tuple(self.scopes),
                tuple(others),
                is_kernel,
                seen,
                min(lines),
                asked if len(others) == 1 else None,
                frozenset(numbers),
                kinds,
            )
            for seen in runs
        )

    def left(self, node: cst.CSTNode) -> None:
        """Leave the name of a class or function."""
        super().left(node)
        if isinstance(node, cst.ClassDef):
            self._qualified.pop()
        elif isinstance(node, cst.FunctionDef):
            del self._qualified[-2:]

    def _is_harmless(self, function: cst.BaseExpression, full: str | None) -> bool:
        if full is not None:
            return full in _HARMLESS_DECORATORS
        return (
            isinstance(function, cst.Name)
            and function.value in _HARMLESS_BUILTINS
            and not any(function.value in scope.bound for scope in self.scopes)
        )

    def _sizes(self, call: cst.Call, numbers: set[str]) -> dict[str, SizeBinding]:
        found: dict[str, SizeBinding] = {}
        for argument in call.args:
            span = self.span_of(argument)
            if argument.keyword is None:
                raise self.declarations.problem(argument, "sizes are keywords: @kernel(N=1000)")
            value = constant_int(argument.value)
            name = argument.keyword.value
            if isinstance(argument.value, cst.Float):
                numbers.add(name)
                continue
            if value is None:
                raise self.declarations.problem(argument, f"size {name} must be a whole number")
            if value < 1:
                raise self.declarations.problem(
                    argument, f"size {name} must be at least 1, not {value}"
                )
            found[name] = SizeBinding(value, span)
        return found
