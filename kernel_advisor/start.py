"""Where a process of this tool begins: the command, a worker, numba's extension.

As a script, ``start.py MODULE ARGUMENTS...``, it runs ``MODULE.main(ARGUMENTS)`` of ours in a
Python that has loaded nothing else; see :func:`kernel_advisor.space.command`.
"""

import sys

started = frozenset(sys.modules)


def advise() -> None:
    """Run the command line."""
    from importlib import import_module

    from kernel_advisor.space import pin

    pin()
    import_module("advisor.cli.app").run()


def init_numba() -> None:
    """Switch the compiler's pass on if ``ADVISE_NUMBA`` is set; numba calls this."""
    import os

    if os.environ.get("ADVISE_NUMBA"):
        from importlib import import_module

        from kernel_advisor.space import ours

        with ours():
            import_module("advisor.compiler.switch").init()


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # where this file is
    # the last place will do: nobody else has a package of this name
    sys.path.append(__file__.rpartition("kernel_advisor")[0])
    from importlib import import_module

    from kernel_advisor import space

    sys.path.pop()
    space.begin(started)
    sys.argv = sys.argv[1:]
    sys.exit(import_module(sys.argv[0]).main(sys.argv[1:]))
