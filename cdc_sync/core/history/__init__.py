"""The recorded schema versions of every table."""
