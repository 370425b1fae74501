"""The Spark edge: session, reading, decoding. Nothing here decides what happens to a table."""
