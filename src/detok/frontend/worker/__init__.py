"""The detokenizer process, its clients, and what they say to each other."""
