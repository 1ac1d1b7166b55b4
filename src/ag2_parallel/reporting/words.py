"""How displays of progress write numbers and names."""

from __future__ import annotations


def clock(seconds: float) -> str:
    """A time as a clock shows it."""
    whole = int(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def tokens(count: int) -> str:
    """A number of tokens, short."""
    if count < 10_000:
        return f"{count:,} tokens"
    return f"{count / 1e3:,.0f} k tokens" if count < 1_000_000 else f"{count / 1e6:,.2f} M tokens"


def dollars(cost: float) -> str:
    """A price."""
    return f"${cost:.4f}" if cost < 1 else f"${cost:,.2f}"


def many_tasks(count: int) -> str:
    """A number of tasks."""
    return "1 task" if count == 1 else f"{count:,} tasks"


def if_cut_off(how_to_resume: str) -> str:
    """What the reader needs after a `kill -9`, told while there is time."""
    return f"if this run is cut off, go on with: {how_to_resume}"


def counted(counts: dict[str, int]) -> str:
    """Counts by status in words."""
    return ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.items())


def summary(counts: dict[str, int], kept: int) -> str:
    """What became of a run's tasks; `kept` have results of an earlier life, or of a sample."""
    if not counts:
        return "nothing to do"
    return counted(counts) + (f", {kept} kept" if kept else "")


def harmless(text: str, longest: int = 400) -> str:
    """The first line of a text without what would move a terminal's cursor."""
    first, _, more = text.partition("\n")
    shown = first[:longest] + ("…" if more or len(first) > longest else "")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in shown)
