"""The narrow door to lake tables: one contract, one module for each format."""
