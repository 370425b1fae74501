"""The pipeline's own files: history, status, decisions, records that were set aside."""
