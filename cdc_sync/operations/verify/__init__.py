"""Compares source tables with their targets: sums over ranges first, then the rows of the ranges that differ."""
