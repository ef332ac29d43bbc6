"""`detok worker`: detokenizing in processes of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options as o

__all__ = ["EXAMPLES", "command"]

EXAMPLES = """\b
Examples:
  detok worker llama3/                     one, at ipc:///tmp/detok
  detok worker llama3/ --workers 4         four, at ipc:///tmp/detok.0 to .3
  detok worker llama3/ -e tcp://*:5757     for clients on other machines
"""


def command(
    tokenizer: o.TokenizerSource = None,
    endpoint: Annotated[
        str, typer.Option("--endpoint", "-e", metavar="ENDPOINT", help="Where to listen: ipc://PATH or tcp://HOST:PORT.")
    ] = "ipc:///tmp/detok",
    workers: Annotated[
        int, typer.Option("--workers", "-n", min=1, help="So many processes; of several each has an endpoint of its own.")
    ] = 1,
    max_states: Annotated[
        int, typer.Option(min=1, help="Requests that a worker keeps; past it clients keep the least recently used.")
    ] = 65_536,
    max_idle: Annotated[float, typer.Option(min=0.001, help="A request without a token for so many seconds expires.")] = 3600.0,
    max_silence: Annotated[
        float, typer.Option(min=0.001, help="What is kept for a client that says nothing for so many seconds is forgotten.")
    ] = 120.0,
    max_frame: Annotated[int, typer.Option(min=1024, help="Longer messages are refused, in bytes.")] = 64 << 20,
    drain: Annotated[float, typer.Option(min=0.0, help="So many seconds to hand requests back, when asked to end.")] = 5.0,
    hang: Annotated[float, typer.Option(min=1.0, help="A worker that is stuck for so many seconds is started again.")] = 60.0,
    max_backoff: Annotated[
        float, typer.Option(min=0.05, help="The longest wait before a worker that keeps dying is started again, in seconds.")
    ] = 5.0,
) -> None:
    """
    Detokenize for other programs, in processes of their own.

    Programs talk to it with detok.frontend.worker.client, or in any language by what docs/worker.md says. A worker that dies is
    started again, and its clients go on as if nothing had happened. SIGTERM and Ctrl-C end it gently. Needs detok[worker].
    """
    from ..frontend.worker.service import Limits
    from ..frontend.worker.supervisor import Supervisor
    from ..frontend.worker.worker import endpoints_of

    endpoints = endpoints_of(endpoint, workers)
    limits = Limits(max_states=max_states, max_idle=max_idle, max_silence=max_silence, max_frame=max_frame)
    name = "" if tokenizer is None else Path(tokenizer).name
    supervisor = Supervisor(
        o.open_tokenizer(tokenizer),
        endpoints,
        limits,
        drain=drain,
        hang=hang,
        most_backoff=max_backoff,
        name=name,
        notify=lambda line: typer.echo(line),
    )
    supervisor.run()
