"""The cost model: what is reckoned from measured constants, and that the measurement measures. No test here looks at a clock."""

from __future__ import annotations

from typing import Any

import pytest

import detok
from detok.frontend import cost
from detok.frontend.cost import Costs, Setting, measure

TOKENIZER = detok.load(detok.EMBEDDED)
COSTS = Costs(decode=1e-6, serve={1: 5e-6, 4: 2.5e-6}, message=0.25e-6)


def test_setting_reckons_steps_and_the_largest_batch() -> None:
    """B* is where the rows of a step take as long as the step."""
    setting = Setting("any", 4e-6)
    assert setting.seconds_a_step(256) == pytest.approx(1.024e-3)
    assert setting.largest_batch(4.5e-3) == 1125


def test_settings_are_those_that_could_be() -> None:
    """A process of its own takes decoding away and adds messages; its workers share the decoding, and not the handing out."""
    found = {setting.name: setting.seconds_a_row for setting in COSTS.settings()}
    assert found == pytest.approx(
        {
            "in process": 5e-6,
            "stream_interval=4": 2.5e-6,
            "1 detokenizer process": 4.5e-6,
            "2 detokenizer processes": 4.5e-6,
            "4 detokenizer processes": 4.5e-6,
        }
    )
    decoding = Costs(decode=8e-6, serve={1: 9e-6}, message=0.25e-6)
    one, two = decoding.settings(workers=(1, 2))[1:]
    assert (one.seconds_a_row, two.seconds_a_row) == pytest.approx((8.5e-6, 4.25e-6))


@pytest.mark.parametrize("batch", [1, 5])
def test_measure_serves_real_rows(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All constants are there; each round feeds every row of every step, through decoder and processor."""
    monkeypatch.setattr(cost, "STEPS", 7)
    rows = 0
    step = detok.BatchDecoder.step

    def counting(self: detok.BatchDecoder, given: Any) -> list[detok.RequestOutput]:
        nonlocal rows
        listed = list(given)
        rows += len(listed)
        return step(self, listed)

    monkeypatch.setattr(detok.BatchDecoder, "step", counting)
    found = measure(TOKENIZER, batch=batch, rounds=1)
    assert set(found.serve) == {1, 4, 16}
    assert min(found.decode, found.message, *found.serve.values()) > 0
    # Decoding twice, once for warmth; each interval once; and each of these twice, as the first time does not count.
    assert rows == 2 * (2 + 3) * 7 * batch


def test_measure_without_an_encoder_takes_ids_of_the_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same ones each time, and none that ends a request."""

    def refuse(*_: object, **__: object) -> list[int]:
        raise detok.EncodeUnsupported("this", instead="that")

    monkeypatch.setattr(TOKENIZER, "encode", refuse, raising=False)
    monkeypatch.setattr(detok.Tokenizer, "eos_token_ids", property(lambda _: tuple(TOKENIZER.ids[:4000])))
    ids = cost._ids(TOKENIZER)
    assert ids
    assert ids == cost._ids(TOKENIZER)
    assert set(ids) <= set(TOKENIZER.ids[4000:])
