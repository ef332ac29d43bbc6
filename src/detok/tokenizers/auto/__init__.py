"""
What a directory means: the tokenizer that ``AutoTokenizer.from_pretrained(directory)`` of transformers makes of its files.

It is made here without transformers, by the rules of the version that `FOLLOWED` names: `classes` chooses the class, `settings`
merges the files, `tokens` decides which tokens are added and which are special, `recipes` builds what a class builds itself, and
`backend` puts it together.
"""

from .backend import Built, build, build_of_lists, class_of, has_rules, needs_transformers
from .classes import BACKEND, FOLLOWED, Chosen

__all__ = ["BACKEND", "FOLLOWED", "Built", "Chosen", "build", "build_of_lists", "class_of", "has_rules", "needs_transformers"]
