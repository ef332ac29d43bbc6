"""This process, as the system sees it."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

__all__ = ["cpu_seconds", "resident_bytes", "set_title"]


def cpu_seconds() -> float:
    """The processor time that it has used, in all threads."""
    return time.process_time()


def resident_bytes() -> float:
    """The memory that it has now; where the system does not say that, the most that it ever had."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        import resource

        # Linux counts in kilobytes, macOS in bytes.
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024))
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def set_title(title: str) -> None:
    """Name it, for `ps`, if ``setproctitle`` is there."""
    try:
        from setproctitle import setproctitle
    except ImportError:
        return
    setproctitle(title)
