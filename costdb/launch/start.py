"""Where a process of this tool begins: the command, a worker, numba's extension.

As a script, ``start.py MODULE ARGUMENTS...``, it runs ``MODULE.main(ARGUMENTS)`` of ours in a
Python that has loaded nothing else; see :func:`costdb.launch.space.command`.
"""

import sys

started = frozenset(sys.modules)


def advise() -> None:
    """Run the command line."""
    import gc
    from importlib import import_module

    from costdb.launch.space import pin

    # most of what a run makes lives to its end: to look for cycles among it is time lost
    gc.set_threshold(500_000)
    pin()
    import_module("advisor.cli.app").run()


def init_numba() -> None:
    """Switch the compiler's pass on if ``ADVISE_NUMBA`` is set; numba calls this."""
    import os

    if os.environ.get("ADVISE_NUMBA"):
        from importlib import import_module

        from costdb.launch.space import ours

        with ours():
            import_module("advisor.compiler.pipeline").init()


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # where this file is
    sys.path.insert(0, __file__.rpartition("costdb")[0])
    from importlib import import_module

    from costdb.launch import space

    del sys.path[0]
    space.begin(started)
    sys.argv = sys.argv[1:]
    sys.exit(import_module(sys.argv[0]).main(sys.argv[1:]))
