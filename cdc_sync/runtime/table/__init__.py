"""One table as it is followed: what it holds, what it waits for, what is next."""
