"""Source text as rules read and write it: headers of nests, fresh names, edits."""
