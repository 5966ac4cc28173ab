"""Slow, readable twins of the fast code: they share no helper with it, and work on one sequence at a time."""
