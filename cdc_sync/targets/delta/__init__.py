"""Delta tables."""
