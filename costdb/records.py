"""Frozen data classes that take a third of the time to make.

The library compiles six functions for each frozen class, a quarter of a millisecond, and a run over
one file makes three hundred classes. Here only ``__init__`` is compiled, and what it sets is set
directly, which also makes instances faster. That nobody assigns to one is held by the type checker.
"""

from __future__ import annotations

import dataclasses
from dataclasses import field, fields, is_dataclass, replace
from typing import TYPE_CHECKING

__all__ = ("dataclass", "field", "fields", "is_dataclass", "replace")

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from operator import attrgetter
    from reprlib import recursive_repr

    def dataclass(*, frozen=False, eq=True, order=False, **options):
        """Return the decorator of the library; see :func:`dataclasses.dataclass`."""
        if not frozen or order:
            return dataclasses.dataclass(frozen=frozen, eq=eq, order=order, **options)

        def made(cls):
            own = {name for name, value in vars(cls).items() if value is not None}
            cls.__doc__ = cls.__doc__ or cls.__name__
            cls = dataclasses.dataclass(eq=False, repr=False, **options)(cls)
            compared = _values([f for f in fields(cls) if f.compare])
            hashed = _values([f for f in fields(cls) if (f.compare if f.hash is None else f.hash)])
            names = tuple(f.name for f in fields(cls) if f.repr)

            def equals(self, other):
                if other.__class__ is not self.__class__:
                    return NotImplemented
                return compared(self) == compared(other)

            def hashing(self):
                return hash(hashed(self))

            def described(self):
                shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
                return f"{self.__class__.__qualname__}({shown})"

            if eq and "__eq__" not in own:
                cls.__eq__ = equals
            if eq and "__hash__" not in own:
                cls.__hash__ = hashing
            if "__repr__" not in own:
                cls.__repr__ = recursive_repr()(described)
            return cls

        return made

    def _values(chosen):
        """Return what gives the values of fields, to be compared."""
        return attrgetter(*(f.name for f in chosen)) if chosen else lambda record: ()
