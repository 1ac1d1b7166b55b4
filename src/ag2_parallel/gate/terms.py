"""What one client's calls have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ag2_parallel.gate.prices import Pricing
    from ag2_parallel.gate.wire import Sender


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What one client's calls have in common.

    Attributes:
        sender: Sends the requests.
        last_entry: Whether no other entry of a fallback list comes after this one.
        price: The price of a model's tokens at an endpoint, asked when a cost is wanted.
    """

    sender: Sender
    last_entry: bool
    price: Pricing
