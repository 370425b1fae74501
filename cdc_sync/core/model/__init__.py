"""Positions, progress and what is said of them: the values that all others are about."""
