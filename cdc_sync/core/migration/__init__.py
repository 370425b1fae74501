"""What has to be done to bring a target from the version stamped on it to the head."""
