"""Projects and their files: where the root is, reading by declared encodings, replacing."""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from advisor.source import NOTEBOOK, SourceProblem, text_of, with_text
from costdb.records import dataclass

_DECLARATION = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_HOW = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
LARGEST_BYTES = 1 << 26
"""Larger files are not read: the largest programs that people keep in one are a hundredth."""

_BLANK_OR_COMMENT = re.compile(rb"[ \t\f]*(?:#.*)?$")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The text of a file without its byte order mark, and how to turn it back into bytes.

    Of a notebook it is the Python of its cells; `notebook` is then its JSON.
    """

    text: str
    encoding: str
    notebook: str | None = None

    def written(self, text: str) -> str:
        """Return what the file holds with a changed text.

        Raises
        ------
        CellsLost
            A notebook's cells cannot be told from that text.
        """
        if self.notebook is None:
            return text

        return with_text(self.notebook, text)

    def encode(self, text: str) -> bytes:
        """Return the bytes of a changed text, in the encoding and with the mark it had."""
        return self.written(text).encode(self.encoding)


def decode_source(path: str, data: bytes) -> SourceFile:
    """Decode a Python file or a notebook; line ends are kept as they are.

    Raises
    ------
    SourceProblem
        When the declared encoding is unknown, the bytes do not follow it, or a notebook is none.
    """
    is_notebook = path.endswith(NOTEBOOK)
    mark = "-sig" * data.startswith(codecs.BOM_UTF8)
    encoding = f"utf-8{mark}" if is_notebook else _declared_encoding(path, data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        # error.object, because its offsets count from behind a byte order mark
        before = error.object[: error.start]
        line_start = max(before.rfind(b"\n"), before.rfind(b"\r")) + 1
        raise SourceProblem(
            path,
            len(re.findall(rb"\r\n|\n|\r", before)) + 1,
            len(before[line_start:].decode(encoding, "replace")),
            f"byte 0x{error.object[error.start]:02x} is not {encoding.removesuffix('-sig')}: if it"
            " is Python, name its encoding in the first line, as in # coding: latin-1",
        ) from error
    if is_notebook:
        return SourceFile(text_of(path, text), encoding, text)
    return SourceFile(text, encoding)


def read_bytes(path: str) -> bytes:
    """Return the content of a file, or of a pipe that somebody writes to.

    Raises
    ------
    OSError
        The system refuses, or there is no file to read: devices may never end, a pipe without
        a writer would be waited for, and more than `LARGEST_BYTES` are no program.
    """
    # without waiting, because opening a pipe that nobody writes to would never return
    handle = os.open(path, _HOW)
    try:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode)):
            raise OSError(errno.EINVAL, "Not a regular file", path)
        os.set_blocking(handle, True)
        # a file that grows or shrinks meanwhile is read as far as it goes
        parts, total = [os.read(handle, min(status.st_size, LARGEST_BYTES) + 1)], 0
        while parts[-1]:
            total += len(parts[-1])
            if total > LARGEST_BYTES:
                raise OSError(errno.EFBIG, "File too large", path)
            parts.append(os.read(handle, 1 << 20))
        return b"".join(parts)
    finally:
        os.close(handle)


def read_source(path: str) -> SourceFile:
    """Read a Python file; raises OSError besides what `decode_source` raises."""
    return decode_source(path, read_bytes(path))


def replace_file(path: str, data: bytes) -> None:
    """Put `data` in place of a file, or make it, so that no reader ever sees half of it.

    Permissions and owner stay; a symbolic link stays a link. Raises OSError, with the file
    as it was.
    """
    import tempfile

    target = Path(path).resolve()
    try:
        status = target.stat()
    except FileNotFoundError:
        status = None
    if status is not None and not os.access(target, os.W_OK):
        # the folder would let it be replaced, but whoever protected it did not mean that
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    if status is not None and not stat.S_ISREG(status.st_mode):
        # A device or a pipe has no half-written state, and must not be replaced by a file.
        target.write_bytes(data)
        return
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".advise-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            if status is None:
                os.fchmod(stream.fileno(), 0o666 & ~_umask())
            else:
                with suppress(PermissionError):
                    os.fchown(stream.fileno(), status.st_uid, status.st_gid)
                os.fchmod(stream.fileno(), stat.S_IMODE(status.st_mode))
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _declared_encoding(path: str, data: bytes) -> str:
    """Return the codec's name by PEP 263: a mark, a declaration in two lines, or UTF-8."""
    marked = data.startswith(codecs.BOM_UTF8)
    first_lines = re.split(rb"\r\n|\n|\r", data.removeprefix(codecs.BOM_UTF8)[:4096], maxsplit=2)
    for number, line in enumerate(first_lines[:2], start=1):
        declared = _DECLARATION.match(line)
        if declared:
            name = declared[1].decode("ascii", "replace")
            try:
                encoding = codecs.lookup(name).name
                with suppress(UnicodeDecodeError):
                    b" ".decode(name)  # refuses codecs that do not decode to text
            except (LookupError, UnicodeError):  # the codec `undefined` refuses everything
                raise SourceProblem(path, number, 0, f"unknown encoding {name!r}") from None
            if marked and encoding != "utf-8":
                raise SourceProblem(
                    path, number, 0, f"declares {name!r} but starts with a UTF-8 mark"
                )
            return "utf-8-sig" if marked else encoding
        if not _BLANK_OR_COMMENT.match(line):
            break
    return "utf-8-sig" if marked else "utf-8"


# Where a file lies in its project: a name for it that no current folder and no machine changes.
#
# The root of a project is the nearest folder above a file that a version control system keeps its
# state in; without one, the nearest that has a ``pyproject.toml``.


_REPOSITORIES = (".git", ".hg")
"""Folders, or files in work trees and submodules."""

_PACKAGE = "pyproject.toml"


def project_root(folder: str) -> str | None:
    """Return the root of the project that a folder lies in; None where there is none.

    Symbolic links are followed. The folder need not exist.
    """
    package = None
    place = os.path.realpath(folder)
    while True:
        if any(os.path.lexists(f"{place}{os.sep}{mark}") for mark in _REPOSITORIES):
            return place
        if package is None and os.path.isfile(f"{place}{os.sep}{_PACKAGE}"):  # noqa: PTH113
            package = place
        above = os.path.dirname(place)  # noqa: PTH120
        if above == place:
            return package
        place = above


def project_path(path: str) -> str | None:
    """Return a file as seen from the root of its project, with forward slashes.

    None where it lies in no project, or is no file, as ``<stdin>``.
    """
    if not is_file_name(path):
        return None
    whole = _whole(path)
    root = project_root(os.path.dirname(whole))  # noqa: PTH120
    return None if root is None else _below(whole, root)


def lasting_name(path: str) -> str:
    """Return what to call a file for good: its path in its project; without one, its name."""
    return project_path(path) or os.path.basename(path)  # noqa: PTH119


def listed_path(path: str, folder: str) -> str:
    """Return what to call a file in a list that is kept in `folder`.

    Its path in its project; without one, the way to it from that folder.
    """
    if not is_file_name(path):
        return path
    inside = project_path(path)
    if inside is not None:
        return inside
    try:
        return os.path.relpath(_whole(path), os.path.realpath(folder)).replace(os.sep, "/")
    except ValueError:  # on another drive
        return _whole(path).replace(os.sep, "/")


def reported_path(path: str) -> tuple[str | None, str]:
    """Return a folder and a file as seen from it, as build servers want files named.

    The folder is the root of the project that is checked out around the current folder; for a
    file elsewhere that of its own project; for one in no project the current folder. None, and
    an absolute path, for a file that lies below none of them; None, and the name as it is, for
    what is no file.
    """
    if not is_file_name(path):
        return None, path
    whole = _whole(path)
    here = os.path.realpath(".")
    for root in (project_root(here), project_root(os.path.dirname(whole)), here):  # noqa: PTH120
        if root is not None and (inside := _below(whole, root)) is not None:
            return root, inside
    return None, whole.replace(os.sep, "/")


def is_file_name(path: str) -> bool:
    """Return whether a path can name a file; what is read from a pipe has a name in brackets."""
    return not (path.startswith("<") and path.endswith(">"))


def _whole(path: str) -> str:
    """Return a path without symbolic links in its folder; the file itself may be one."""
    folder, name = os.path.split(os.path.normpath(path))
    return os.path.join(os.path.realpath(folder), name)  # noqa: PTH118


def _below(whole: str, root: str) -> str | None:
    start = root.rstrip(os.sep) + os.sep
    return whole[len(start) :].replace(os.sep, "/") if whole.startswith(start) else None
