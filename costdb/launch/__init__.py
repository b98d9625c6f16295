"""How processes of this tool begin, and how it keeps out of the way of a user's own modules."""
