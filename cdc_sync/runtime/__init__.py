"""The stream: batches, topics, tables, and what a batch does to each."""
