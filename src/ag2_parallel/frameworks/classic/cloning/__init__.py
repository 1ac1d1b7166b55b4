"""Faithful copies of AG2 Classic agents and teams.

A `Template` surveys a team once and then makes any number of independent copies of it:

    template ──survey──► graph of everything reachable ──compile──► plan ──clone()──► copy, copy, copy …

What is copied, and what is not:

* The team itself: agents, group chats, managers, patterns, context variables, handoffs, guardrails, capabilities,
  model configurations, and whatever state hangs on them, deep.
* What code reaches, through closures, defaults, partial arguments, bound objects and module globals, is shared as it
  is: a database handle inside a tool stays the same handle. Only where it leads back to the team is the code rebuilt,
  so that it meets the copy in place of the original.
* Model clients and HTTP clients are shared; the wrapper around them, with its usage counters, is new. Clients that
  keep conversation state get a shell of their own.
* The past is left behind: messages, counters, usage, caches, last speakers.

`node` says what the graph is made of, `leaves` what is never copied, `references` which globals a function names,
`anatomy` and `team` take Python and AG2 objects apart, `survey` walks, `refusals` words what cannot be copied, `plan`
puts copies together, and `template` is the face.
"""

from ag2_parallel.frameworks.classic.cloning.template import Clone, Template

__all__ = ["Clone", "Template"]
