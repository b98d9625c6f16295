"""The PGAS model: references to shared data, grouped, each group at its pattern's rate.

:mod:`costdb.pgas.model` prices groups, :mod:`costdb.pgas.partition` finds them from references.
"""

from costdb.pgas.model import Gap, gap, price_groups, price_remote_group, served_pattern

__all__ = ["Gap", "gap", "price_groups", "price_remote_group", "served_pattern"]
