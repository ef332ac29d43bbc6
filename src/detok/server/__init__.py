"""The HTTP server: text in front of engines that take token ids and give token ids."""
