"""The metrics of processes that run: asked for, and read."""

from __future__ import annotations

from urllib.request import urlopen

from ...errors import MissingExtra, WorkerError, WorkerUnavailable
from . import wire

try:
    import zmq
except ImportError as error:
    raise MissingExtra("pyzmq", extra="worker", purpose="a detokenizer worker") from error

__all__ = ["samples", "scrape"]


def scrape(endpoint: str, seconds: float = 2.0) -> str:
    """
    Return the metrics of a process in the text form of Prometheus.

    Args:
        endpoint: Of a worker; or the URL of a page that has them.
        seconds: How long to wait.

    Raises:
        WorkerUnavailable: Nothing came.
        WorkerError: It is no endpoint, or what came are no metrics.
    """
    if endpoint.startswith(("http://", "https://")):
        return _page(endpoint, seconds)
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    try:
        socket.connect(endpoint)
        socket.send(wire.encode(wire.Ask(wire.VERSION)))
        if not socket.poll(round(seconds * 1000)):
            raise WorkerUnavailable(endpoint, seconds=seconds)
        status = wire.decode_from_worker(socket.recv())
    except zmq.ZMQError as error:
        raise WorkerError(endpoint, problem=f"it is no endpoint of a worker ({error})") from None
    finally:
        socket.close(linger=0)
        context.term()
    if not isinstance(status, wire.Status):
        raise WorkerError(endpoint, problem=f"it answers {type(status).__name__} where a Status is expected")
    return status.text


def _page(url: str, seconds: float) -> str:
    try:
        with urlopen(url, timeout=seconds) as response:
            content: bytes = response.read()
    except TimeoutError:
        raise WorkerUnavailable(url, seconds=seconds) from None
    except (OSError, ValueError) as error:
        raise WorkerError(url, problem=f"it cannot be read ({error})") from None
    return content.decode(errors="replace")


def samples(text: str) -> dict[str, float]:
    """
    Return the samples of a text by name; those with labels are added up, but for the buckets of histograms.

    >>> samples("# TYPE a counter\\na{worker=\\"0\\"} 1\\na{worker=\\"1\\"} 2\\n")
    {'a': 3.0}
    """
    found: dict[str, float] = {}
    for line in text.splitlines():
        named, _, value = line.rpartition(" ")
        name = named.partition("{")[0]
        if line.startswith("#") or not name or name.endswith("_bucket"):
            continue
        try:
            found[name] = found.get(name, 0.0) + float(value)
        except ValueError:
            continue
    return found
