"""All benchmarks, one after another, in one report."""

import sys

from . import __doc__ as description
from . import bounds, encode, formats, frontend, heart, imports, load, request, step, worker
from .harness import main

if __name__ == "__main__":
    measures = [each.measure for each in (heart, step, request, frontend, worker, bounds, load, imports, formats, encode)]
    sys.exit(main(measures, description))
