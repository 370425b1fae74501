"""Which versions of a table events lead to, what stops it, and in which words."""
