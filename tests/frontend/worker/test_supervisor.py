"""Workers in processes of their own: killed, stopped, stuck, and started again."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Hashable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import zmq

import detok
from detok.data import sample
from detok.frontend.worker.backoff import Backoff
from detok.frontend.worker.client import DetokenizerClient
from detok.frontend.worker.kept import Pace, Ticket
from detok.frontend.worker.scrape import samples, scrape
from detok.frontend.worker.worker import endpoints_of
from detok.inspection.hostile import hostile_ids
from tests.support.handmade import handmade
from tests.support.vocabularies import real
from tests.support.workers import endpoint, processes

FULL = os.environ.get("DETOK_FULL") == "1"
STREAMS = 256 if FULL else 64
TOKENS = 400
KILLS = 20

TOKENIZER = detok.load(detok.EMBEDDED)
IDS = TOKENIZER.encode(sample("mixed"), add_special_tokens=False)[:200] * 20


@pytest.fixture
def place() -> Iterator[str]:
    """A place to listen."""
    with endpoint() as found:
        yield found


def _vocabularies(directory: Path) -> list[Path]:
    """Files of mixed vocabularies: real ones for the full size, and else those that are always there."""
    if FULL:
        return [real(name) / "tokenizer.json" for name in ("llama3", "qwen3", "gemma3", "mistral-v1")]
    files = [Path(detok.EMBEDDED)]
    for name in ("ByteLevel 4", "Mistral", "Metaspace"):
        files.append(directory / f"{name.replace(' ', '-')}.json")
        handmade(name)[0].save(str(files[-1]))
    return files


class Streams:
    """Some streams over one vocabulary, their client, and its worker."""

    def __init__(self, file: Path, count: int, rng: random.Random, client: DetokenizerClient) -> None:
        self.tokenizer = detok.load(file)
        self.client = client
        self.ids = [hostile_ids(rng, self.tokenizer, TOKENS)[:TOKENS] for _ in range(count)]
        self.taken = [0] * count
        self.tickets: list[Ticket] = []
        self._rng = rng
        for index in range(count):
            client.open(index, ignore_eos=True)

    @property
    def done(self) -> bool:
        """Whether every id was sent."""
        return not len(self.client)

    def send(self) -> None:
        """A step: for most streams a row of one id or a few; with a stream's last ids its end."""
        rows = []
        for index, ids in enumerate(self.ids):
            taken = self.taken[index]
            if index not in self.client or taken == len(ids) or self._rng.random() < 0.1:
                continue
            step = ids[taken : taken + self._rng.choice((1, 1, 1, 4))]
            self.taken[index] += len(step)
            rows.append((index, step, None, "length" if self.taken[index] == len(ids) else None, None))
        self.tickets.append(self.client.send(rows))

    def wait(self) -> None:
        """Until all that was sent is answered."""
        self.client.wait(self.tickets[-1])

    def assert_right(self) -> None:
        """Each text is the one-shot decode of the tokenizer's own library."""
        texts: dict[Hashable, str] = defaultdict(str)
        for ticket in self.tickets:
            for index, output in self.client.wait(ticket):
                assert output.error is None
                texts[index] += output.text
        for index, ids in enumerate(self.ids):
            assert texts[index] == self.tokenizer.library.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize("max_states", [65_536, 16])
def test_killed_workers_are_not_noticed(tmp_path: Path, max_states: int) -> None:
    """Workers of mixed vocabularies are killed twenty times, with steps under way: every text is the one-shot decode."""
    rng = random.Random(max_states)
    with ExitStack() as stack:
        sets = []
        files = _vocabularies(tmp_path)
        for file in files:
            place = stack.enter_context(endpoint())
            options = ("--max-backoff", "0.05", "--max-states", str(max_states))
            stack.enter_context(processes(place, *options, tokenizer=file))
            client = stack.enter_context(DetokenizerClient(place, pace=Pace(retry=0.05, keep=32)))
            sets.append(Streams(file, STREAMS // len(files), rng, client))
        kills = 0
        for number in range(10 * TOKENS):
            if all(streams.done for streams in sets):
                break
            for streams in sets:
                streams.send()
                if number % 4 == 3:
                    streams.wait()
            if kills < KILLS and number % 5 == 4:
                victim = sets[kills % len(sets)]
                victim.wait()
                for _ in range(rng.randrange(1, 4)):
                    victim.send()
                (pid,) = victim.client.pids
                assert pid is not None
                os.kill(pid, signal.SIGKILL)
                kills += 1
        for streams in sets:
            streams.assert_right()
        assert kills == KILLS
        assert sum(streams.client.sessions for streams in sets) >= KILLS
        restarts = sum(samples(scrape(streams.client.endpoints[0]))["detok_worker_restarts"] for streams in sets)
        assert restarts == KILLS


def test_sigterm_hands_requests_back(place: str) -> None:
    """A worker that is told to end gives its requests back, so that the next has nothing to feed again."""
    with processes(place, "--max-backoff", "0.05"), DetokenizerClient(place, pace=Pace(retry=0.05)) as client:
        client.open("a")
        text = client.step([("a", IDS[:50], None, None, None)])[0][1].text
        (pid,) = client.pids
        assert pid is not None
        os.kill(pid, signal.SIGTERM)
        taken = 50
        while client.sessions == 1 and taken < len(IDS):
            text += client.step([("a", IDS[taken : taken + 1], None, None, None)])[0][1].text
            taken += 1
        text += client.step([("a", IDS[taken:], None, "stop", None)])[0][1].text
        assert text == TOKENIZER.decode(IDS)
        after = samples(scrape(place))
        assert after["detok_worker_restarts"] == 1
        # Of all of them; the answer to a step under way in that very moment may have been lost.
        assert after["detok_worker_replayed_rows_total"] <= 1


def test_stuck_worker_is_killed(place: str) -> None:
    """A worker that does not go on is killed and started again; its clients go on."""
    with processes(place, "--hang", "1", "--max-backoff", "0.05") as supervisor:
        with DetokenizerClient(place, pace=Pace(retry=0.05)) as client:
            client.open("a")
            text = client.step([("a", IDS[:50], None, None, None)])[0][1].text
            (pid,) = client.pids
            assert pid is not None
            os.kill(pid, signal.SIGSTOP)
            text += client.step([("a", IDS[50:], None, "stop", None)])[0][1].text
            assert text == TOKENIZER.decode(IDS)
            assert client.pids != [pid]
        assert supervisor.stdout is not None
        assert f"(pid {pid}) said nothing for 1 s and is killed" in supervisor.stdout.readline()


def test_workers_end_with_their_supervisor(place: str) -> None:
    """Workers whose supervisor was killed end by themselves, and leave their place to others."""
    command = [sys.executable, "-m", "detok", "worker", "--endpoint", place, "--workers", "2", "--drain", "0"]
    supervisor = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert supervisor.stdout is not None
    assert all("listens at" in supervisor.stdout.readline() for _ in range(2))
    supervisor.kill()
    # The workers have the other end of this pipe; it is read to its end, which comes when both have ended.
    supervisor.communicate(timeout=60)
    with processes(f"{place}.0"):
        assert "detok_worker_restarts 0\n" in scrape(f"{place}.0")


def test_place_that_is_taken_is_an_error(place: str) -> None:
    """A worker that cannot listen where it should says so, and nothing is left running."""
    context = zmq.Context()
    taken = context.socket(zmq.ROUTER)
    port = taken.bind_to_random_port("tcp://127.0.0.1")
    try:
        command = [sys.executable, "-m", "detok", "worker", "--endpoint", f"tcp://127.0.0.1:{port}"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    finally:
        taken.close(linger=0)
        context.term()
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.fullmatch(rf"detok: the worker at tcp://127.0.0.1:{port}: .*[Aa]ddress.*\n", ended.stderr)


def test_process_is_named(place: str) -> None:
    """`ps` tells workers apart, if setproctitle is there."""
    pytest.importorskip("setproctitle")
    with processes(place), DetokenizerClient(place) as client:
        client.open("a")
        client.step([("a", IDS[:1], None, None, None)])
        (pid,) = client.pids
        listed = subprocess.run(["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True).stdout
        assert listed.strip() == f"detok worker 0: {place}"


def test_backoff_grows_and_starts_again() -> None:
    """Who dies at once waits longer each time, up to a bound; who lived for a while does not wait long."""
    backoff = Backoff(first=0.1, most=0.5, stable=10.0)
    assert [backoff.delay(0.0) for _ in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]
    assert [backoff.delay(lived) for lived in (10.0, 9.9)] == [0.1, 0.2]


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "detok",
        "ipc://",
        "udp://127.0.0.1:1",
        "tcp://127.0.0.1",
        "tcp://127.0.0.1:x",
        "tcp://:5",
        "tcp://127.0.0.1:65535",
        "tcp://h:0",
    ],
)
def test_endpoint_that_is_none_is_refused(bad: str) -> None:
    """What is no place to listen for two workers is refused by name."""
    with pytest.raises(detok.OptionError, match="endpoint="):
        endpoints_of(bad, 2)
