"""Reads SPMD programs: what each name denotes, and what is sent to whom, without running them.

The statements of a file are followed once, from the top, with abstract values in the place of
run-time ones (:mod:`~advisor.frontend.spmd.values`); functions of the file are entered where they
are called, and those that nothing calls are read with unknown arguments.
"""
