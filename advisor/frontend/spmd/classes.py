"""Classes of a file: their methods, and what their bodies bind."""

from __future__ import annotations

import libcst as cst

from advisor.frontend.spmd.assignments import as_size
from advisor.frontend.spmd.expressions import evaluate
from advisor.frontend.spmd.parameters import of_annotation
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import Class, Function, Opaque, Value


def define_class(node: cst.ClassDef, run: Run) -> Value:
    """Return a class of the file; methods of base classes in the file are its own too."""
    methods: dict[str, Function] = {}
    constants: dict[str, Value] = {}
    for base in node.bases:
        found = run.plain(base.value)
        if isinstance(found, Class):
            methods.update(found.methods)
            constants.update(found.constants)
    made: list[str] = []
    for statement in node.body.body:
        if isinstance(statement, cst.FunctionDef):
            name = f"{node.name.value}.{statement.name.value}"
            function = run.functions.add(name, statement, run)
            methods[statement.name.value] = function
            made.append(function.name)
        elif isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                run.statement = run.span(small)
                _constant(small, constants, run)
    cls = Class(
        node.name.value, tuple(methods.items()), tuple(constants.items()), run.functions.module
    )
    run.functions.own(cls, made, run)
    return cls


def _constant(node: cst.BaseSmallStatement, constants: dict[str, Value], run: Run) -> None:
    match node:
        case cst.Assign(targets=[target], value=value) if isinstance(target.target, cst.Name):
            name = target.target.value
            constants[name] = as_size(name, evaluate(value, run), run)
        case cst.AnnAssign(target=cst.Name(value=name), value=value):
            if value is None:
                found = of_annotation(node.annotation.annotation, name, run)
            else:
                found = as_size(name, evaluate(value, run), run)
            constants[name] = found or Opaque(f"`{name}`", text=name)
