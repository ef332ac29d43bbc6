"""A path that is not there: what was looked for and where it ends, and what is there with nearly its name."""

from __future__ import annotations

import os
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

__all__ = ["near_paths", "what_is_missing"]

# A folder of caches may have a million entries; a message is not worth more than so many.
LOOKED_AT = 2000

LONGEST = 255
"""Of a name, in most file systems. What is longer is no path that somebody mistyped."""

SHOWN = 3


def what_is_missing(path: Path) -> str:
    """
    Return where the way to a path ends, as half a sentence; "" if that cannot be said.

    >>> what_is_missing(Path("/no-such-folder/tokenizer.json"))
    "/ has no 'no-such-folder'"
    """
    found = _end_of(path)
    if found is None:
        return ""
    folder, missing, _ = found
    if len(missing) > LONGEST:
        return ""
    if (folder / missing).is_symlink():
        return f"{folder / missing} is a link to what is not there"
    return f"{folder} has no {missing!r}" if folder.is_dir() else f"{folder} is a file and has nothing in it"


def near_paths(path: Path) -> list[str]:
    """Return paths that are there and spelled nearly so, the nearest first; only those with all of the rest, if there are any."""
    home = _at_home(path)
    if home is not None:
        return [str(home)]
    found = _end_of(path)
    if found is None or len(found[1]) > LONGEST:
        return []
    folder, missing, rest = found
    names = {name.casefold(): name for name in _names(folder)}
    near = [names[name] for name in get_close_matches(missing.casefold(), names, n=SHOWN)]
    near = [name for name in near if (folder / name).exists()]
    whole = [folder / name / rest for name in near if (folder / name / rest).exists()]
    here = Path.cwd()
    return [
        str(one.relative_to(here) if not path.is_absolute() and one.is_relative_to(here) else one)
        for one in whole or [folder / name for name in near]
    ]


def _at_home(path: Path) -> Path | None:
    """The path with its ``~`` replaced, which a shell does and Python does not, if that is there."""
    try:
        home = path.expanduser()
        return home if home != path and home.exists() else None
    except (OSError, ValueError, RuntimeError):  # RuntimeError: nobody has such a home
        return None


def _end_of(path: Path) -> tuple[Path, str, Path] | None:
    """The last thing on the way to a path that is there, the name that it lacks, and the rest of the way."""
    try:
        whole = Path(os.path.abspath(path))
        for folder in () if whole.exists() else whole.parents:
            if folder.exists():
                missing, *rest = whole.relative_to(folder).parts
                return folder, missing, Path(*rest)
    except (OSError, ValueError):  # too long for a path, or with a NUL
        pass
    return None


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in islice(entries, LOOKED_AT)]
    except OSError:
        return []
