"""Phases model: an application is counts of work over rates, plus messages.

A run of an SPMD program takes the sum over its phases of ``count / rate`` (or of
``count * (a + b*...)`` with the reciprocals of a start and a per-element rate) and over its
messages of ``alpha + beta*bytes``. Counts are expressions over problem sizes and mesh extents
whose ceilings carry the load imbalance. After the PerPreT models of the shallow-water code
PSTSWM (ORNL/TM-13254).
"""
