"""Names in source: dotted expressions, and what the file's imports make of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import libcst as cst

ARRAY_MODULES = frozenset({"numpy", "jax.numpy", "cupy", "dask.array", "cupynumeric"})
"""Modules that follow NumPy's interface; their functions are read as NumPy's."""

IMMUTABLE_ARRAYS = frozenset({"jax.numpy"})
"""Those of them whose arrays cannot be changed in place."""


def dotted(node: cst.BaseExpression) -> str | None:
    """Return ``a.b.c`` for a chain of attributes of a name, None for anything else."""
    parts: list[str] = []
    # by their types: what is neither is asked often, and takes long to tell from an abstract class
    while type(node) is cst.Attribute:
        parts.append(node.attr.value)
        node = node.value
    if type(node) is not cst.Name:
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))


def imported_names(statements: Iterable[cst.BaseSmallStatement]) -> dict[str, str]:
    """Return what each imported name stands for, such as ``{"np": "numpy"}``."""
    table: dict[str, str] = {}
    for statement in statements:
        if isinstance(statement, cst.Import):
            for alias in statement.names:
                whole = dotted(alias.name) or ""
                name = alias.evaluated_alias
                if name is not None:
                    table[name] = whole
                else:
                    head = whole.split(".", 1)[0]
                    table[head] = head
        elif isinstance(statement, cst.ImportFrom):
            if statement.module is None or statement.relative:
                continue
            if isinstance(statement.names, cst.ImportStar):
                continue
            module = dotted(statement.module) or ""
            for alias in statement.names:
                bound = alias.evaluated_alias or alias.evaluated_name
                table[bound] = f"{module}.{alias.evaluated_name}"
    return table


def resolve(node: cst.BaseExpression, imports: Mapping[str, str]) -> str | None:
    """Return the full dotted name an expression denotes, through the file's imports.

    Every module of `ARRAY_MODULES` is given the name ``numpy``.
    """
    name = dotted(node)
    if name is None:
        return None
    head, _, rest = name.partition(".")
    if head not in imports:
        return None
    full = f"{imports[head]}.{rest}" if rest else imports[head]
    for module in ARRAY_MODULES:
        if full == module or full.startswith(module + "."):
            return "numpy" + full.removeprefix(module)
    return full


def array_module_name(imports: Mapping[str, str], used: frozenset[str]) -> str | None:
    """Return the name of a module with NumPy's interface whose arrays change in place.

    Where several are imported, it is the one that the kernel uses by name; None where that
    does not tell them apart.
    """
    known = [name for name, module in imports.items() if module in ARRAY_MODULES]
    if len({imports[name] for name in known}) > 1:
        known = [name for name in known if name in used]
    if len({imports[name] for name in known}) != 1:
        return None
    return None if imports[known[0]] in IMMUTABLE_ARRAYS else known[0]
