"""The store: imported profiles, what was measured, evidence and observations, in one SQLite file.

Only the location and the read-only look-ups by name are imported here, so that asking for a
machine that is not built in stays cheap.
"""
