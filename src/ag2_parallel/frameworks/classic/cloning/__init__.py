"""Faithful copies of AG2 Classic agents and teams.

A `Template` surveys a team once and then makes any number of independent copies of it; `frameworks.cloning` says how.
Of AG2's own objects:

* Agents, group chats, managers, patterns, context variables, handoffs, guardrails, capabilities and model
  configurations are copied, with whatever state hangs on them, deep.
* Model clients and HTTP clients are shared; the wrapper around them, with its usage counters, is new. Clients that
  keep conversation state get a shell of their own.
* The past is left behind: messages, counters, usage, caches, last speakers.

`team` takes AG2's objects apart, and `template` is the face.
"""

from ag2_parallel.frameworks.classic.cloning.template import Clone, Template

__all__ = ["Clone", "Template"]
