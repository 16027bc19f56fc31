"""``python -m infinitask`` is the command ``infinitask``."""

import sys

from infinitask.cli import main

sys.exit(main())
