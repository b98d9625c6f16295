"""What is used of what collectives bring: counts of joined parts, or each rank's own part.

What is counted of parts that are gathered and joined is combined of what each rank counts of its
own. What is broadcast, and then only used in the own part of each rank, is scattered.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Op, Visit
from advisor.source import KEY, Span, each_of
from costdb.expr.nodes import Num
from transforms.kit.names import bound_names, is_name, loaded_names, root_lines, within
from transforms.kit.programs import offer, sent_text, shortened
from transforms.kit.rewrite import span_of, statement_at, tree_of
from transforms.messages.combined_parts import combined

_JOINING = frozenset({"chain", "concatenate", "from_iterable", "hstack", "vstack"})
_COUNTING = frozenset({"Counter", "bincount", "count_nonzero", "histogram", "histogram2d", "len"})
_TOTALS = frozenset({"any", "all", "amax", "amin", "max", "mean", "min", "sum"})
_SENDING = frozenset(one.value for one in Op)
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
        if not made or _is_few(step):
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


def own_parts(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> Iterator[ProgramProposal]:
    """Yield a scatter for a broadcast of which every rank uses its own part."""
    root, node = step.root, statement_at(step.statement, program.context)
    if step.op is not Op.BCAST or not step.pickled or root is None or _is_few(step):
        return
    roots = root_lines(function, step.communicator, root, program)
    uses = _Uses(program, function, (step.statement, *roots))
    for name in sorted(bound_names([node]) if isinstance(node, ast.Assign) else ()):
        if shown := uses.own(name):
            yield offer(
                function,
                visit,
                step.span,
                f"scatter `{name}`: every rank uses `{shown}` of it",
                "a broadcast sends all to every rank, a scatter only what it uses",
                (),
                (),
                "within this function no rank but the root uses more of it than its part",
                "nothing says which parts other ranks use",
                ranks_from=2,
            )
            return


def _is_few(step: Communicate) -> bool:
    count = None if step.send is None else step.send.count
    return isinstance(count, Num) and count.value < _FEW


def _called(node: ast.AST) -> str:
    """Return the last name of what a call calls; "" for anything else."""
    return ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


def _is_own_number(value: ast.expr, known: frozenset[str]) -> bool:
    """Return whether a value is made of the own rank, and of nothing that was sent."""
    parts = list(ast.walk(value))
    if any(_called(one) in _SENDING for one in parts):
        return False
    ranks = (one for one in parts if isinstance(one, ast.Attribute))
    return bool(loaded_names([value]) & known) or any(x.attr in ("Get_rank", "rank") for x in ranks)


class _Uses:
    """Where names of a function are used, outside of some places."""

    def __init__(
        self, program: Program, function: SpmdFunction, but: tuple[Span, ...] = ()
    ) -> None:
        self.tree = tree_of(program.context.source)
        self.up: dict[ast.AST, ast.AST] = {}
        self.loads: list[ast.Name] = []
        lines = program.context.lines
        for node in ast.walk(self.tree):
            self.up.update(dict.fromkeys(ast.iter_child_nodes(node), node))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                place = span_of(node, lines)
                self.loads += [node] * (function.whole.contains(place) and not within(place, but))

    def own(self, name: str) -> str:
        """Return how a name is used in places that ranks have for themselves; "" if anywhere else.

        How long it is may be asked everywhere.
        """
        found, varying = "", self._varying()
        for node in (one for one in self.loads if one.id == name):
            match self.up[node]:
                case ast.Subscript(slice=places) as part:
                    if not any(self._is_own(one, varying) for one in each_of(places)):
                        return ""
                    found = found or ast.unparse(part)
                case ast.Call(func=ast.Name(id="len")) | ast.Attribute(attr="shape" | "dtype"):
                    pass
                case _:
                    return ""
        return found

    def _is_own(self, place: ast.expr, varying: frozenset[str]) -> bool:
        if isinstance(place, ast.Slice):
            ends = [one for one in (place.lower, place.step or place.upper) if one is not None]
            others = ends if place.step is None else ends[:1]
            return len(ends) == 2 and all(loaded_names([one]) & varying for one in others)
        return isinstance(place, ast.Name) and place.id in varying

    def _varying(self) -> frozenset[str]:
        """Return names of numbers that each rank works out from its own number."""
        found: frozenset[str] = frozenset()
        made: list[tuple[ast.expr, ast.expr]] = []
        for node in ast.walk(self.tree):
            match node:
                case ast.Assign(targets=[target], value=value):
                    made.append((target, value))
                case (ast.For() | ast.comprehension()) as loop if _called(loop.iter) == "range":
                    made.append((loop.target, loop.iter))
        while True:
            more = found.union(
                *(bound_names([target]) for target, value in made if _is_own_number(value, found))
            )
            if more == found:
                return found
            found = more

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
        if _called(place) not in _JOINING and not isinstance(
            place, ast.ListComp | ast.GeneratorExp
        ):
            return None, ""
        match self.up[place]:
            case ast.Assign(targets=[ast.Name(id=name)]):
                pass
        return place, name

    def _counted(self, node: ast.AST) -> str | None:
        """Return the call that makes a count or a sum of joined parts; None where none does."""
        up, own = self.up[node], loaded_names([node])
        # with another array, each element has its place among all
        while (isinstance(up, ast.Attribute) and up.attr.startswith(KEY)) or (
            isinstance(up, ast.BinOp | ast.Compare | ast.UnaryOp) and loaded_names([up]) == own
        ):
            node, up = up, self.up[up]
        if isinstance(up, ast.Attribute) and up.attr in _TOTALS:
            node, up = up, self.up[up]
            return ast.unparse(up) if isinstance(up, ast.Call) and up.func is node else None
        if not isinstance(up, ast.Call) or node not in up.args:
            return None
        called = _called(up)
        bounds = _BOUNDED.get(called)
        bounded = bounds is None or any(one.arg == bounds for one in up.keywords)
        return ast.unparse(up) if bounded and called in _COUNTING | _TOTALS else None
