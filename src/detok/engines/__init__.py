"""Where ids come from: engines that take token ids and give token ids."""
