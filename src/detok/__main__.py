"""`python -m detok`, and the `detok` command."""

from __future__ import annotations

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
    app(prog_name="detok")


if __name__ == "__main__":
    main()
