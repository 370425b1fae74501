"""Targets that stand before another one."""
