"""Keep lake tables equal to their source tables, rows and schema."""
