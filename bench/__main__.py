"""All benchmarks, one after another, in one report."""

import sys

from . import __doc__ as description
from . import bounds, formats, load, step, worker
from .harness import main

if __name__ == "__main__":
    sys.exit(main([step.measure, bounds.measure, load.measure, formats.measure, worker.measure], description))
