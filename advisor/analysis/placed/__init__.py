"""Where elements lie: which rank owns, computes or takes part in what."""
