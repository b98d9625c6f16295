"""Names of ``-D`` that nothing has."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from advisor.cli.common import complain
from costdb.wording import nearest

_MOST_NAMES = 8
"""So many sizes fit a line; those of a whole project help nobody."""


def tell_unused(given: Iterable[str], known: Collection[str]) -> None:
    """Say which names of ``-D`` nothing has.

    No error: a hook passes one ``-D`` along with whichever files a commit changes.
    """
    for name in given:
        if name not in known:
            hint = nearest(name, sorted(known), _MOST_NAMES)
            complain(
                f"advise: -D {name} changes nothing: what was checked has no size or parameter"
                f" {name}{hint}"
            )


def names_in(path: str, source: str, *, arguments: bool = False) -> frozenset[str]:
    """Return the sizes of the kernels and of the program of a file.

    Parameters
    ----------
    path, source : str
    arguments : bool
        All parameters of the kernels as well: a run passes them what is given.

    Raises
    ------
    SourceProblem
        The file does not parse, or an annotation cannot be right.
    """
    from advisor.frontend.kernels import read_kernels
    from advisor.frontend.spmd.called import called
    from advisor.frontend.spmd.reader import read_program
    from advisor.frontend.syntax.prefilter import may_call_compiled
    from advisor.ir.spmd.program import RANKS
    from advisor.ranking.sizes import bindable

    found: frozenset[str] = frozenset()
    compiled = called(path, source) if may_call_compiled(source) else ()
    kernels = read_kernels(path, source, compiled)
    for kernel in kernels:
        found |= bindable(kernel)
    if arguments and kernels:
        called_so = {kernel.name.rpartition(".")[2] for kernel in kernels}
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and node.name in called_so:
                found |= {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
    program = read_program(path, source)
    return found if program is None else found | {RANKS, *program.sizes}
