"""Answers kept from one run to the next, so that unchanged files cost no parser."""
