"""The SMP interval model: a superstep's time lies between the best and the worst locality.

:mod:`costdb.smp.functions` holds the two families of cost functions, :mod:`costdb.smp.functions`
the price of a superstep, :mod:`costdb.smp.suites` those that a machine is measured with.
"""
