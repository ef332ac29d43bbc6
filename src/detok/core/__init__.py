"""
The pure core: how ids become text. No I/O, no clock, no thread, no tokenizer library.

Read it in this order:

1. `vocabulary` (the piece of an id) and `options` (what the caller chooses).
2. `decoding.rules`: the decoder kinds, as values.
3. `decoding.compiler`: rules to stages. `decoding.stages` work on tokens that are apart, `decoding.joiners` and
   `decoding.byte_runs` make one text of them, `decoding.text_rules` and `decoding.rewriter` work on that text.
4. `decoding.pipeline`: the stages in a row, a function from (state, id) to (text, state). `decoding.automaton` remembers its
   answers, which makes it fast.
5. `stream` (`TextStream`) and `decoder` (`Decoder`): what callers hold.
6. `request.request`: what a token does to a request. It uses `request.places` for usual tokens; for all others
   `request.stop_search` (stops), `request.spans` (which token a character belongs to), `request.followers` (logprobs, segments,
   channels) and `request.output`. `request.batch` is a table of requests and a loop.
"""
