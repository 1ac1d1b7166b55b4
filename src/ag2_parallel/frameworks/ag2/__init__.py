"""AG2 1.x: agents whose `ask` is a coroutine."""
