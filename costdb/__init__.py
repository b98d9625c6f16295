"""The cost database: five models, one symbolic cost language, machines and calibrations.

Nothing here knows of source code: the input is work (:mod:`costdb.work`) and a machine
(:mod:`costdb.machines`), the output is an estimate (:mod:`costdb.evaluate`).
"""
