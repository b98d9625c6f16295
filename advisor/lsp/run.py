"""Starts the server on the standard streams of the process."""

from __future__ import annotations

import gc
import logging
import os
import sys
from importlib.metadata import PackageNotFoundError, version

from pygls.exceptions import JsonRpcContentModified, JsonRpcInvalidParams

from advisor.lsp.server import AdviseServer
from advisor.lsp.settings import Settings

_ENDED_WITHOUT_SHUTDOWN = 1
_NEVER = 1_000_000_000


def serve(machine: str | None, log_file: str | None) -> int:
    """Serve until the editor ends the session; return the exit code the protocol asks for.

    Raises
    ------
    OSError
        The log file cannot be written.
    """
    if log_file is None:
        handler: logging.Handler = logging.StreamHandler()
    else:
        handler = logging.FileHandler(log_file, encoding="utf-8")
    logging.basicConfig(
        handlers=[handler],
        level=logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("pygls.protocol.json_rpc").addFilter(_no_refusal)
    # One stray print, ours or a library's, would break the protocol: from here on standard
    # output is the log, and only the server knows the real one.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        # to look through all objects takes as long as an answer; that waits until nobody does
        gc.set_threshold(*gc.get_threshold()[:2], _NEVER)
        server = AdviseServer(_version(), Settings(machine=machine))
        server.start_io(sys.stdin.buffer, answers)
    return 0 if server.was_shut_down else _ENDED_WITHOUT_SHUTDOWN


def _no_refusal(record: logging.LogRecord) -> bool:
    """Keep what is no error out of the log: requests that the editor's typing has overtaken."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, JsonRpcContentModified | JsonRpcInvalidParams)


def _version() -> str:
    try:
        return version("kernel-advisor")
    except PackageNotFoundError:
        return "unknown"
