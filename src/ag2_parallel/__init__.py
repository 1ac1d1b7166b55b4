"""Run AG2 agents and agent teams in parallel."""
