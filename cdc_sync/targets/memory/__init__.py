"""Tables in memory, for tests and previews."""
