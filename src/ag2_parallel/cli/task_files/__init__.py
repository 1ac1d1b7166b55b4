"""Task files: YAML, JSON, JSON lines and CSV, from their text to tasks."""
