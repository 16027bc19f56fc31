"""``python -m infinitask.demo``."""

import sys

from infinitask.demo import main

sys.exit(main())
