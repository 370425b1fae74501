"""What is asked of, or set up in, a source database itself, besides what Debezium sends."""
