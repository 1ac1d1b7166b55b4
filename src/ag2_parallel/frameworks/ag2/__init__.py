"""AG2 1.x: agents whose `ask` is a coroutine, and teams of them on a hub."""
