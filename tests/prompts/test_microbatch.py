"""The encoder of an event loop: nobody waits without need, nobody is forgotten. All by counts; there is no clock here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.prompts.microbatch import AsyncEncoder
from tests.support.event_loop import ManualExecutor, VirtualLoop, run_virtual, settle

SHORT, LONG = 8, 20
"""Bytes that are encoded on the loop, and those of a text that is not."""

Scene = Callable[["Stage"], Coroutine[Any, Any, None]]


class Recorder:
    """A tokenizer that writes down what it was asked for. Texts with "!" are bad."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        """A tuple for each call: of `encode` with one text, of `encode_batch` with all of them."""

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        self.calls.append((text,))
        return self._ids(text, add_special_tokens)

    def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> list[list[int]]:
        self.calls.append(tuple(texts))
        return [self._ids(text, add_special_tokens) for text in texts]

    @staticmethod
    def _ids(text: str, add_special_tokens: bool) -> list[int]:
        if "!" in text:
            raise detok.OptionError(option="text", value=text, accepted="no exclamation")
        return [1] * add_special_tokens + list(map(ord, text))


class Stage:
    """An encoder with one thread, or more, that works when it is told to."""

    def __init__(self, loop: VirtualLoop, options: dict[str, Any]) -> None:
        self.loop = loop
        self.tokenizer = Recorder()
        self.executor = ManualExecutor()
        options = {"inline_bytes": SHORT, "max_workers": 1, "executor": self.executor, **options}
        self.encoder = AsyncEncoder(self.tokenizer, **options)
        self.tokenizer.calls.clear()

    async def ask(self, *texts: str, **options: Any) -> list[asyncio.Task[list[int]]]:
        """Let requests come, one after another, and get as far as they do without a thread."""
        tasks = [asyncio.create_task(self.encoder.encode(text, **options)) for text in texts]
        await settle()
        return tasks

    async def work(self, place: int = 0) -> None:
        """Let a thread do one batch."""
        self.executor.do(place)
        await settle()


def on_stage(scene: Scene, **options: Any) -> None:
    """Play a scene on a loop of its own."""

    async def play(loop: VirtualLoop) -> None:
        await scene(Stage(loop, options))

    run_virtual(play)


def long(name: str) -> str:
    """A text that goes to a thread."""
    return name * LONG


def ids(text: str, *, adds: bool = True) -> list[int]:
    """What `Recorder` makes of it."""
    return [1] * adds + list(map(ord, text))


def test_lone_short_request_is_encoded_at_once() -> None:
    """Without a thread, and without giving the loop away: a coroutine that ends at its first step."""

    async def scene(stage: Stage) -> None:
        with pytest.raises(StopIteration) as ended:
            stage.encoder.encode("abc").send(None)
        assert ended.value.value == ids("abc")
        assert stage.tokenizer.calls == [("abc",)]
        assert not stage.executor.work

    on_stage(scene)


def test_lone_long_request_goes_to_a_thread_at_once() -> None:
    """It waits for nobody, whatever `max_wait` says."""

    async def scene(stage: Stage) -> None:
        (task,) = await stage.ask(long("a"))
        assert len(stage.executor.work) == 1
        assert (stage.encoder.waiting, stage.encoder.running) == (0, 1)
        await stage.work()
        assert task.result() == ids(long("a"))
        assert (stage.encoder.waiting, stage.encoder.running) == (0, 0)

    on_stage(scene, max_wait=100.0)


def test_size_is_counted_in_bytes() -> None:
    """Eight ASCII characters are encoded on the loop, three of four bytes are not."""

    async def scene(stage: Stage) -> None:
        (short,) = await stage.ask("a" * SHORT)
        assert short.done()
        await stage.ask("🦜" * 3)
        assert len(stage.executor.work) == 1

    on_stage(scene)


def test_loop_encodes_so_much_in_one_turn_and_no_more() -> None:
    """A hundred short requests that come in one turn do not keep the loop; what is over goes to a thread, together."""

    async def scene(stage: Stage) -> None:
        tasks = [asyncio.create_task(stage.encoder.encode(f"{number:04}")) for number in range(6)]
        await asyncio.sleep(0)
        assert [task.done() for task in tasks] == [True, True, False, False, False, False]
        await settle()
        await stage.work()
        await stage.work()
        assert [task.result() for task in tasks] == [ids(f"{number:04}") for number in range(6)]
        assert stage.tokenizer.calls == [("0000",), ("0001",), ("0002",), ("0003", "0004", "0005")]
        (again,) = await stage.ask("0006")
        assert again.done()

    on_stage(scene)


def test_nothing_is_encoded_on_the_loop_if_that_is_wanted() -> None:
    """Not even an empty text."""

    async def scene(stage: Stage) -> None:
        await stage.ask("")
        assert len(stage.executor.work) == 1

    on_stage(scene, inline_bytes=0)


def test_waiting_requests_go_together() -> None:
    """While the thread is busy they gather; then as many as may go, in the order of their arrival."""

    async def scene(stage: Stage) -> None:
        tasks = await stage.ask(*map(long, "abcdef"))
        assert stage.encoder.waiting == 5
        for _ in range(3):
            await stage.work()
        assert stage.tokenizer.calls == [
            (long("a"),),
            tuple(map(long, "bcd")),
            tuple(map(long, "ef")),
        ]
        assert [task.result() for task in tasks] == [ids(long(name)) for name in "abcdef"]

    on_stage(scene, max_batch_size=3, max_batch_bytes=1000)


def test_long_texts_go_alone() -> None:
    """To join them saves nothing."""

    async def scene(stage: Stage) -> None:
        await stage.ask(*map(long, "abcd"))
        for _ in range(4):
            await stage.work()
        assert stage.tokenizer.calls == [(long(name),) for name in "abcd"]

    on_stage(scene, max_batch_bytes=2 * LONG - 1)


def test_differing_options_are_grouped() -> None:
    """Batching goes on with those that have the same."""

    async def scene(stage: Stage) -> None:
        await stage.ask(long("x"))
        tasks = []
        for name in "abcd":
            tasks += await stage.ask(long(name), add_special_tokens=name in "ac")
        for _ in range(3):
            await stage.work()
        assert stage.tokenizer.calls[1:] == [(long("a"), long("c")), (long("b"), long("d"))]
        assert [task.result() for task in tasks] == [ids(long(name), adds=name in "ac") for name in "abcd"]

    on_stage(scene, max_batch_bytes=1000)


def test_truncation_does_not_part_a_batch() -> None:
    """It is done behind the encoder, each request its own."""

    async def scene(stage: Stage) -> None:
        await stage.ask(long("x"))
        (whole,) = await stage.ask(long("a"))
        (left,) = await stage.ask(long("b") + "c", truncate_prompt_tokens=3)
        (right,) = await stage.ask("c" + long("d"), truncate_prompt_tokens=3, truncation_side="right")
        await stage.work()
        await stage.work()
        assert len(stage.tokenizer.calls) == 2
        assert whole.result() == ids(long("a"))
        assert left.result() == [1, ord("b"), ord("c")]
        assert right.result() == [1, ord("c"), ord("d")]

    on_stage(scene, max_batch_bytes=1000)


def test_all_threads_have_work() -> None:
    """As many batches at once as there are threads; whichever ends first takes what waits."""

    async def scene(stage: Stage) -> None:
        tasks = await stage.ask(*map(long, "abc"))
        assert (len(stage.executor.work), stage.encoder.waiting) == (2, 1)
        await stage.work(1)
        assert [task.done() for task in tasks] == [False, True, False]
        assert (len(stage.executor.work), stage.encoder.waiting) == (2, 0)

    on_stage(scene, max_workers=2)


def test_max_wait_fills_a_batch_only_while_others_work() -> None:
    """With a free thread, but one at work: until the batch is full, or the time is over, or nobody works."""

    async def scene(stage: Stage) -> None:
        await stage.ask(*map(long, "ab"))
        assert (len(stage.executor.work), stage.encoder.waiting) == (1, 1)
        stage.loop.now = 9.0
        await settle()
        assert stage.encoder.waiting == 1
        stage.loop.now = 10.0
        await settle()
        assert (len(stage.executor.work), stage.encoder.waiting) == (2, 0)
        await stage.work()
        await stage.ask(*map(long, "cd"))
        assert (len(stage.executor.work), stage.encoder.waiting) == (1, 2)
        await stage.ask(long("e"))
        assert (len(stage.executor.work), stage.encoder.waiting) == (2, 0)
        await stage.work()
        await stage.work()
        assert stage.tokenizer.calls[-1] == tuple(map(long, "cde"))
        await stage.ask(*map(long, "fg"))
        assert stage.encoder.waiting == 1
        await stage.work()
        assert (len(stage.executor.work), stage.encoder.waiting) == (1, 0)

    on_stage(scene, max_workers=2, max_wait=10.0, max_batch_size=3, max_batch_bytes=1000)


def test_bad_prompt_fails_alone() -> None:
    """The others of its batch have their ids; it has its own error."""

    async def scene(stage: Stage) -> None:
        await stage.ask(long("x"))
        good, bad, fine = await stage.ask(long("a"), long("!"), long("b"))
        await stage.work()
        await stage.work()
        assert (good.result(), fine.result()) == (ids(long("a")), ids(long("b")))
        with pytest.raises(detok.OptionError, match="no exclamation"):
            bad.result()
        (short,) = await stage.ask("!")
        assert isinstance(short.exception(), detok.OptionError)
        (alone,) = await stage.ask(long("!"))
        await stage.work()
        assert isinstance(alone.exception(), detok.OptionError)

    on_stage(scene, max_batch_bytes=1000)


def test_panic_of_an_encoder_fails_its_prompt() -> None:
    """What a library in Rust raises is no Exception; it reaches the one who asked all the same."""

    class PanicException(BaseException):
        pass

    class Panics(Recorder):
        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            if "p" in text:
                raise PanicException
            return super().encode(text, add_special_tokens)

    async def play(loop: VirtualLoop) -> None:
        executor = ManualExecutor()
        encoder = AsyncEncoder(Panics(), inline_bytes=0, executor=executor)
        task = asyncio.create_task(encoder.encode("p"))
        await settle()
        executor.do()
        await settle()
        assert isinstance(task.exception(), PanicException)

    run_virtual(play)


def test_cancelled_request_is_dropped() -> None:
    """If it waits, it is not encoded; if it is in work, nobody gets its ids, and the others have theirs."""

    async def scene(stage: Stage) -> None:
        running, waiting, other = await stage.ask(*map(long, "abc"))
        running.cancel()
        waiting.cancel()
        await settle()
        assert stage.encoder.waiting == 1
        await stage.work()
        await stage.work()
        assert running.cancelled()
        assert waiting.cancelled()
        assert other.result() == ids(long("c"))
        assert stage.tokenizer.calls == [(long("a"),), (long("c"),)]

    on_stage(scene, max_batch_bytes=1000)


def test_request_cancelled_in_the_same_turn_is_not_encoded() -> None:
    """Before its task had a word."""

    async def scene(stage: Stage) -> None:
        _, waiting = await stage.ask(*map(long, "ab"))
        stage.executor.do()
        waiting.cancel()
        await settle()
        assert waiting.cancelled()
        assert stage.tokenizer.calls == [(long("a"),)]
        assert not stage.executor.work

    on_stage(scene)


def test_busy_is_said_at_once() -> None:
    """One more than may wait is refused with the numbers; nobody who waits is hurt. Short ones still go."""

    async def scene(stage: Stage) -> None:
        tasks = await stage.ask(*map(long, "abcd"))
        with pytest.raises(detok.EncoderBusy, match="2 prompts wait to be encoded, and 2 may wait"):
            tasks[3].result()
        (short,) = await stage.ask("abc")
        assert short.result() == ids("abc")
        for _ in range(3):
            await stage.work()
        assert [task.result() for task in tasks[:3]] == [ids(long(name)) for name in "abc"]

    on_stage(scene, max_queue=2, max_batch_size=1)


def test_close_leaves_nobody_waiting() -> None:
    """What waits is refused, what is in work is delivered, what comes later is refused; closing again does nothing."""

    async def scene(stage: Stage) -> None:
        running, waiting = await stage.ask(*map(long, "ab"))
        closing = asyncio.create_task(stage.encoder.aclose())
        await settle()
        assert isinstance(waiting.exception(), detok.EncoderClosed)
        assert not running.done()
        assert not closing.done()
        await stage.work()
        assert running.result() == ids(long("a"))
        assert closing.done()
        await stage.encoder.aclose()
        for text in ("abc", long("c")):
            with pytest.raises(detok.EncoderClosed):
                await stage.encoder.encode(text)
        assert not stage.executor.closed  # it belongs to somebody else

    on_stage(scene)


def test_close_takes_the_timer_along() -> None:
    """Nothing is started behind it."""

    async def scene(stage: Stage) -> None:
        await stage.ask(*map(long, "ab"))
        closing = asyncio.create_task(stage.encoder.aclose())
        await settle()
        stage.loop.now = 100.0
        await stage.work()
        assert closing.done()
        assert not stage.executor.work

    on_stage(scene, max_workers=2, max_wait=10.0)


def test_executor_that_fails_fails_its_requests() -> None:
    """Threads that are gone are no reason to wait for ever."""

    async def scene(stage: Stage) -> None:
        (task,) = await stage.ask(long("a"))
        stage.executor.work[0][0].set_exception(RuntimeError("no more threads"))
        await settle()
        assert isinstance(task.exception(), RuntimeError)
        assert stage.encoder.running == 0

    on_stage(scene)


def test_executor_that_refuses_work_fails_those_who_wait() -> None:
    """It was shut down while one prompt was in work: those behind that are told."""

    class Closing(ManualExecutor):
        def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
            if self.closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            return super().submit(function, *arguments, **options)

    async def scene(stage: Stage) -> None:
        tasks = await stage.ask(*map(long, "abc"))
        executor.shutdown()
        executor.do()
        await settle()
        tasks += await stage.ask(long("d"))
        assert tasks[0].result() == ids(long("a"))
        assert [str(task.exception()) for task in tasks[1:]] == ["cannot schedule new futures after shutdown"] * 3
        assert (stage.encoder.waiting, stage.encoder.running) == (0, 0)

    executor = Closing()
    on_stage(scene, executor=executor, max_batch_size=1)


def test_stop_iteration_of_a_tokenizer_fails_its_prompt_alone() -> None:
    """No future takes it as it is; the others in the batch have their ids."""

    class Stops(Recorder):
        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            if "p" in text:
                raise StopIteration
            return super().encode(text, add_special_tokens)

        def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> list[list[int]]:
            return [self.encode(text, add_special_tokens) for text in texts if "p" not in text]  # one too few

    async def play(loop: VirtualLoop) -> None:
        executor = ManualExecutor()
        encoder = AsyncEncoder(Stops(), inline_bytes=0, max_workers=1, executor=executor)
        tasks = [asyncio.create_task(encoder.encode(text)) for text in ("a", "p", "b")]
        for _ in range(2):
            await settle()
            executor.do()
        await settle()
        assert [tasks[0].result(), tasks[2].result()] == [ids("a"), ids("b")]
        assert str(tasks[1].exception()) == "the tokenizer raised StopIteration()"

    run_virtual(play)


def test_close_that_is_cancelled_ends_the_threads_all_the_same() -> None:
    """The encoder's own ones; nobody else would."""

    async def play(loop: VirtualLoop) -> None:
        encoder = AsyncEncoder(Recorder(), inline_bytes=0, max_workers=1)
        own = ManualExecutor()
        encoder._executor = encoder._own_executor = own  # type: ignore[assignment]  # to see what becomes of it
        task = asyncio.create_task(encoder.encode("a"))
        await settle()
        closing = asyncio.create_task(encoder.aclose())
        await settle()
        closing.cancel()
        await settle()
        assert own.closed
        own.do()
        assert await task == ids("a")

    run_virtual(play)


def test_work_for_a_loop_that_has_ended_is_forgotten() -> None:
    """Nobody is left to take it: another loop may close the encoder, or go on with it."""
    for goes_on in (False, True):
        executor = ManualExecutor()
        encoder = AsyncEncoder(Recorder(), inline_bytes=0, max_workers=1, executor=executor)

        async def leaves(loop: VirtualLoop, encoder: AsyncEncoder) -> None:
            for text in "ab":
                loop.kept = asyncio.ensure_future(encoder.encode(text))  # type: ignore[attr-defined]
            await settle()

        async def closes(loop: VirtualLoop, encoder: AsyncEncoder, executor: ManualExecutor, goes_on: bool) -> None:
            if goes_on:
                task = asyncio.create_task(encoder.encode("c"))
                await settle()
                executor.do(1)
                assert await task == ids("c")
            await encoder.aclose()
            assert (encoder.waiting, encoder.running) == (0, 0)

        run_virtual(partial(leaves, encoder=encoder))
        run_virtual(partial(closes, encoder=encoder, executor=executor, goes_on=goes_on))


def test_enormous_prompt_is_refused_before_it_is_encoded() -> None:
    """Characters before, tokens behind the encoder; neither waits in the queue."""

    async def scene(stage: Stage) -> None:
        (enormous,) = await stage.ask("a" * 1025)
        assert isinstance(enormous.exception(), detok.PromptTooLong)
        assert not stage.tokenizer.calls
        assert not stage.executor.work
        at_limit, over, cut = await stage.ask("abc", "abcd", "")
        assert at_limit.result() == ids("abc")
        assert isinstance(over.exception(), detok.PromptTooLong)
        assert cut.result() == [1]
        (truncated,) = await stage.ask("abcd", truncate_prompt_tokens=4)
        assert truncated.result() == [1, *map(ord, "bcd")]

    on_stage(scene, max_tokens=4)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("inline_bytes", -1),
        ("inline_bytes", 1.5),
        ("max_batch_size", 0),
        ("max_batch_bytes", 0),
        ("max_queue", 0),
        ("max_workers", 0),
        ("max_wait", -1),
        ("max_wait", float("nan")),
        ("max_wait", "1"),
        ("max_tokens", 0),
        ("max_characters", 0),
    ],
)
def test_option_that_cannot_be_is_named(option: str, value: Any) -> None:
    """When the encoder is made."""
    with pytest.raises(detok.OptionError, match=f"^{option}="):
        AsyncEncoder(Recorder(), **{option: value})


@pytest.mark.parametrize("bad", [{"truncate_prompt_tokens": 0}, {"truncate_prompt_tokens": 1, "truncation_side": "up"}])
def test_option_of_a_request_that_cannot_be_is_named(bad: dict[str, Any]) -> None:
    """Before anything is encoded."""

    async def scene(stage: Stage) -> None:
        with pytest.raises(detok.OptionError):
            await stage.encoder.encode("abc", **bad)
        with pytest.raises(detok.OptionError, match=r"^text="):
            await stage.encoder.encode(b"abc")  # type: ignore[arg-type]  # that is the point
        assert not stage.tokenizer.calls

    on_stage(scene)


def test_one_loop_after_another_but_not_two_at_once() -> None:
    """Between two loops nothing may wait; what a loop could encode in its turn is not inherited."""
    executor = ManualExecutor()
    encoder = AsyncEncoder(Recorder(), inline_bytes=SHORT, max_workers=1, executor=executor)

    async def one(loop: VirtualLoop, text: str) -> list[int]:
        return await encoder.encode(text)

    for text in ("12345678", "87654321"):
        assert run_virtual(partial(one, text=text)) == ids(text)

    async def leaves_work(loop: VirtualLoop) -> None:
        task = asyncio.create_task(encoder.encode(long("a")))
        await settle()
        with pytest.raises(detok.UsageError, match="serves one event loop"):
            await asyncio.to_thread(asyncio.run, encoder.encode("b"))
        executor.do()
        await task

    run_virtual(leaves_work)


@given(st.data())
def test_every_request_gets_its_own_answer(data: st.DataObject) -> None:
    """
    Under any order of arrivals, cancellations, finished batches, passing time and an end: each request has its ids or its error,
    none is left open, no batch is too large or mixed, and no more wait than may.
    """
    most, queue, workers = (data.draw(st.integers(1, 4)) for _ in range(3))

    async def scene(stage: Stage) -> None:
        tasks: list[tuple[str, bool, asyncio.Task[list[int]]]] = []
        for number in range(data.draw(st.integers(0, 40))):
            match data.draw(st.sampled_from(["short", "long", "long", "bad", "cancel", "work", "wait"])):
                case "cancel" if tasks:
                    data.draw(st.sampled_from(tasks))[2].cancel()
                case "work" if stage.executor.work:
                    stage.executor.do(data.draw(st.integers(0, len(stage.executor.work) - 1)))
                case "wait":
                    stage.loop.now += data.draw(st.integers(0, 3))
                case kind:
                    text = f"{number}" if kind == "short" else f"{number} {'!' if kind == 'bad' else 'x'}".ljust(LONG)
                    adds = data.draw(st.booleans())
                    tasks.append((text, adds, asyncio.create_task(stage.encoder.encode(text, add_special_tokens=adds))))
            if data.draw(st.booleans()):
                await settle()
            assert stage.encoder.waiting <= queue
            assert stage.encoder.running <= workers
        closing = data.draw(st.booleans())
        ending = asyncio.create_task(stage.encoder.aclose()) if closing else None
        for _ in range(100):
            await settle()
            if not stage.executor.work:
                break
            stage.executor.do()
        await settle()
        assert ending is None or ending.done()
        for text, adds, task in tasks:
            assert task.done()
            if task.cancelled():
                continue
            error = task.exception()
            if error is None:
                assert task.result() == ids(text, adds=adds)
            elif isinstance(error, detok.OptionError):
                assert "!" in text
            elif isinstance(error, detok.EncoderClosed):
                assert closing
            else:
                assert isinstance(error, detok.EncoderBusy)
        assert max(map(len, stage.tokenizer.calls), default=0) <= most
        assert (stage.encoder.waiting, stage.encoder.running) == (0, 0)

    on_stage(scene, max_batch_size=most, max_queue=queue, max_workers=workers, max_wait=data.draw(st.integers(0, 3)))


def test_real_threads_encode_what_the_tokenizer_does() -> None:
    """With a real loop, real threads, and the embedded tokenizer: long texts and short ones."""
    tokenizer = detok.load(detok.EMBEDDED)
    texts = [f"Text {number}, " * (1 + number * 97 % 400) for number in range(60)]

    async def serve() -> list[list[int]]:
        async with tokenizer.async_encoder(max_workers=2, inline_bytes=64) as encoder:
            return list(await asyncio.gather(*map(encoder.encode, texts)))

    assert asyncio.run(serve()) == [tokenizer.encode(text) for text in texts]


def test_tokenizer_makes_an_encoder_that_knows_its_speed() -> None:
    """The choice of the encoder is made first; options of the caller go before."""
    tokenizer = detok.load(detok.EMBEDDED)
    encoder = tokenizer.async_encoder()
    assert isinstance(encoder, AsyncEncoder)
    assert encoder._inline_bytes == tokenizer.encoder.inline_bytes
    assert tokenizer.async_encoder(inline_bytes=5)._inline_bytes == 5


def test_tokenizer_that_does_not_encode_has_no_encoder(tmp_path: Any) -> None:
    """Said when it is made, not at the first request."""
    path = tmp_path / "some.tiktoken"
    path.write_text("".join(f"{token} {rank}\n" for rank, token in enumerate(["YQ==", "Yg=="])))
    with pytest.raises(detok.EncodeUnsupported):
        detok.load(path).async_encoder()
