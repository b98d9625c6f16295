"""What the text of a function says of the names in it, where no call and no run tells.

``u[i, j]`` needs two dimensions of ``u``, ``n, m = u.shape`` states them, and what is an argument
of ``range`` is a whole number. Names have the least ranks that all of the text allows. Element
types and sizes nothing says: elements are taken for float64, those that are subscripts for int64,
and sizes stay symbols. Each finding states that, and each edit has it as its condition. Of a name
that fits no rank, or that nothing shows to hold numbers, nothing is assumed.

Names are parameters, attributes of them, what the module binds once, and what the function does:
of that a statement that is read tells more, so what is assumed counts where none is.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from textwrap import dedent

from advisor.finding import MODULE
from advisor.frontend.bindings import settled
from advisor.frontend.called_parts import METHODS, OF_OTHERS, Calls
from advisor.frontend.parts import NUMPY, Key, Told
from advisor.frontend.ranks import Part, may_have_more, solve
from advisor.frontend.trees import GOING_THROUGH
from advisor.ir.functions import attributes_read
from advisor.ir.kernel import COMPILERS, SOME
from advisor.observed import SEQUENCE, Seen, SeenArray, SeenBinding, SeenNumber
from advisor.source import OF_ARRAYS, each_of, every, imports_of, tree_of, walked, with_keys
from costdb.records import dataclass, only, replace

_TRIES = 8
"""Names that fit none are left out one after another, up to so often."""

_ASKING = frozenset(
    ["inv", "norm", "at", "sort", "sorted", "argsort", "vectorize", "apply_along_axis", "einsum"]
    + ["diag"]
)
"""What is called where often something cheaper would do."""
_IN_LOOPS = frozenset(["append", "concatenate", "hstack", "vstack", "stack", "insert", "solve"])
"""What is called again and again where once would do."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class _Code:
    """A function, or what stands outside of all, with the names around it that may be read."""

    name: str
    line: int
    given: ast.arguments
    body: Sequence[ast.stmt]
    around: Iterable[str] = ()


def assumed(source: str) -> tuple[Seen, ...]:
    """Return what is assumed of functions with loops, or calls that often cost too much, and of
    the module level of a file that computes there."""
    tree = tree_of(source)
    whole = _Code(MODULE, 1, ast.arguments([], [], None, [], [], None, []), _outside(tree))
    lines, around, imports = source.splitlines(), _bound_once(whole.body), imports_of(walked(tree))
    reached = _reached(tree, whole.body)
    found = [whole]
    found += (
        _Code(name, node.lineno, node.args, node.body, around)
        for name, node in _functions(tree.body, "")
        # of a compiled one that the file calls what the calls tell is all, or they disagree
        if all(map(_keeps_arguments, node.decorator_list))
        and not (node.decorator_list and node.name in reached)
    )
    file = _told(tree, _functions(tree.body, ""), attributes_read(source), settled(source))
    # what calls and methods tell of one another: of what they call, and then of what calls them
    for chosen in (False, True, True):
        for code in found:
            uses = _read(code, imports, file)
            if uses is not None:
                uses.tell()
        file.settle(chosen=chosen)
    made: list[Seen] = []
    for code in found:
        loops = any(map(_is_worth_reading, code.body))
        if loops or (_computes(code.body, imports) if code is whole else _asks(code.body)):
            one = _assumed(code, lines, imports, file)
            # statements that any numbers fit say nothing of arrays
            read = loops or code is whole or one.arrays or one.bindings
            made += [replace(one, function=with_keys(code.name))] if read else []
    return tuple(made)


def assumed_of(names: Iterable[str], text: str) -> Seen:
    """Return what a part of a function tells of names in it; nothing where it does not parse."""
    try:
        body = ast.parse(dedent(text)).body
    except SyntaxError:
        body = []
    given = [ast.arg(one) for one in dict.fromkeys(name.partition(".")[0] for name in names)]
    arguments = ast.arguments([], given, None, [], [], None, [])
    return _assumed(_Code("", 1, arguments, body), text.splitlines(), NUMPY, Told())


def calls_itself(source: str) -> bool:
    """Return whether running a file calls functions of it; False where it does not parse."""
    tree = tree_of(source)
    return bool(_reached(tree, _outside(tree)))


def _outside(tree: ast.Module) -> list[ast.stmt]:
    return [one for one in tree.body if not isinstance(one, _Function | ast.ClassDef)]


def _keeps_arguments(decorator: ast.expr) -> bool:
    """Return whether a decorated function is given what its caller gives: numba compiles it."""
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = ast.unparse(node).rpartition(".")[2]
    return name in COMPILERS or name in ("staticmethod", "classmethod", "property")


def _reached(tree: ast.Module, outside: Iterable[ast.stmt]) -> frozenset[str]:
    """Return the names of functions of a file that running it calls."""
    defined, found = {one.name: one for one in every(_Function, tree)}, set[str]()
    pending: list[ast.AST] = list(outside)
    while pending:
        calls = [one.func for one in every(ast.Call, pending.pop())]
        names = {getattr(one, "id", getattr(one, "attr", "")) for one in calls}
        new = names & defined.keys() - found
        found |= new
        pending += (defined[name] for name in new)
    return frozenset(found)


def _is_worth_reading(node: ast.stmt) -> bool:
    """Return whether a loop or list in it subscripts by what it computes, adds up, fills one or
    solves equations."""
    return any(
        (isinstance(one, ast.Subscript) and not isinstance(one.slice, ast.Constant))
        or (isinstance(one, ast.Attribute) and one.attr in _IN_LOOPS)
        or _adds_up(one)
        for loop in walked(node)
        if isinstance(loop, ast.For | ast.While | ast.ListComp) or _goes_through(loop)
        for one in walked(loop)
    )


def _asks(body: Iterable[ast.stmt]) -> bool:
    """Return whether statements call what may be too much, the same thing twice, or multiply so."""
    parts = [*every(ast.AST, *body)]
    calls = [*only(ast.Call, parts)]
    names = Counter(getattr(one.func, "attr", getattr(one.func, "id", "")) for one in calls)
    if names.keys() & _ASKING or any(_multiplies(one) or _goes_over(one) for one in parts):
        return True
    again = (one for one in calls if names[getattr(one.func, "attr", "")] > 1)
    return any(many > 1 for many in Counter(map(ast.unparse, again)).values())


def _goes_over(node: ast.AST) -> bool:
    """Return whether a function of Python goes over what may be an array."""
    match node:
        case ast.Call(func=ast.Name("max" | "min" | "sum"), args=[one], keywords=[]):
            return not isinstance(one, ast.GeneratorExp | ast.List | ast.Tuple | ast.ListComp)
    return False


def _multiplies(node: ast.AST) -> bool:
    """Return whether an expression sums products, is a high power, or a product of matrices."""
    match node:
        case ast.Call(func=ast.Attribute(attr="sum", value=one), args=args):
            return any(isinstance(x.op, ast.Mult | ast.Pow) for x in only(ast.BinOp, (one, *args)))
        case ast.BinOp(op=ast.Pow(), right=ast.Constant(int() | float() as power)):
            return power > 2
    first = _first_factor(node)
    return first is not None and _first_factor(first) is not None


def _first_factor(node: ast.AST) -> ast.expr | None:
    """Return the first of two that are multiplied as matrices; None where nothing is."""
    match node:
        case (
            ast.BinOp(left=first, op=ast.MatMult())
            | ast.Call(func=ast.Attribute(attr="dot"), args=[first, _])
            | ast.Call(func=ast.Attribute(attr="dot", value=first), args=[_])
        ):
            return first
    return None


def _computes(body: Iterable[ast.stmt], imports: Mapping[str, str]) -> bool:
    """Return whether several statements call NumPy, or go over arrays: constants do neither."""

    def calls(statement: ast.stmt) -> bool:
        names = every(ast.Name, *(one.func for one in every(ast.Call, statement)))
        return any(imports.get(one.id, "").partition(".")[0] == "numpy" for one in names)

    parts = (one for part in body for one in walked(part))
    return sum(map(calls, body)) > 1 or any(map(_goes_over, parts))


def _adds_up(node: ast.AST) -> bool:
    """Return whether a number changes by what is computed, or a generator computes such terms."""
    match node:
        case ast.AugAssign(value=value):
            return not isinstance(value, ast.Constant)
        case ast.Assign(targets=[ast.Name(name)], value=ast.BinOp(left, _, right)):
            return name in (getattr(left, "id", ""), getattr(right, "id", ""))
        case ast.Call() if _goes_through(node):
            return any(every(ast.BinOp | ast.Compare, node))
    return False


def _goes_through(node: ast.AST) -> bool:
    match node:
        case ast.Call(ast.Name(name), [ast.GeneratorExp()]):
            return name in GOING_THROUGH
    return False


def _functions(body: Iterable[ast.stmt], prefix: str) -> Iterator[tuple[str, _Function]]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield prefix + node.name, node
            case ast.ClassDef():
                yield from _functions(node.body, f"{prefix}{node.name}.")
            case ast.If() | ast.Try():
                yield from _functions((*node.body, *node.orelse), prefix)


def _stored(body: Iterable[ast.stmt]) -> Counter[str]:
    """Return how often names are bound, or deleted."""
    named = every(ast.Name | ast.Attribute, *body)
    return Counter(ast.unparse(one) for one in named if not isinstance(one.ctx, ast.Load))


def _bound_once(body: Iterable[ast.stmt]) -> dict[str, ast.Assign]:
    """Return the names that one assignment binds, outside of loops, and nothing else.

    Also attributes that nothing reads before.
    """
    stored, found = _stored(body), dict[str, ast.Assign]()
    attributes = {name.rpartition(".")[2] for name in stored if "." in name}
    first = dict[str, int]()
    for one in every(ast.Attribute, *body):
        if isinstance(one.ctx, ast.Load) and one.attr in attributes:
            name = ast.unparse(one)
            first[name] = min(one.lineno, first.get(name, one.lineno))
    pending = list(body)
    while pending:
        match pending.pop():
            case ast.Assign(targets=[target]) as made:
                named = (x for x in each_of(target) if isinstance(x, ast.Name | ast.Attribute))
                found |= {
                    name: made
                    for name in map(ast.unparse, named)
                    if stored[name] == 1 and first.get(name, made.lineno + 1) > made.lineno
                }
            case ast.If(body=then, orelse=orelse):
                pending += (*then, *orelse)
            case ast.With(body=inner):
                pending += inner
    return found


def _assumed(code: _Code, lines: Sequence[str], imports: Mapping[str, str], file: Told) -> Seen:
    read, made = _read(code, imports, file), Seen(code.name, code.line, "assumed", calls=SOME)
    if read is None:
        return made
    _tell_open(read)
    found = {one: _known(one, part) for one, part in read.given.items()}
    stored, once = _stored(code.body), _bound_once(code.body)
    own = {one: made.lineno for one, made in once.items() if "." in one}
    bound = [(own[one], what) for one, what in found.items() if one in own]
    for one in sorted(read.bound.keys() - found.keys()):
        some = [(line, _known(one, part)) for line, part in read.bound[one] if line]
        sure = all(x.least == x.most and not x.chosen for _, x in read.bound[one])
        array = bool(some) and isinstance(some[0][1], SeenArray)
        # in loops, or again, what is surely an array of one kind
        alike = sure and array and len({what for _, what in some}) == 1
        bound += some if alike or (one in once and (sure or array)) else []
    # an attribute of an array is none of its own, and one of what changes another
    known = [*found.values(), *(what for _, what in bound)]
    roots = tuple(f"{what.name}." for what in known if what)
    others = (*roots, *(f"{one}." for one in stored.keys() - read.made.keys()))
    told = [x for one, x in found.items() if x and one not in own and not one.startswith(others)]
    arrays = tuple(only(SeenArray, told))
    listed = [one.name for one in arrays if read.given[one.name].listed]
    bindings = (
        SeenBinding(lines[line - 1].strip(), what.name, _as_bound(what))
        for line, what in bound
        if what and not what.name.startswith(roots)
    )
    return replace(
        made,
        arrays=arrays,
        numbers=tuple(only(SeenNumber, told)),
        others=tuple((one, SEQUENCE) for one in (*listed, *sorted(read.may_be_lists))),
        bindings=tuple(dict.fromkeys(bindings)),
    )


def _of_arrays(body: Iterable[ast.stmt]) -> Iterator[ast.expr]:
    """Yield what statements do to what only arrays allow: a list has no shape, and no product."""
    for one in every(ast.AST, *body):
        match one:
            case ast.Attribute(value, attr) if attr in (OF_ARRAYS | METHODS) - OF_OTHERS:
                yield value
            case ast.Subscript(value, ast.Tuple()):
                yield value
            case ast.BinOp(_, ast.Mult(), ast.Constant(int())) | ast.BinOp(
                ast.Constant(int()), ast.Mult(), _
            ):
                pass  # repeats a list
            case ast.BinOp(left, op, right) if not isinstance(op, ast.Add):
                yield from (left, right)
            case ast.Compare(left, [ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()], [right]):
                yield from (left, right)
            case ast.UnaryOp(ast.USub(), operand):
                yield operand


def _told(
    tree: ast.Module,
    functions: Iterable[tuple[str, _Function]],
    lines: Mapping[int, frozenset[str]],
    stay: frozenset[str],
) -> Told:
    """Return what the classes of a file say; of functions, what is given to which.

    What is read of it the `lines` tell in which they begin.
    """
    known, read = dict[Key, Part](), dict[str, frozenset[str]]()
    parameters, many = dict[str, Sequence[str]](), list[str]()
    for node in every(ast.ClassDef, tree):
        held = {f".{ast.unparse(x.target)}": x for x in node.body if isinstance(x, ast.AnnAssign)}
        # of a class of data
        parameters |= {node.name: [*held]} if held else {}
        known |= {(node.name, name): _stated(one.annotation) for name, one in held.items()}
    for full, function in functions:
        read[full] = lines.get(function.lineno, frozenset())
        of, _, name = full.rpartition(".")
        name = of if name == "__init__" else name
        read[name] = read[full]
        named = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        bound = of and "staticmethod" not in map(ast.unparse, function.decorator_list)
        many += [name] if name in parameters else []
        parameters[name] = named[bool(bound) :]
    parameters = {name: one for name, one in parameters.items() if name not in many}
    return Told(parameters, {key: one for key, one in known.items() if one.number}, read, stay)


def _stated(annotation: ast.expr | None) -> Part:
    """Return what an annotation says: a number, or nothing."""
    text = "" if annotation is None else ast.unparse(annotation)
    return Part(0, 0, number=True, whole=text == "int") if text in ("int", "float") else Part()


def _read(code: _Code, imports: Mapping[str, str], file: Told) -> _Uses | None:
    """Return what a function needs of names, but for those that fit nothing."""
    stored, dropped, given = _stored(code.body), frozenset[str](), code.given
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    names = [*(one.arg for one in parameters), *(one for one in code.around if one not in stored)]
    for _ in range(_TRIES):
        uses = _Uses(names, imports, dropped, file, code.name)
        for one in parameters:
            uses.stated(one.arg, one.annotation)
        for parameter, value in _defaults(given):
            uses.defaulted(parameter, value)
        uses.read(code.body)
        for path in sorted(file.read.get(code.name, ())):
            root, *attributes = path.split(".")
            uses.held(ast.Name(root), attributes)
        misfits = solve(uses.rules.all)
        if misfits is None:
            return uses
        if not misfits - dropped:
            break
        dropped |= misfits
    return None


def _tell_open(read: _Uses) -> None:
    """Mark as chosen what may as well have more dimensions, and nothing else.

    Of numbers only those in whose place vectors do while all else stays as it is.
    """
    given = [one for one in read.given.values() if one.number]
    bound = (part for turns in read.bound.values() for _, part in turns)
    parts = [*given, *(one for one in bound if one.number and one.least)]
    more = {id(one): along for one, along in may_have_more(read.rules.all, parts, given)}
    for part in parts:
        if part.least:
            # what a subscript takes may be a number or a row
            part.chosen = (part.chosen or part.least == 1 < part.most) and id(part) in more
        else:
            part.chosen = more.get(id(part)) == []


def _known(name: str, part: Part) -> SeenArray | SeenNumber | None:
    """Return what a name surely is, if it holds numbers at all."""
    if part.other or not part.number:
        return None
    dtype = "bool" if part.subscript == "mask" else "int64" if part.whole else "float64"
    if not part.least:
        return SeenNumber(name, dtype, chosen=part.chosen)
    return SeenArray(name, dtype, part.least, "C", chosen=part.chosen)


def _as_bound(one: SeenArray | SeenNumber) -> SeenArray | SeenNumber:
    """Return what a function binds; of its numbers it is known whose they are."""
    if isinstance(one, SeenArray):
        return one
    return replace(one, dtype=one.dtype.rstrip("64"))


def _defaults(given: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    placed = (*given.posonlyargs, *given.args)
    first = len(placed) - len(given.defaults)
    named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    for one, value in (*zip(placed[first:], given.defaults, strict=True), *named):
        if value is not None:
            yield one.arg, value


class _Uses(Calls):
    """Reads the statements of a function.

    Attributes
    ----------
    bound : dict of str to list of Part
        What statements bind names to.
    """

    def __init__(
        self,
        given: Sequence[str],
        imports: Mapping[str, str],
        dropped: frozenset[str],
        file: Told,
        name: str,
    ) -> None:
        of, _, name = name.rpartition(".")
        # objects are made by what the class is called
        self._name = of if name == "__init__" else name
        bound = of and given and given[0] not in file.parameters.get(self._name, ())
        super().__init__(given, imports, dropped, file, (of, given[0] if bound else ""))
        if bound:
            # what its subscripts give the class says, or nobody
            self.given[given[0]].other = True
        self.bound: dict[str, list[tuple[int, Part]]] = {}
        self._line, self._results = 0, list[tuple[Key, Part]]()
        for one in self.given.keys() & {*file.parameters.get(self._name, ())} - dropped:
            part, known = self.given[one], file.about(self._name, one)
            part.listed = (self._name, one) not in file.shown
            part.other = (self._name, one) in file.mixed
            if not known.other:
                part.least, part.most, part.number = known.least, known.most, known.number
        self._turns: dict[str, Part] = {}
        self._asked: set[str] = set()
        self._sources: dict[str, frozenset[str]] = {}

    def stated(self, name: str, annotation: ast.expr | None) -> None:
        """Let a parameter be what it is annotated as."""
        part, known = self.given[name], _stated(annotation)
        if known.number:
            self.rules.same(part, known)
        elif annotation is not None and "ndarray" in ast.unparse(annotation).lower():
            self.array(part, 1).listed = False
        elif annotation is not None:
            part.other = True

    def defaulted(self, name: str, value: ast.expr) -> None:
        """Let a parameter be what its default is."""
        match value:
            case ast.Constant(number) | ast.UnaryOp(ast.USub(), ast.Constant(number)) if type(
                number
            ) in (int, float):
                self.rules.same(self.given[name], self.number(whole=type(number) is int))
            case ast.Name() | ast.Attribute() | ast.BinOp():
                pass  # what it is its uses tell
            case _:
                self.given[name].other = True

    def read(self, body: Sequence[ast.stmt]) -> None:
        """Read the statements of a function."""
        for name, made in _bound_once(body).items():
            match made.value:
                case ast.Call(func=ast.Name(id=kind)) if self.file.makes(kind):
                    self.made[name] = kind
        used = only(ast.Name | ast.Attribute, _of_arrays(body))
        self.used = frozenset(map(ast.unparse, used))
        for name in self.used & self.given.keys():
            self.given[name].listed = False
        self._turns = {one: Part(names=frozenset((one,))) for one in _stored(body)}
        self.kinds = frozenset(
            one.value.id
            for one in every(ast.Attribute, *body)
            if one.attr in ("append", "ndim")
            if isinstance(one.value, ast.Name)
        )
        for one in every(ast.Attribute, *body):
            if isinstance(one.value, ast.Name) and one.value.id in self.given:
                # of what has others `T` is no transposition
                self.given[one.value.id].other |= one.attr not in METHODS | OF_OTHERS | OF_ARRAYS
        self._statements(body)
        for name, turns in self._turns.items():
            start = [self.given[name]] if name in self.given else []
            values = [*start, *(part for _, part in self.bound.get(name, ()))]
            turns.listed = any(one.listed for one in values)
            if values and name in self._asked:
                self.rules.any_of(turns, values)
        for name in self.nested - self.sure:
            # rows of an array, or lists in a list
            for _, part in (*self.bound.get(name, ()), (0, self.given.get(name, Part()))):
                part.chosen |= not part.other
                part.other = True

    def tell(self) -> None:
        """Tell the file what this one's calls, results and object's attributes are."""
        of, own = self.own
        held = (
            ((of, name.removeprefix(own)), part)
            for name, part in self.given.items()
            if of and name.rpartition(".")[0] == own
        )
        results = self._results if self._name in self.file.parameters else ()
        parameters = self.file.parameters.get(self._name, ())
        needs = (
            ((self._name, f"({one})"), part)
            for one, part in self.given.items()
            if one.partition(".")[0] in parameters and not part.chosen
        )
        for name in self.put.keys() & self.given.keys():
            sources = [self.given[one] for one in self.put[name].names & self.given.keys()]
            if not any(one.may_be_list for one in (self.put[name], *sources)):
                self.given[name].listed = self.given[name].asked = False
        for key, part in (*held, *self.passed, *results, *needs):
            self.file.tell(key, part)

    def part(self, node: ast.expr) -> Part:
        """Return the part that an expression is."""
        found = super().part(node)
        if isinstance(node, ast.Name) and found is self._turns.get(node.id):
            self._asked.add(node.id)
        return found

    def bind(self, name: str, part: Part) -> None:
        """Bind a name from here on."""
        if name not in self._turns:
            super().bind(name, part)
        elif name not in self.dropped:
            self.now[name] = Part(
                names=frozenset((name,)),
                listed=part.listed,
                row=part.row,
                subscript=part.subscript,
            )
            self.rules.same(self.now[name], part)
            self.bound.setdefault(name, []).append((self._line, self.now[name]))

    def _statements(self, body: Iterable[ast.stmt]) -> None:
        for node in body:
            self._statement(node)

    def _in_turns(self, nodes: Iterable[ast.stmt]) -> dict[str, Part]:
        """Return the names that statements bind, as what they denote in turn."""
        return {name: self._turns[name] for name in _stored(nodes) if name in self._turns}

    def _perhaps(self, *bodies: Sequence[ast.stmt]) -> None:
        """Read statements that may not run."""
        before, after = self.now, self.now.copy()
        for body in bodies:
            self.now = before.copy()
            self._statements(body)
            after |= self._in_turns(body)
        self.now = after

    def _statement(self, node: ast.stmt) -> None:
        self._line = node.lineno if isinstance(node, ast.Assign | ast.AnnAssign) else 0
        match node:
            case ast.Assign(targets=targets, value=value):
                self._assign(targets, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign([target], value)
            case ast.AugAssign(target=target, op=op, value=value):
                part, place = self.part(value), self.part(target)
                made = self.operated(op, [place, part])
                if isinstance(target, ast.Name):
                    self.bind(target.id, made)
                else:
                    self.rules.stored(part, place)
            case ast.For(target=target, iter=over):
                self.now = self.now | self._in_turns([node])
                self.walked(target, over)
                self._perhaps(node.body, node.orelse)
                self.now |= self._in_turns([node])
            case ast.While(test=test):
                self.now = self.now | self._in_turns([node])
                self.test(test)
                self._perhaps(node.body, node.orelse)
            case ast.If(test=test):
                self.test(test)
                self._perhaps(node.body, node.orelse)
            case ast.Assert(test=test):
                self.test(test)
            case ast.With():
                for item in node.items:
                    self.part(item.context_expr)
                    if item.optional_vars is not None:
                        self.unpack(item.optional_vars, Part(other=True))
                self._statements(node.body)
            case ast.Try():
                handlers = (one.body for one in node.handlers)
                self._perhaps(node.body, *handlers, node.orelse)
                self._statements(node.finalbody)
            case ast.Return(value=ast.Tuple(elts=values)):
                parts = enumerate(map(self.handed, values))
                self._results += (((self._name, str(k)), part) for k, part in parts)
                self._results.append(((self._name, ""), Part(other=True)))
            case ast.Return(value=ast.expr() as value):
                self._results.append(((self._name, ""), self.handed(value)))
            case ast.Expr(value=value):
                self.part(value)
            case ast.FunctionDef(args=given, body=body):
                names = {one.arg for one in every(ast.arg, given)}
                own = names | _stored(body).keys()
                now, turns, results = self.now, self._turns, [*self._results]
                self.now = {one: part for one, part in now.items() if one not in own}
                self._turns = {one: part for one, part in turns.items() if one not in own}
                self._statements(body)
                self.now, self._turns, self._results = now, turns, results

    @property
    def may_be_lists(self) -> frozenset[str]:
        """What comes from nobody knows where, and is used as lists may be, too."""
        listed = {name for name, part in self.given.items() if part.listed}
        found = (one for one, names in self._sources.items() if not names or names & listed)
        return frozenset(found) - self.used

    def _assign(self, targets: Sequence[ast.expr], value: ast.expr) -> None:
        value = self.with_shape(value)
        match targets, value:
            case [ast.Tuple(elts=names)], ast.Tuple(elts=values) if len(names) == len(values):
                parts = [self.part(one) for one in values]
                for one, part in zip(names, parts, strict=True):
                    self.unpack(one, part)
            case [ast.Tuple(elts=names)], ast.Attribute(value=array, attr="shape"):
                self.ranked(self.array(self.part(array)), len(names))
                for one in names:
                    self.unpack(one, self.number(whole=True))
            case [ast.Tuple(elts=names)], ast.Subscript(
                ast.Attribute(value=array, attr="shape"), ast.Slice(lower=lower, upper=upper)
            ):
                first, part = getattr(lower, "value", 0), self.part(array)
                self.array(part, len(names) + (first if isinstance(first, int) else 0))
                # who takes the first of them has more in mind
                part.chosen |= upper is not None
                for one in names:
                    self.unpack(one, self.number(whole=True))
            case [ast.Tuple(elts=names)], ast.Call(
                ast.Name(id=name) | ast.Attribute(attr=name)
            ) if name in self.file.parameters:
                self.part(value)
                for k, one in enumerate(names):
                    self.unpack(one, self.file.about(name, str(k)))
            case [ast.Attribute() as held], ast.Constant(value=int() | float()):
                # most often to begin with
                self.part(held).number = True
            case [ast.Tuple(elts=names)], ast.Call() if parts := self.several(value, len(names)):
                for one, part in zip(names, parts, strict=True):
                    self.unpack(one, part)
                    if not (part.number or part.other):
                        self._sources[ast.unparse(one)] = frozenset()
                self.rules.alike(parts)
                for part, other in pairwise(parts):
                    self.rules.apart(part, other)
            case _:
                part = self.part(value)
                if isinstance(value, ast.Call | ast.Subscript | ast.Attribute) and not (
                    part.number or part.array
                ):
                    self._sources |= dict.fromkeys(map(ast.unparse, targets), part.names)
                for target in targets:
                    # names have memory in common, and nothing of a number or None
                    alone = isinstance(value, ast.Constant)
                    self.unpack(target, self.part(value) if alone else part)
