"""Hudi tables."""
