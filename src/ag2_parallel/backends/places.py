"""Which starter belongs to which backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ag2_parallel.backend_options import RayBackend

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.backend_options import ProcessBackend
    from ag2_parallel.backends.starting import Starter


def starter_for(policy: ProcessBackend | RayBackend) -> Callable[[bool], Starter]:
    """What makes a starter of worker processes; called with whether AG2 Classic should be preloaded."""
    if isinstance(policy, RayBackend):
        from ag2_parallel.backends.ray_starter import RayStarter

        return lambda preload: RayStarter(policy, preload=preload)
    from ag2_parallel.backends.starting import starter

    return lambda preload: starter(preload=preload)
