"""Rules for what ranks send: collectives, messages, faces; which, how many, of what."""
