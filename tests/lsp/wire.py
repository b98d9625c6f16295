"""A language server as a process, and the protocol's messages over its pipes.

For those that need no client of a library, because they count time or edits.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from typing import IO, Any


def _clock_of(process: int) -> int | None:
    """Return the clock that counts what a process computes; None where the system has none."""
    clock = ctypes.c_int()
    try:
        failed = ctypes.CDLL(None).clock_getcpuclockid(process, ctypes.byref(clock))
    except (AttributeError, OSError, TypeError):
        return None
    return None if failed else clock.value


class ProtocolError(AssertionError):
    """The server went away, or answered what no server may."""


class Wire:
    """A server that has been initialized; requests are numbered.

    Parameters
    ----------
    machine : str
        For ``--machine``. Of the environment only the place of the store counts.
    log : binary file
        Takes the server's standard error.
    capabilities : dict
        What the editor can do.
    options : dict
        Its settings.
    """

    def __init__(
        self,
        machine: str,
        log: IO[bytes],
        capabilities: dict[str, Any],
        options: dict[str, Any] | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "advisor", "lsp", "--machine", machine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={
                name: value
                for name, value in os.environ.items()
                if name == "ADVISE_DATA_DIR" or not name.startswith("ADVISE_")
            },
        )
        self.serial = 0
        self._clock = _clock_of(self.process.pid)
        parameters = {
            "processId": os.getpid(),
            "rootUri": None,
            "capabilities": capabilities,
            "initializationOptions": options or {},
        }
        try:
            self.abilities: dict[str, Any] = self.ask("initialize", parameters)["capabilities"]
            self.tell("initialized", {})
        except BaseException:
            self.kill()
            raise

    def tell(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def request(self, method: str, params: Any) -> int:
        """Send a request and return its number."""
        self.serial += 1
        self._send({"id": self.serial, "method": method, "params": params})
        return self.serial

    def answer(self, serial: int, refusal: int | None = None) -> Any:
        """Read up to the answer of a request; `refusal` is an error code that is allowed."""
        while True:
            message = self.read()
            if message.get("method") == "window/showMessage":
                raise ProtocolError(f"the server told the user: {message['params']['message']}")
            if message.get("id") != serial or "method" in message:
                continue
            if "error" in message:
                if message["error"]["code"] == refusal:
                    return None
                raise ProtocolError(f"request {serial}: {message['error']}")
            return message["result"]

    def ask(self, method: str, params: Any) -> Any:
        """Send a request and return its answer."""
        return self.answer(self.request(method, params))

    def open(self, uri: str, text: str) -> None:
        """Open a document of Python as its version 1."""
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": item})

    def change(self, uri: str, version: int, changes: list[dict[str, Any]]) -> None:
        """Change a document."""
        document = {"uri": uri, "version": version}
        parameters = {"textDocument": document, "contentChanges": changes}
        self.tell("textDocument/didChange", parameters)

    def stop(self) -> None:
        """End the server as an editor does."""
        self.ask("shutdown", None)
        self._send({"method": "exit"})
        if self.process.wait(timeout=30) != 0:
            raise ProtocolError(f"the server ended with {self.process.returncode}")

    def cpu_s(self) -> float | None:
        """Return how long the server has computed, on all its threads; None where nobody tells."""
        return None if self._clock is None else time.clock_gettime(self._clock)

    def kill(self) -> None:
        """Make sure that the process is gone."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def read(self) -> dict[str, Any]:
        """Return the next message of the server."""
        stream = self.process.stdout
        assert stream is not None
        length = 0
        while line := stream.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            elif name.lower() != b"content-type":
                raise ProtocolError(f"no header: {line!r}")
        if not length:
            raise ProtocolError("the server has ended")
        message: dict[str, Any] = json.loads(stream.read(length))
        return message

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()
