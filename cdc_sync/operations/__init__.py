"""What is done beside the stream: plan, replay, verify, an overview."""
