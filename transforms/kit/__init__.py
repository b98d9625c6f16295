"""What rules are made of: `match` finds, `legal` argues, `rewrite` writes."""
