"""`detok worker`: what it refuses, and that it says where it listens. tests/frontend/test_supervisor.py has the processes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from detok.frontend.worker.client import DetokenizerClient
from tests.cli.support import EMBEDDED, run
from tests.support.workers import endpoint, processes


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--endpoint", "nonsense"), "endpoint='nonsense'"),
        (("--workers", "0"), "--workers"),
        (("--max-states", "0"), "--max-states"),
        (("--max-idle", "0"), "--max-idle"),
        (("no-such-tokenizer-anywhere.json",), "no-such-tokenizer-anywhere.json"),
    ],
)
def test_bad_argument_is_refused(arguments: tuple[str, ...], named: str) -> None:
    """One line that names it, and code 2."""
    result = run("worker", *arguments)
    assert result.exit_code == 2
    assert named in result.stderr


def test_missing_library_is_named() -> None:
    """Without pyzmq the command says which extra to install."""
    code = "import sys; sys.modules['zmq'] = None; sys.argv = ['detok', 'worker']; from detok.__main__ import main; main()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.rstrip().endswith("pip install 'detok[worker]'")


def test_several_workers_listen_side_by_side() -> None:
    """Two workers, two endpoints, one client of both."""
    with endpoint() as place, processes(place, "--workers", "2") as process:
        assert process.stdout is not None
        assert f" listens at {place}." in process.stdout.readline()
        with DetokenizerClient([f"{place}.0", f"{place}.1"], fingerprint=EMBEDDED.fingerprint) as client:
            client.open("a")
            client.open("b")
            ids = EMBEDDED.encode("Hello 🦜")
            outputs = client.step([(name, ids, None, "stop", None) for name in "ab"])
            assert [output.text for _, output in outputs] == [EMBEDDED.decode(ids)] * 2
            assert len({*client.pids}) == 2
