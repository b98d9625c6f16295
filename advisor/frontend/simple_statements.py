"""Simple statements of a kernel's body, as statements of the intermediate form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain

import libcst as cst

from advisor.frontend.accumulations import Combination, Search
from advisor.frontend.arrays import (
    drawn,
    is_generator,
    note_drawn,
    several_of,
    sorted_list,
    unchained,
    value_of,
    whole_read,
)
from advisor.frontend.bindings import names_in, resolve, target_names
from advisor.frontend.declarations import Declarations
from advisor.frontend.indices import bound_to_number, known, pairs
from advisor.frontend.lists import joined, piece_of
from advisor.frontend.scope import Scope, function_of, is_kept, is_of_literals, part_of
from advisor.frontend.stores import (
    assigned_place,
    bind_item,
    chosen,
    chosen_value,
    evaluated,
    mask_of,
    of_call,
    scattered,
    stored,
)
from advisor.frontend.trees import NotUnderstood, nodes_in
from advisor.ir.kernel import with_name
from advisor.ir.nests import is_of_elements
from advisor.ir.shapes import ArrayType, is_whole, whole
from advisor.ir.statements import (
    SET,
    Bind,
    Opaque,
    Rename,
    Return,
    ScalarBind,
    Statement,
    Store,
    Unrolled,
)
from advisor.ir.values import Chosen, Copy, Elementwise, Point, Read, Scalar, Value, base_of
from advisor.numpy_table import COPIES, PYTHON_INTEGER, SAME_AS, strong
from advisor.source import Span
from costdb.expr import Expr, num
from costdb.records import IDENTIFIER

_WORD = re.compile(IDENTIFIER)

NEUTRAL = {"add": "0", "subtract": "0", "multiply": "1"}
"""What a combination leaves as it was."""

ASSIGNMENT = "this kind of assignment is not understood"

LEFT_EARLY = "a loop that may be left early: how often it runs is not known"

RESULT = "<returned>"
"""The name under which an unnamed returned expression is bound."""


class SimpleStatements:
    """Reads simple statements in order, keeping what names denote."""

    def __init__(self, scope: Scope, declarations: Declarations) -> None:
        self.scope = scope
        self.declarations = declarations
        # conditions around, whose branches know of numbers what both do
        self.branches = 0
        self.loops_around = 0
        # how often statements are read for loops over written-out values; 0 outside of any
        self.copies = 0
        # all that can see local names
        self.source: cst.CSTNode | None = None

    def small(self, node: cst.BaseSmallStatement) -> Sequence[Statement]:
        """Return the statements that a simple statement stands for.

        Raises
        ------
        NotUnderstood
            For anything outside the understood language.
        """
        span = self.scope.span(node)
        match node:
            case cst.Pass() | cst.Import() | cst.ImportFrom():
                return ()
            case cst.Break():
                return (Opaque(LEFT_EARLY, frozenset(), span),)
            case cst.Del():
                for name in names_in(node.target):
                    self.scope.forget(name)
                return ()
            case cst.Assert():
                return evaluated(node.test, self.scope, span)
            case cst.Expr(value=cst.Call() as call):
                return of_call(call, span, self.scope)
            case cst.Assign(targets=[target]):
                return self._assign(target.target, node.value, span)
            case cst.Assign(targets=targets):
                return self._chained([one.target for one in targets], node.value, span)
            case cst.AnnAssign():
                return self._annotated(node, span)
            case cst.AugAssign():
                return self._augmented(node, span)
            case cst.Return():
                return self._return(node, span)
            case cst.Raise():
                # what it raises is made where nothing is returned
                return (Return(self.scope.arrays_among(names_in(node)), span),)
        raise NotUnderstood("this kind of statement is not understood")

    def _chained(
        self, targets: Sequence[cst.BaseExpression], value: cst.BaseExpression, span: Span
    ) -> Sequence[Statement]:
        """Return what several assignments of one value are: the others copy the first."""
        made: list[Statement] = []
        for number, target in enumerate(targets):
            if isinstance(target, cst.Name):
                made += self._bind(target.value, value, span)
                if any(isinstance(one, Bind) for one in made):
                    raise NotUnderstood("two names of one array")
            elif isinstance(target, cst.Subscript):
                made += self._assign(target, targets[0] if number else value, span)
            else:
                raise NotUnderstood(ASSIGNMENT)
        # they stand at one place, where no rule may rewrite one of them
        return (Unrolled(tuple(made), span),) if made else ()

    def _assign(
        self, target: cst.BaseExpression, value: cst.BaseExpression, span: Span
    ) -> Sequence[Statement]:
        if isinstance(target, cst.Name):
            return self._bind(target.value, value, span)
        if isinstance(target, cst.List):
            target = cst.Tuple(target.elements)
        if isinstance(target, cst.Tuple) and isinstance(value, cst.Call):
            value = self.scope.expanded(value) or value
        if isinstance(target, cst.Subscript):
            target = unchained(target, self.scope)
            found = scattered(target, SET, value, span, self.scope)
            if found is not None:
                return (found,)
            place, mask = assigned_place(target, self.scope)
            if mask is not None:
                masked = chosen(mask, place, value, self.scope)
                return (stored(place, masked, span, self.scope, in_place=True),)
            return (stored(place, value_of(value, self.scope), span, self.scope),)
        if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
            return self._unpack(target, value, span)
        if (stepped := self._stepped(target, value, span)) is not None:
            return stepped
        results = several_of(value, self.scope) if isinstance(target, cst.Tuple) else None
        if results and len(results) > 1 and isinstance(target, cst.Tuple):
            match target.elements:
                case [*first, cst.StarredElement(cst.Name(rest))]:
                    # a list of results
                    self.scope.forget(rest)
                    target, results = target.with_changes(elements=first), results[: len(first)]
        if results is not None and isinstance(target, cst.Tuple):
            names = _plain_names(target)
            if names is None or len(names) != len(results) or len(set(names)) != len(names):
                raise NotUnderstood(ASSIGNMENT)
            made = [self._denoting(*one, value, span) for one in zip(names, results, strict=True)]
            # no rule may rewrite one of them
            return (Unrolled(tuple(chain.from_iterable(made)), span),)
        items = known(value, self.scope)
        if isinstance(target, cst.Tuple) and isinstance(items, tuple):
            for name, item in pairs(target, items, self.scope):
                bind_item(name, item, self.scope)
            return ()
        if isinstance(target, cst.Tuple):
            return self._spread(target, value, span)
        raise NotUnderstood(ASSIGNMENT)

    def _stepped(
        self, target: cst.BaseExpression, value: cst.BaseExpression, span: Span
    ) -> Sequence[Statement] | None:
        """Read ``x, h = np.linspace(..., retstep=True)``; None for anything else."""
        match target, value:
            case cst.Tuple([cst.Element(cst.Name(name)), cst.Element(cst.Name(step))]), cst.Call():
                args = [one for one in value.args if not _asks_for_step(one)]
                called = resolve(value.func, self.scope.imports)
                if called == "numpy.linspace" and len(args) < len(value.args):
                    made = self._bind(name, value.with_changes(args=args), span)
                    self.scope.bind_number(step, "float64")
                    return (Unrolled(tuple(made), span),)
        return None

    def _spread(
        self, target: cst.Tuple, node: cst.BaseExpression, span: Span
    ) -> Sequence[Statement]:
        """Read ``x, y = array``: names of its elements, or rows, of which there are as many."""
        names, scope = _plain_names(target), self.scope
        numbers = drawn(node, scope)
        value = numbers or value_of(node, scope)
        extents = scope.type_of(value).extents
        if names is None or len(set(names)) < len(names) or not extents:
            raise NotUnderstood(ASSIGNMENT)
        if numbers is not None:
            for name in names:
                note_drawn(name, numbers, scope)
        made: list[Statement] = []
        if not isinstance(value, Read):
            together = f"<{', '.join(names)}>"
            scope.bind_local(together, scope.type_of(value))
            made.append(Bind(together, value, span))
            value = whole_read(together, scope)
        for place, name in enumerate(names):
            part = part_of(value, (Point(num(place)), *whole(extents[1:])))
            made += self._denoting(name, part, node, span)
        return (Unrolled(tuple(made), span),) if made else ()

    def _bind(self, name: str, node: cst.BaseExpression, span: Span) -> Sequence[Statement]:
        scope = self.scope
        if isinstance(node, cst.Name) and node.value == "None":
            scope.bind_thing(name, "None")
            return ()
        if self._is_table(name, node):
            scope.forget(name)
            scope.written_out[name] = node
            return ()
        if bound_to_number(name, node, scope):
            carried = name in scope.carried and scope.by_element
            return (ScalarBind(name, scope.started[name], span),) if carried else ()
        if is_generator(node, scope) and scope.times_bound(name) == 1:
            scope.generators.add(name)
            return ()
        if name in scope.growing and (piece := piece_of(name, node, scope.imports)) is not None:
            return joined(name, piece, span, scope)
        other: Value | None = None
        if (numbers := drawn(node, scope)) is not None:
            other = numbers
            note_drawn(name, numbers, scope)
        # of builtins alone, as it looks through all that sees the name
        builtin = isinstance(node, cst.Call) and isinstance(node.func, cst.Name)
        if other is None and builtin and self._is_list(name):
            other = sorted_list(node, scope)
        value = value_of(node, scope) if other is None else other
        return self._denoting(name, value, node, span)

    def _denoting(
        self, name: str, value: Value, node: cst.BaseExpression, span: Span
    ) -> Sequence[Statement]:
        """Let a name denote a value, that of an expression."""
        scope = self.scope
        if isinstance(value, Scalar) and scope.calls:
            # its name stands nowhere
            scope.bind_element(name, value)
            return ()
        if isinstance(value, Scalar):
            varies = name in scope.carried or set(_WORD.findall(value.text)) & scope.numbers.keys()
            around = self.loops_around or self.branches or self.copies
            if value.dtype == PYTHON_INTEGER and not around and scope.times_bound(name) == 1:
                scope.bind_size(name)
            else:
                scope.bind_number(name, value.dtype)
            scope.started[name] = value
            # it may be another number in each iteration
            return (ScalarBind(name, value, span),) if scope.by_element and varies else ()
        found = scope.type_of(value)
        carried = name in scope.carried
        if not found.extents and scope.by_element and is_of_elements(value) and not carried:
            scope.bind_element(name, value)
            return ()
        if not found.extents:
            scope.bind_number(name, found.dtype)
            return (ScalarBind(name, value, span),)
        if isinstance(value, Read) and scope.is_inner(value.array) and not scope.calls:
            return self._left_by_call(name, value, span)
        if isinstance(value, Read):
            if scope.is_array(name) and value == whole_read(name, scope):
                # `x = np.asarray(x)` of an array
                return ()
            if scope.seen.likely and self._copying(node):
                raise NotUnderstood("an array of what may be a list, or have another type")
            if isinstance(node, cst.Name) and scope.has_array(name) and scope.has_array(node.value):
                return self._handed_over([name], [node.value], span)
            if self._is_rebound(name) and not scope.has_array(name):
                # elsewhere it is another array, and here nothing is made
                scope.bind_local(name, found)
                scope.share(name, value.array)
                return ()
            # a basic subscript, or another name: shares the memory of the array behind it
            scope.bind_view(name, value)
            return ()
        base = base_of(value) or self._maybe_shared(node, value)
        if base is not None and isinstance(value, Chosen):
            # a row, which is read where it is used
            scope.relate({name, base})
            scope.bind_element(name, value)
            return ()
        scope.bind_local(name, found)
        if base is not None:
            scope.share(name, base)
        return (Bind(name, value, span),)

    def _left_by_call(self, name: str, value: Read, span: Span) -> Sequence[Statement]:
        """Bind a name to an array that a function of the file made, which nothing else holds."""
        scope, found = self.scope, self.scope.type_of(value)
        inner = scope.array_type(value.array)
        if scope.has_array(name) and is_whole(value.region, inner.extents):
            return self._handed_over([name], [value.array], span)
        scope.bind_local(name, found)
        if not is_whole(value.region, inner.extents):
            return (Bind(name, Copy(value, found.dtype), span),)
        scope.pending = [with_name(one, value.array, name) for one in scope.pending]
        return ()

    def _is_rebound(self, name: str) -> bool:
        """Return whether a name is given several values, and not only one that changes in place."""
        if self.source is None or self.scope.times_bound(name) < 2:
            return False
        found = (one for one in nodes_in(self.source) if isinstance(one, cst.AssignTarget))
        return sum(name in target_names(one.target) for one in found) > 1

    def _is_list(self, name: str) -> bool:
        """Return whether a list by a name is used as an array would be."""
        once = self.scope.times_bound(name) == 1
        return once and self.source is not None and is_kept(name, self.source, looked_up=True)

    def _is_table(self, name: str, node: cst.BaseExpression) -> bool:
        """Return whether a name stands for written-out numbers wherever it is used."""
        scope = self.scope
        numbers = () if self.loops_around else scope.numbers.keys() | scope.scalars.keys()
        named = [one for one in numbers if scope.times_bound(one) < 2]
        if not is_of_literals(node, named) or scope.times_bound(name) != 1 or scope.has_array(name):
            return False
        return isinstance(node, cst.Tuple) or (
            self.source is not None and is_kept(name, self.source, keyed=isinstance(node, cst.Dict))
        )

    def _maybe_shared(self, node: cst.BaseExpression, value: Value) -> str | None:
        """Return the array that `np.ascontiguousarray` and its like copy where they must."""
        if not isinstance(value, Copy) or not self._copying(node):
            return None
        same = value.dtype == self.scope.type_of(value.operand).dtype
        return base_of(value.operand) if same else None

    def _copying(self, node: cst.BaseExpression) -> bool:
        """Return whether a function that copies where it must makes something."""
        called = resolve(node.func, self.scope.imports) if isinstance(node, cst.Call) else None
        name = (called or "").removeprefix("numpy.")
        copying = COPIES.get(SAME_AS.get(name, name))
        return copying is not None and not copying.always

    def _unpack(self, target: cst.Tuple, value: cst.Tuple, span: Span) -> Sequence[Statement]:
        left, right = _plain_names(target), _plain_names(value)
        if len(target.elements) != len(value.elements):
            raise NotUnderstood(ASSIGNMENT)
        if left is None:
            return self._to_places(target, value, span)
        names = frozenset(left)
        distinct = len(names) == len(left) and right is not None and len(set(right)) == len(right)
        if right is not None and distinct and all(map(self.scope.has_array, (*left, *right))):
            return self._handed_over(left, right, span)
        inputs: frozenset[str] = frozenset().union(*map(names_in, value.elements))
        starred = any(isinstance(element, cst.StarredElement) for element in value.elements)
        if starred or self.scope.behind(inputs) & names:
            raise NotUnderstood(ASSIGNMENT)
        made: list[Statement] = []
        for name, element in zip(left, value.elements, strict=True):
            made.extend(self._bind(name, element.value, span))
        return made

    def _to_places(self, target: cst.Tuple, value: cst.Tuple, span: Span) -> Sequence[Statement]:
        """Read ``x[i], x[j] = a, b``, of which none needs what another one stores."""
        bases = [getattr(one.value, "value", None) for one in target.elements]
        places = [one.value for one in target.elements if isinstance(one.value, cst.Subscript)]
        stored = frozenset(one.value for one in bases if isinstance(one, cst.Name))
        needed = (part for one in places for element in one.slice for part in names_in(element))
        inputs = frozenset(needed).union(*(names_in(one) for one in value.elements))
        starred = any(isinstance(one, cst.StarredElement) for one in value.elements)
        scope = self.scope
        plain = len(places) == len(bases) and all(isinstance(one, cst.Name) for one in bases)
        if starred or not plain or scope.behind(inputs) & scope.behind(stored):
            raise NotUnderstood(ASSIGNMENT)
        made: list[Statement] = []
        for place, element in zip(places, value.elements, strict=True):
            made += self._assign(place, element.value, span)
        return (Unrolled(tuple(made), span),)

    def _handed_over(
        self, names: Sequence[str], others: Sequence[str], span: Span
    ) -> Sequence[Statement]:
        """Read ``name, ... = other, ...`` of arrays with memory of their own.

        Time steps end so. A name on the right alone then denotes the same array as one on the
        left, so it is not followed until it is bound anew.
        """
        if names == others:
            return ()
        scope = self.scope
        kept = frozenset(scope.lost)
        types = {scope.array_type(other) for other in others}
        scope.lost.difference_update(names)
        types |= {scope.array_type(name) for name in names}
        if len(types) != 1:
            scope.lost |= kept
            raise NotUnderstood(
                f"`{names[0]}` changes its shape or element type here"
                if len(names) == 1
                else "names of unlike arrays are exchanged"
            )
        changed = frozenset((*names, *others))
        for view, target in list(scope.views.items()):
            # it stays with the memory it had, whose name is another now
            if target.array in changed:
                del scope.views[view]
        scope.renamed |= changed
        if scope.strided & changed:
            scope.strided |= changed
        for other in frozenset(others).difference(names):
            scope.forget(other)
        return (Rename(changed, span),)

    def _annotated(self, node: cst.AnnAssign, span: Span) -> Sequence[Statement]:
        if not isinstance(node.target, cst.Name):
            raise NotUnderstood("an annotation of something that is no name")
        name = node.target.value
        declared = self.declarations.declared(name, node.annotation.annotation)
        if declared is not None:
            if self.scope.is_array(name):
                raise NotUnderstood(f"`{name}` is declared after its first use")
            self.scope.locals.pop(name, None)
            self.scope.forget(name)
            self.scope.declared[name] = declared
        if node.value is None:
            return ()
        return self._bind(name, node.value, span)

    def _augmented(self, node: cst.AugAssign, span: Span) -> Sequence[Statement]:
        scope = self.scope
        operation = function_of(node.operator)
        if operation is None:
            raise NotUnderstood("this operator is not understood on arrays")
        place: Read
        if isinstance(node.target, cst.Name):
            name = node.target.value
            if name in scope.scalars:
                if scope.accumulating:
                    raise NotUnderstood(f"`{name}` changes its value in a way that is not followed")
                before = scope.started.get(name)
                scope.bind_number(name, PYTHON_INTEGER)
                if before is not None:
                    scope.started[name] = before
            if not scope.is_array(name):
                return self._accumulated(name, operation, node.value, span)
            place = whole_read(name, scope)
        elif isinstance(node.target, cst.Subscript):
            target = unchained(node.target, scope)
            added = scattered(target, operation, node.value, span, scope)
            if added is not None:
                return (added,)
            place, mask = assigned_place(target, scope)
            if mask is not None:
                # each element is chosen once
                one = Elementwise(operation, (place, chosen_value(mask, node.value, scope)))
                scope.type_of(one)
                made = Elementwise("where", (mask, one, place))
                return (stored(place, made, span, scope, in_place=True),)
        else:
            raise NotUnderstood(ASSIGNMENT)
        value = Elementwise(operation, (place, value_of(node.value, scope)))
        return (stored(place, value, span, scope, in_place=True),)

    def _accumulated(
        self, name: str, operation: str, node: cst.BaseExpression, span: Span
    ) -> Sequence[Statement]:
        """Read ``number += value``."""
        scope = self.scope
        if name not in scope.numbers and name not in scope.elements:
            raise scope.unknown(name)
        if name in scope.elements and scope.type_of(scope.elements[name]).extents:
            raise NotUnderstood("an array of another length each time that changes in place")
        added = value_of(node, scope)
        since = scope.elements.get(name) or scope.started.get(name)
        alone = scope.by_element and not self.branches
        if alone and since is not None and is_of_elements(added):
            made = Elementwise(operation, (since, added))
            if not isinstance(added, Scalar) or name in scope.elements:
                scope.bind_element(name, made)
                return ()
        if name not in scope.numbers:
            raise scope.unknown(name)
        before = Scalar(name, scope.numbers[name])
        found = self.scope.type_of(Elementwise(operation, (before, added)))
        if found.extents:
            raise NotUnderstood(f"`{name}` becomes an array here")
        self.scope.bind_number(name, found.dtype)
        known = isinstance(added, Scalar) and not self.scope.by_element
        return () if known else (ScalarBind(name, added, span, combined=True),)

    def sought(self, found: Search, span: Span) -> Sequence[Statement]:
        """Read a statement that keeps the first extreme that the loop has found, and its place."""
        scope = self.scope
        best, place, value = (
            Read(found.best, ()),
            Read(found.place, ()),
            value_of(found.value, scope),
        )
        if not is_of_elements(value):
            raise NotUnderstood("an extreme of what is computed twice")
        kept = Elementwise(found.operation, (best, value))
        scope.totals[found.best] = ArrayType(strong(scope.type_of(kept).dtype), ())
        relation = "less" if found.operation == "minimum" else "greater"
        better = Elementwise(relation, (value, best))
        index = Scalar(found.index, PYTHON_INTEGER)
        held = scope.held_in(value)
        for one in (found.best, found.place):
            scope.changed(one)
            scope.bind_element(one, Read(one, ()))
        return (
            Store(found.place, (), Elementwise("where", (better, index, place)), span, held=held),
            Store(found.best, (), kept, span, True, held, compared="first"),
        )

    def combined(self, found: Combination, span: Span) -> Sequence[Statement]:
        """Read a statement that combines a number, which the loops only accumulate, with a value.

        Raises
        ------
        NotUnderstood
            Where the number becomes an array.
        """
        scope, name = self.scope, found.name
        value = value_of(found.value, scope)
        passed = name in scope.passed_on
        if not passed and name not in scope.numbers:
            # since a statement before is not understood
            raise scope.unknown(name)
        before = Scalar(name, scope.totals[name].dtype if passed else scope.numbers[name])
        dtype = scope.type_of(Elementwise(found.operation, (before, value))).dtype
        mask = None if found.condition is None else mask_of(found.condition, scope)
        if mask is not None and found.operation in NEUTRAL:
            neutral = Scalar(NEUTRAL[found.operation], PYTHON_INTEGER)
            value = Elementwise("where", (mask, value, neutral))
        if scope.type_of(value).extents:
            raise NotUnderstood(f"`{name}` becomes an array here")
        if passed:
            if not is_of_elements(value):
                raise NotUnderstood(f"`{name}` changes its value in a way that is not followed")
            scope.totals[name] = ArrayType(strong(dtype), ())
            own, held = Read(name, ()), scope.held_in(value)
            sides = (value, own) if found.compared == "last" else (own, value)
            made = Elementwise(found.operation, sides)
            scope.changed(name)
            scope.bind_element(name, own)
            return (Store(name, (), made, span, True, held, compared=found.compared),)
        scope.numbers[name] = dtype
        spread = any(array.spec.mesh.axes for array in scope.declared.values())
        if not is_of_elements(value) and spread:
            return (ScalarBind(name, value, span, combined=True),)
        scope.totals[name] = ArrayType(strong(dtype), ())
        combined = Elementwise(found.operation, (Read(name, ()), value))
        if mask is not None and found.operation not in NEUTRAL:
            combined = Elementwise("where", (mask, combined, Read(name, ())))
        held = scope.held_in(value)
        return (Store(name, (), combined, span, in_place=True, held=held),)

    def _return(self, node: cst.Return, span: Span) -> Sequence[Statement]:
        if node.value is None:
            return (Return(frozenset(), span),)
        parts = (
            [element.value for element in node.value.elements]
            if isinstance(node.value, cst.Tuple)
            else [node.value]
        )
        made: list[Statement] = []
        leaving: set[str] = set()
        for number, part in enumerate(parts):
            if isinstance(known(part, self.scope), Expr):
                continue
            if isinstance(part, cst.Name) and self.scope.is_object(part.value):
                leaving |= self.scope.arrays_among({part.value})
                continue
            value = value_of(part, self.scope)
            if isinstance(part, cst.Name) and part.value in self.scope.picked:
                leaving.add(part.value)
            elif isinstance(value, Read) and self.scope.type_of(value).extents:
                # a view, for which nothing is computed
                leaving.add(value.array)
            elif not isinstance(value, Scalar):
                name = f"{RESULT}{number or ''}"
                found = self.scope.type_of(value)
                if found.extents:
                    self.scope.bind_local(name, found)
                    made.append(Bind(name, value, span))
                else:
                    made.append(ScalarBind(name, value, span))
                leaving.add(name)
        return (*made, Return(frozenset(leaving), span))


def _asks_for_step(node: cst.Arg) -> bool:
    match node:
        case cst.Arg(cst.Name("True"), cst.Name("retstep")):
            return True
    return False


def _plain_names(node: cst.Tuple) -> list[str] | None:
    """Return the names of a tuple that holds nothing else."""
    names = [
        element.value.value
        for element in node.elements
        if isinstance(element, cst.Element) and isinstance(element.value, cst.Name)
    ]
    return names if len(names) == len(node.elements) else None
