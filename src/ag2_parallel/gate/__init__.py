"""The gate: every model call of every task passes here, on the engine loop, through one connection pool."""
