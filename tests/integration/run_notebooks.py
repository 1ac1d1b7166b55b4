"""Runs notebooks from their first cell to their last, as a reader would.

`python tests/integration/run_notebooks.py` runs those of `examples/notebooks` and keeps their new outputs.
"""

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def executed(notebook):
    """The notebook with new outputs; raises where a cell does."""
    for name in [name for name in os.environ if name.startswith("OPENAI_")]:
        del os.environ[name]
    NotebookClient(notebook, timeout=120, kernel_name="python3", store_widget_state=False).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times, which differ each time
    return notebook


def main():
    for path in NOTEBOOKS:
        nbformat.write(executed(nbformat.read(path, as_version=4)), path)
        sys.stderr.write(f"{path.name} has run\n")


if __name__ == "__main__":
    main()
