"""All benchmarks, one after another, in one report."""

import sys

from . import __doc__ as description
from . import bounds, encode, formats, load, request, step
from .harness import main

if __name__ == "__main__":
    measures = [step.measure, request.measure, bounds.measure, load.measure, formats.measure, encode.measure]
    sys.exit(main(measures, description))
