"""Tables that a Hive metastore knows."""
