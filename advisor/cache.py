"""A folder of answers: one small file each, replaced all at once, ignored when damaged."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from advisor.codec import decode, encode
from advisor.engine import FileResult, Options
from advisor.files import lasting_name
from advisor.frontend.prefilter import surroundings
from costdb.records import dataclass, replace

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
class Question:
    """One file to check.

    Attributes
    ----------
    path : str
        As reports show it.
    source : str
    options : Options
    machine_digest : str
        Of the content of the machine's profile.
    """

    path: str
    source: str
    options: Options
    machine_digest: str


@dataclass(frozen=True)
class Cache:
    """A folder of entries, each with the key that it answers.

    Nothing here ever fails for lack of space or rights: a cache that cannot be used is empty.

    Attributes
    ----------
    folder : Path
    """

    folder: Path

    @cached_property
    def environment(self) -> str:
        """Digest of the tool and what is installed."""
        return digest(str(VERSION), tool_digest(), str(Path.cwd()))

    def find(self, question: Question) -> FileResult | None:
        """Return the answer kept for a question, if nothing changed that it depends on."""
        values = self.read(_name(question), self._key(question))
        try:
            kept = None if values is None else decode(FileResult, values)
        except (TypeError, ValueError):
            return None
        return kept and replace(kept, source=question.source)

    def keep(self, question: Question, answer: FileResult) -> None:
        """Keep an answer in place of an older one for the same file and options."""
        self.write(_name(question), self._key(question), encode(replace(answer, source="")))

    def _key(self, question: Question) -> str:
        beside = surroundings(question.path, question.source)
        # fingerprints change when a project is made around a file
        name = lasting_name(question.path)
        return digest(self.environment, question.machine_digest, question.source, beside, name)

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
        entries = list(self.folder.glob(f"*{_SUFFIX}*"))
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


VERSION = 6


# What an answer depends on besides its file: this tool, its Python, and installed transforms.

_ROOMS = ("advisor", "costdb", "transforms", "machine_profiles")
_METADATA = (".dist-info", ".egg-info", ".egg-link")


def tool_digest() -> str:
    """Return a digest that changes with the tool, its Python and what is installed beside it.

    Installed distributions are told by the names of their metadata folders, which hold the
    version, and by the time of their installation: to import ``importlib.metadata`` would cost
    more than the rest of an answer from the cache. The tool's own files enter by size and time
    of change, so that its developers never see old answers.
    """
    digest = sha256(repr((sys.version, sys.platform)).encode())
    for fact in (*_distributions(), *_own_files()):
        digest.update(repr(fact).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


def _distributions() -> Iterator[tuple[str, int]]:
    for place in sys.path:
        path = Path(place or ".")
        if path.is_file():  # an archive of modules
            status = path.stat()
            yield f"{path}:{status.st_size}", status.st_mtime_ns
            continue
        try:
            with os.scandir(path) as entries:
                yield from sorted(
                    (entry.name, entry.stat().st_mtime_ns)
                    for entry in entries
                    if entry.name.endswith(_METADATA)
                )
        except OSError:
            continue  # places on the path need not exist


def _own_files() -> Iterator[tuple[str, int, int]]:
    root = Path(__file__).parents[1]
    for room in _ROOMS:
        # plain text instead of `Path`, for speed
        for folder, folders, files in os.walk(root / room):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(files):
                status = os.stat(path := f"{folder}/{name}")  # noqa: PTH116
                yield path, status.st_size, status.st_mtime_ns


def _name(question: Question) -> str:
    return digest(str(Path.cwd()), question.path, repr(question.options))[:40]
