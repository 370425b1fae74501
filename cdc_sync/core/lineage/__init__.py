"""What a source says about its columns besides row events: which column is which, before and after a change."""
