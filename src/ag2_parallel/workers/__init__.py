"""The threads that attempts run on, and how an attempt is stopped."""
