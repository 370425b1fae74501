"""What one table does next: a frozen state, what was seen, and the one transition that follows from both."""
