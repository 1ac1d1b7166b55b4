"""`python -m ag2_parallel` is `ag2-parallel`."""

from __future__ import annotations

import sys

from ag2_parallel.cli import main

if __name__ == "__main__":
    sys.exit(main())
