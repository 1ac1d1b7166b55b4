"""`python -m ag2_parallel` is `ag2-parallel`."""

from __future__ import annotations

from ag2_parallel.cli import program

if __name__ == "__main__":
    program()
