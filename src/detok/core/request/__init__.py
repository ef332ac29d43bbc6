"""What a frontend does with one stream: stops, limits, logprobs, special tokens as events, outputs."""
