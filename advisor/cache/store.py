"""A folder of answers: one small file each, replaced all at once, ignored when damaged."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

FOLDER_NAME = ".advise_cache"

_TAG_NAME = "CACHEDIR.TAG"
_TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# Answers kept by advise; `advise clean` removes them.\n"
)
_IGNORE_NAME = ".gitignore"
_SUFFIX = ".answer"


class ForeignFolderError(ValueError):
    """The folder holds something else; one line."""


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder of entries, each with the key that it answers.

    Nothing here ever fails for lack of space or rights: a cache that cannot be used is empty.

    Attributes
    ----------
    folder : Path
    """

    folder: Path

    def read(self, name: str, key: str) -> Any:
        """Return the JSON values kept for a key; None when there are none, or damaged ones.

        Parameters
        ----------
        name : str
            Which entry; a later key of the same name takes its place.
        key : str
            Digest of everything that the values depend on.
        """
        try:
            stored_key, checksum, text = self._path(name).read_bytes().split(b"\n", 2)
        except (OSError, ValueError):
            return None
        if stored_key != key.encode() or checksum != _checksum(text):
            return None
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return None

    def write(self, name: str, key: str, values: Any) -> None:
        """Keep JSON values for a key. Readers see the old entry or the new one."""
        text = json.dumps(values, separators=(",", ":")).encode()
        path = self._path(name)
        temporary = path.with_name(f"{path.name}.{os.getpid()}-{os.urandom(4).hex()}")
        try:
            self._prepare()
            temporary.write_bytes(b"\n".join((key.encode(), _checksum(text), text)))
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def clean(self) -> int:
        """Remove the entries, and the folder once nothing else is in it.

        Returns
        -------
        int
            How many entries there were.

        Raises
        ------
        ForeignFolderError
            The folder is not a cache.
        OSError
            Something in it cannot be removed.
        """
        if not self.folder.exists():
            return 0
        self.check()
        entries = list(self._entries())
        for entry in entries:
            entry.unlink(missing_ok=True)
        for name in (_IGNORE_NAME, _TAG_NAME):
            (self.folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # somebody put other things in, or fills it again
            self.folder.rmdir()
        return sum(entry.name.endswith(_SUFFIX) for entry in entries)

    def check(self) -> None:
        """Raise ForeignFolderError when the folder is in use for something else."""
        if not self.folder.exists() or (self.folder / _TAG_NAME).is_file():
            return
        if not self.folder.is_dir():
            raise ForeignFolderError(f"{self.folder}: is not a folder")
        # a run that was killed may have left this one alone
        if any(path.name != _IGNORE_NAME for path in self.folder.iterdir()):
            raise ForeignFolderError(f"{self.folder}: is not a cache of advise, and not empty")

    def _entries(self) -> Iterator[Path]:
        for path in self.folder.iterdir():
            if f"{_SUFFIX}." in path.name or path.name.endswith(_SUFFIX):
                yield path

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{_SUFFIX}"

    def _prepare(self) -> None:
        if (self.folder / _TAG_NAME).is_file():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / _IGNORE_NAME).write_text("*\n", encoding="ascii")
        # last, because it says that the others are there
        (self.folder / _TAG_NAME).write_text(_TAG, encoding="ascii")


def digest(*parts: str) -> str:
    """Return a digest of texts; their limits count."""
    return sha256(json.dumps(parts).encode()).hexdigest()


def _checksum(text: bytes) -> bytes:
    return sha256(text).hexdigest().encode()
