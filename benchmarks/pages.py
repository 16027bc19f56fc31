"""The provenance and the records of the pages of benchmarks, which are signed as those of experiments are.

Benchmarks run as scripts, from the root of the repository or from this folder, and neither finds the experiments.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from experiments.provenance import combined, now, read, signed
from experiments.store import Store, key

__all__ = ["Store", "combined", "key", "now", "read", "signed"]
