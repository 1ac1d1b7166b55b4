"""The kinds of agents a task can have, each behind the `Framework` port."""
