"""Where a file lies in its project: a name for it that no current folder and no machine changes.

The root of a project is the nearest folder above a file that a version control system keeps its
state in; without one, the nearest that has a ``pyproject.toml``.
"""

from __future__ import annotations

import os

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
