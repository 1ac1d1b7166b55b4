"""The causes that errors are told apart by."""

from __future__ import annotations

ERROR_KINDS = frozenset({
    "configuration", "authentication", "rate_limit", "quota", "context_length", "content_filter", "timeout",
    "connection", "provider", "invalid_answer", "rejected", "tool", "human_input", "budget", "shared_agent",
    "worker_crashed", "not_serializable", "uncertain", "stopped", "agent",
})  # fmt: skip
"""Every value that `TaskError.kind` may have."""

PERMANENT_KINDS = frozenset({
    "configuration", "authentication", "quota", "context_length", "content_filter", "budget", "human_input",
    "shared_agent", "not_serializable", "uncertain", "stopped",
})  # fmt: skip
"""Kinds that another attempt of the task cannot mend."""
