"""Revisions: changes of lake tables that people write down, one file each, as values."""
