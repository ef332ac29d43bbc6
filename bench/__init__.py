"""
Speed, memory and bounds, measured on this machine against whatever peers are installed.

    python -m bench.step      one step, text by text, against every peer
    python -m bench.request   one step of a request: stops, many stops, logprobs, the place in an output
    python -m bench.bounds    what must not grow: memory, prompts, hostile ids, the place in a stream
    python -m bench.load      loading a tokenizer
    python -m bench.formats   other formats than tokenizer.json, and the window strategy
    python -m bench.frontend  many requests at once, against the ways of vLLM and SGLang
    python -m bench.encode    prompts to ids
    python -m bench           all of them

From the root of the repository, with the extra ``detok[bench]``. Each takes ``--rounds N``, ``--json FILE`` and ``--plot FILE``.
They report and never judge: a clock is no test.
"""
