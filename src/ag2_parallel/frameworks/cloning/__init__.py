"""Faithful copies of agents and teams, of whichever line of AG2.

    team ──survey──► graph of everything reachable ──compile──► plan ──run()──► copy, copy, copy …

A line of AG2 gives `TeamRules`: which objects belong to a team, and how its own objects are taken apart. The rest is
Python alone.

* The team itself is copied deep, with whatever state hangs on it.
* What code reaches, through closures, defaults, partial arguments, bound objects and module globals, is shared as it
  is: a database handle inside a tool stays the same handle. Only where it leads back to the team is the code rebuilt,
  so that it meets the copy in place of the original.

`node` says what the graph is made of, `leaves` what is never copied, `references` which globals a function names,
`anatomy` takes Python objects apart, `survey` walks, `refusals` words what cannot be copied, `compiling` makes a
plan, and `plan` puts copies together.
"""
