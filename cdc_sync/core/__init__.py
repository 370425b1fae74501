"""What is decided, as functions over values: no Spark, no Kafka, no files."""
