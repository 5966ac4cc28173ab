"""Measured claims: brimful beside its peers, in one process, as ratios. Run with `make bench`."""
