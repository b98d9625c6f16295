"""Phases model: an application is counts of work over rates, plus messages.

A run of an SPMD program takes the sum over its phases of ``count / rate`` (or of
``count * (a + b*...)`` with the reciprocals of a start and a per-element rate) and over its
messages of ``alpha + beta*bytes``. Counts are expressions over problem sizes and mesh extents
whose ceilings carry the load imbalance. After the PerPreT models of the shallow-water code
PSTSWM (ORNL/TM-13254).
"""

from costdb.choosing import Choice
from costdb.phases.application import (
    Application,
    ApplicationError,
    Bindings,
    Chosen,
    NumberParameter,
    Parameter,
    WordParameter,
    bind,
)
from costdb.phases.choosing import predict, rank_choices
from costdb.phases.pricing import price_application
from costdb.phases.reading import load_application, parse_application

__all__ = [
    "Application",
    "ApplicationError",
    "Bindings",
    "Choice",
    "Chosen",
    "NumberParameter",
    "Parameter",
    "WordParameter",
    "bind",
    "load_application",
    "parse_application",
    "predict",
    "price_application",
    "rank_choices",
]
