"""AG2 Classic: agents, group chats and patterns of the `autogen` package."""
