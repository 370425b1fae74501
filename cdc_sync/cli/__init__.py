"""The command line: it parses, calls one function of `api`, and shows what that returns."""
