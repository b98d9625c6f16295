"""Rules for faces that neighbours exchange: what is copied, and how arrays are split."""
