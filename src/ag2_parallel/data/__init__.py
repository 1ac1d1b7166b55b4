"""Data sets as rows, read lazily, and tasks made of them."""
