"""AG2 1.x: agents that are asked, and hub teams."""
