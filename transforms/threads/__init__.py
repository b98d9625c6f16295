"""Rules for iterations that threads or ranks share: which of them does which."""
