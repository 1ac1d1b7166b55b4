"""A module of the user's that keeps an agent."""

from clone_harness import speaker

GREETING = "hello"
boss = speaker("boss")
