"""``python -m infinitask.demo``."""

import io
import sys

from infinitask.demo import main

if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a terminal without θ and × shows a question mark instead of failing
            stream.reconfigure(errors="replace")
    sys.exit(main())
