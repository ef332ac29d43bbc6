"""The pure core: how ids become text. No I/O, no clock, no thread, no tokenizer library.

Read in this order: `vocabulary` (what an id is), `rules` (what a decoder says), `pipeline` (rules in a row, over states
that are plain values), `automaton` (moves that are remembered), `stream` (what the caller holds).
"""
