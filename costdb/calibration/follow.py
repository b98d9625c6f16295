"""Ends a process when another one is gone."""

from __future__ import annotations

import os
import signal
import time

_LOOK_S = 1.0
_MOST_FILES = 4096


def follow(owner: int) -> None:
    """Have this process killed within a second or so after another one has ended.

    A launcher that loses its reader waits for its ranks, and they for one another, for ever. A
    thread could not end them: a library that waits for other ranks while it starts up keeps the
    interpreter to itself. So a process does that has nothing else to do; it ends with this one.
    Systems that cannot fork do without.

    Parameters
    ----------
    owner : int
        Identifies a process of this machine.
    """
    if not hasattr(os, "fork"):
        return
    followed = os.getpid()
    if os.fork() != 0:
        return
    try:
        # whoever reads what this process writes waits until all that could write are gone
        os.closerange(0, _MOST_FILES)
        while os.getppid() == followed:
            if not _is_there(owner):
                os.kill(followed, signal.SIGKILL)
                break
            time.sleep(_LOOK_S)
    finally:
        os._exit(0)


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
