"""Comments that begin with ``# advise:``: their grammar, what they say, and of what."""
