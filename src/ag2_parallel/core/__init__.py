"""The run itself: what starts when, what stops what, and the thread that sees to it."""
