"""
What a directory means: the tokenizer that ``AutoTokenizer.from_pretrained(directory)`` of transformers makes of its files.

It is made here without transformers, by the rules of the version that `FOLLOWED` names: `classes` chooses the class, `settings`
merges the files, `tokens` decides which tokens are added and which are special, `recipes` builds what a class builds itself, and
`backend` puts it together.
"""

from .backend import Built, build, class_of, needs_transformers
from .classes import FOLLOWED, Chosen

__all__ = ["FOLLOWED", "Built", "Chosen", "build", "class_of", "needs_transformers"]
