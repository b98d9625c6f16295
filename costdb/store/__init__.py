"""The store: imported profiles, calibration records, fits and evidence, in one SQLite file.

Only the location and the read-only look-ups by name are imported here, so that asking for a
machine that is not built in stays cheap.
"""
