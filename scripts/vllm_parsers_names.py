"""vLLM's parsers of each family that `compare_formats` compares: of tool calls, and of reasoning."""

PARSERS = {
    "hermes": ("hermes", None), "qwen": ("hermes", "qwen3"), "qwen3_coder": ("qwen3_coder", "qwen3"), "glm": ("glm45", "glm45"),
    "deepseek_v3": ("deepseek_v3", "deepseek_r1"), "deepseek_v31": ("deepseek_v31", "deepseek_r1"), "kimi_k2": ("kimi_k2",
    "kimi_k2"),
    "minimax": ("minimax_m2", "minimax_m2"), "mistral": ("mistral", "mistral"), "mistral, new": ("mistral", "mistral"),
    "llama3_json": ("llama3_json", None), "llama4_pythonic": ("llama4_pythonic", None), "gemma": ("gemma4", "gemma4"),
    "granite": ("granite", "granite"),
}  # fmt: skip
