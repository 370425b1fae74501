"""Where events and what else a source says come from: Kafka, registries, databases."""
