"""Text and chats to ids: special tokens exactly once, chat templates, text that cannot spell a special token, a token's own text.

Below `tokenizers`, of which it knows only what `facts.PromptTokenizer` says, so that a `Tokenizer` has all of this as methods.
"""
