"""Which model the examples ask: yours, or a scripted one on this machine.

Yours where OPENAI_MODEL is set; OPENAI_BASE_URL and OPENAI_API_KEY go with it. Else an embedded
server answers over real HTTP, with no key and no network, and what it says is scripted.
"""

import os
from contextlib import contextmanager

from ag2_parallel.testing import ModelServer


@contextmanager
def model_config(reply, *, latency=0.2):
    """An AG2 model configuration; `reply` is what the scripted model says, in any form `ModelServer` takes."""
    if "OPENAI_MODEL" in os.environ:
        entry = {"model": os.environ["OPENAI_MODEL"], "api_key": os.environ.get("OPENAI_API_KEY", "none")}
        if "OPENAI_BASE_URL" in os.environ:
            entry["base_url"] = os.environ["OPENAI_BASE_URL"]
        yield {"config_list": [entry]}
    else:
        with ModelServer(reply, latency=latency) as server:
            yield server.llm_config()
