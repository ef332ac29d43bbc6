"""Many requests at once: what stands between an engine and those who read its text."""
