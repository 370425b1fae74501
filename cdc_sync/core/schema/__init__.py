"""The tracked schema as a value: types, columns, changes, and how one follows from another."""
