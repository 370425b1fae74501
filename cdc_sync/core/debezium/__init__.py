"""What Debezium writes, read without any I/O."""
