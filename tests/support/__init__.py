"""What several tests need and none of them is about."""
