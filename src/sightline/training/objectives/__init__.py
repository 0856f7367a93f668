"""Training regimes, one file each."""
