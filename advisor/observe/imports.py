"""Being told when a module has been imported, without importing it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from advisor.compiler.record import guarded

Hook = Callable[[ModuleType], None]


class AfterImport:
    """A finder that calls a hook for each of some modules as soon as it is there.

    Parameters
    ----------
    hooks : mapping of str to callable
        By full name; a hook that fails is logged, and the import goes on.
    """

    def __init__(self, hooks: Mapping[str, Hook]) -> None:
        self._hooks = dict(hooks)

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find one of the modules where the other finders do; None for all others."""
        hook = self._hooks.pop(name, None)
        if hook is None:
            return None
        # the hook is gone, so this comes back to the other finders
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            _hook_into(spec.loader, hook)
        return spec


def _hook_into(loader: Any, hook: Hook) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        with guarded(f"preparing to observe {module.__name__}"):
            hook(module)

    loader.exec_module = exec_module


def after_import(hooks: Mapping[str, Hook]) -> None:
    """Call hooks once their modules are imported; at once for those that are already."""
    waiting = {}
    for name, hook in hooks.items():
        if name in sys.modules:
            hook(sys.modules[name])
        else:
            waiting[name] = hook
    sys.meta_path.insert(0, AfterImport(waiting))
