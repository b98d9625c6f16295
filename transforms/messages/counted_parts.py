"""Parts that are gathered and joined, and of which then only counts, sums and extremes are made.

What is made of all of them is combined of what each rank makes of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Op
from advisor.source import KEY
from costdb.expr.nodes import Num
from transforms.kit.names import is_name
from transforms.kit.programs import offer, sent_text, shortened
from transforms.kit.rewrite import span_of, tree_of
from transforms.messages.combined_parts import combined

_JOINING = frozenset({"chain", "concatenate", "from_iterable", "hstack", "vstack"})
_COUNTING = frozenset({"Counter", "bincount", "count_nonzero", "histogram", "histogram2d", "len"})
_TOTALS = frozenset({"any", "all", "amax", "amin", "max", "mean", "min", "sum"})
_FEW = 1000
"""Elements of each rank that are as well gathered."""
_BOUNDED = {"histogram": "range", "histogram2d": "range", "bincount": "minlength"}
"""By which argument results have the same places on all ranks."""


def counted_parts(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield a reduction of what each rank counts, for a gather of all that is counted."""
    gone = combined(program)
    for visit, step in function.operations():
        gathers = step.op in (Op.GATHER, Op.ALLGATHER) and step.pickled
        if not gathers or step.result is None or not is_name(step.result) or step.span in gone:
            continue
        made = dict.fromkeys(map(shortened, _Uses(program, function).of(step.result)))
        count = None if step.send is None else step.send.count
        few = isinstance(count, Num) and count.value < _FEW
        if not made or few:
            continue
        shown = " and ".join(f"`{one}`" for one in list(made)[:2])
        call = "reduce" if step.op is Op.GATHER else "allreduce"
        yield offer(
            function,
            visit,
            step.span,
            f"make {shown} of each rank's own `{sent_text(step)}`, and combine them by `{call}`:"
            " nothing else needs what is gathered",
            "all elements go through one rank, which counts alone what all could count at once;"
            " what they count is small",
            (),
            (),
            "counts and sums of parts add up; a rank without elements needs what changes nothing",
            "what is made of the parts is to be written anew",
            ranks_from=2,
        )


class _Uses:
    """Where names of a function are used."""

    def __init__(self, program: Program, function: SpmdFunction) -> None:
        self.up: dict[ast.AST, ast.AST] = {}
        self.loads: list[ast.Name] = []
        lines = program.context.lines
        for node in ast.walk(tree_of(program.context.source)):
            self.up.update(dict.fromkeys(ast.iter_child_nodes(node), node))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.loads += [node] * function.whole.contains(span_of(node, lines))

    def of(self, parts: str) -> list[str]:
        """Return what is made of parts once they are joined; nothing if anything else is."""
        made: list[str | None] = []
        left = [one for one in self.loads if one.id == parts]
        while left:
            place, name = self._joined(left.pop(0))
            if place is None:
                return []
            inside = set(ast.walk(place))
            used = [one for one in self.loads if one.id == name and one not in inside]
            # a name that the parts had means what was joined of them from there on
            made += map(self._counted, used if name else [place])
            left = [one for one in left if one not in used]
        return [] if None in made else [one for one in made if one]

    def _joined(self, parts: ast.Name) -> tuple[ast.AST | None, str]:
        """Return where parts are joined, and the name of what is made there if it has one."""
        place, name = self.up[parts], ""
        match place:
            case ast.For(target=ast.Name(id=part), body=[one], orelse=[]):
                match one:
                    case (
                        ast.AugAssign(ast.Name(id=name), ast.Add(), ast.Name(id=other))
                        | ast.Assign(
                            [ast.Name(id=name)], ast.BinOp(_, ast.Add(), ast.Name(id=other))
                        )
                        | ast.Expr(
                            ast.Call(
                                ast.Attribute(ast.Name(id=name), "extend"), [ast.Name(id=other)]
                            )
                        )
                        | ast.For(
                            iter=ast.Name(id=other),
                            body=[ast.Expr(ast.Call(ast.Attribute(ast.Name(id=name), "append")))],
                        )
                    ) if other == part:
                        return place, name
                return None, ""
            case ast.Starred():
                place = self.up[place]
            case ast.comprehension(target=ast.Name(id=part)):
                match self.up[place]:
                    case (
                        ast.ListComp(
                            generators=[_, ast.comprehension(ast.Name(), ast.Name(id=other))]
                        )
                        | ast.GeneratorExp(
                            generators=[_, ast.comprehension(ast.Name(), ast.Name(id=other))]
                        )
                    ) as every if other == part:
                        place = every
        call = ast.unparse(place.func).rpartition(".")[2] if isinstance(place, ast.Call) else ""
        if call not in _JOINING and not isinstance(place, ast.ListComp | ast.GeneratorExp):
            return None, ""
        match self.up[place]:
            case ast.Assign(targets=[ast.Name(id=name)]):
                pass
        return place, name

    def _counted(self, node: ast.AST) -> str | None:
        """Return the call that makes a count or a sum of joined parts; None where none does."""
        up = self.up[node]
        while (isinstance(up, ast.Attribute) and up.attr.startswith(KEY)) or (
            isinstance(up, ast.BinOp | ast.Compare | ast.UnaryOp)
        ):
            node, up = up, self.up[up]
        if isinstance(up, ast.Attribute) and up.attr in _TOTALS:
            node, up = up, self.up[up]
            return ast.unparse(up) if isinstance(up, ast.Call) and up.func is node else None
        if not isinstance(up, ast.Call) or node not in up.args:
            return None
        called = ast.unparse(up.func).rpartition(".")[2]
        bounds = _BOUNDED.get(called)
        bounded = bounds is None or any(one.arg == bounds for one in up.keywords)
        return ast.unparse(up) if bounded and called in _COUNTING | _TOTALS else None
