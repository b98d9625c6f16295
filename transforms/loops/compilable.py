"""Which loops a compiler of single functions takes, as numba does: by what stands in the source.

It takes numbers, elements, arrays and functions of NumPy on them, and calls of functions of the
file that do no more. It takes no texts, dictionaries, objects, files and messages.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from advisor.ir.waiting import METHODS, PURE

_STATEMENTS = (
    ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If, ast.For, ast.While, ast.Expr, ast.Pass,
    ast.Continue, ast.Break, ast.Return,
)  # fmt: skip
_EXPRESSIONS = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.Name, ast.Subscript,
    ast.Slice, ast.Attribute, ast.Constant, ast.Tuple, ast.keyword, ast.List,
    # what is no expression of its own
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context, ast.arguments, ast.arg,
)  # fmt: skip
_BUILTINS = PURE | {"enumerate", "zip", "reversed", "divmod", "pow"}
_GENERATORS = frozenset(
    {"exponential", "integers", "normal", "poisson", "random", "standard_normal", "uniform"}
)
"""Methods of NumPy's generators of random numbers."""
_LISTS = frozenset({"append", "pop", "extend"})
_NOT_TAKEN = frozenset(
    {"apply_along_axis", "array2string", "einsum", "fromfile", "frompyfunc", "genfromtxt", "load"}
    | {"loadtxt", "memmap", "save", "savetxt", "savez", "savez_compressed", "vectorize", "fft"}
)
"""Functions of NumPy that a compiler leaves to the interpreter."""
_DEEPEST = 3


def is_compilable(loop: ast.stmt, tree: ast.Module) -> bool:
    """Return whether a compiler takes a loop of a file."""
    return _is_taken(loop, _Names.of(tree), 0)


class _Names:
    """What names of a file stand for.

    Attributes
    ----------
    modules, functions : set of str
        Those whose functions take and give numbers and arrays; such functions by themselves.
    own : mapping of str to ast.FunctionDef
        Functions of the file.
    """

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.functions: set[str] = set()
        self.own: Mapping[str, ast.FunctionDef] = {}

    @classmethod
    def of(cls, tree: ast.Module) -> _Names:
        """Return the names of a file."""
        made, known = cls(), ("numpy", "math", "cmath")
        for one in ast.walk(tree):
            match one:
                case ast.Import(names):
                    made.modules |= {part.asname or part.name for part in names} & {
                        part.asname or part.name for part in names if part.name in known
                    }
                case ast.ImportFrom(module, names) if module in known:
                    made.functions |= {part.asname or part.name for part in names}
        made.own = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
        return made


def _is_taken(node: ast.AST, names: _Names, depth: int) -> bool:
    for one in ast.walk(node):
        match one:
            case ast.Call():
                if not _is_called(one, names, depth):
                    return False
            case ast.Constant(value):
                if isinstance(value, str | bytes):
                    return False
            case ast.NamedExpr():
                return False
            case ast.stmt() if not isinstance(one, _STATEMENTS):
                return False
            case ast.stmt():
                pass
            case _ if not isinstance(one, _EXPRESSIONS):
                return False
    return True


def _is_called(call: ast.Call, names: _Names, depth: int) -> bool:
    match call.func:
        case ast.Name(name) if name in names.own:
            function = names.own[name]
            body = ast.Module(function.body[_has_docstring(function) :], [])
            plain = not function.decorator_list and depth < _DEEPEST
            return plain and all(_is_taken(one, names, depth + 1) for one in body.body)
        case ast.Name(name):
            return name in _BUILTINS or name in names.functions
        case ast.Attribute(ast.Name(module), "array" | "asarray") if module in names.modules:
            # of numbers, not of arrays
            lists = (one for one in call.args if isinstance(one, ast.List))
            return not any(isinstance(one, ast.Slice) for part in lists for one in ast.walk(part))
        case ast.Attribute(ast.Name(module), function) if module in names.modules:
            return function not in _NOT_TAKEN
        case ast.Attribute(ast.Attribute(ast.Name(module), part)) if module in names.modules:
            return part in ("linalg", "random")
        case ast.Attribute(ast.Name(), method):
            return method in METHODS | _LISTS | _GENERATORS
        case ast.Attribute(_, method):
            return method in METHODS
    return False


def _has_docstring(function: ast.FunctionDef) -> bool:
    return ast.get_docstring(function) is not None
