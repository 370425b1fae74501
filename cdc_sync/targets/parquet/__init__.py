"""Parquet files that a Hive metastore names."""
