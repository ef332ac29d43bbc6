"""`python -m detok`, and the `detok` command."""

from __future__ import annotations

import os
import sys

from .errors import MissingExtra

__all__ = ["main"]


def main() -> None:
    """Run the command line; without its libraries, say what to install."""
    try:
        from .cli.app import app
    except ImportError as error:
        library = (error.name or "").partition(".")[0]
        if library not in ("typer", "rich"):
            raise
        print(f"detok: {MissingExtra(library, extra='cli', purpose='the command line')}", file=sys.stderr)
        sys.exit(2)
    # Whoever closed one of these wants none of it.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115  # open to the end
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115  # the same
    try:
        try:
            app(prog_name="detok")
        finally:
            sys.stdout.flush()
    except OSError as error:
        print(f"detok: the output cannot be written: {error.strerror}", file=sys.stderr)
        # What is still buffered would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(2)


if __name__ == "__main__":
    main()
