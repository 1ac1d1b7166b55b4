"""Runs on disk, so that nothing is lost or paid for twice."""
