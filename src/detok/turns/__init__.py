"""
Turns: how models mark the parts of what they write, and what follows these marks.

Pure, as core is, and below it: a request's segments and channels are made here; core only feeds them.
"""
