"""The tests of detok; their directories mirror ``src/detok``."""
