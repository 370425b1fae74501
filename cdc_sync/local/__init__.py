"""Throw-away servers on this machine for the demo and the tests: Postgres, Kafka, Kafka Connect with Debezium."""
