"""Revisions are applied to lake tables, or taken back."""
