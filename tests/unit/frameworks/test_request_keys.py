"""Keys of SDK clients: one look at a client serves all agents that share it, until something of it changes."""

import gc
import weakref

import pytest
from openai import OpenAI

from ag2_parallel.frameworks.request_keys import Configurations


@pytest.fixture
def sdk():
    return OpenAI(api_key="k", base_url="http://127.0.0.1:9/v1", default_headers={"x-ward": "1"}, timeout=30.0)


def renamed(sdk):
    sdk._custom_headers["x-ward"] = "2"  # in place


def moved(sdk):
    sdk.base_url = "http://127.0.0.1:9/other"


def with_another_key(sdk):
    sdk.api_key = "another"


def with_another_timeout(sdk):
    sdk.timeout = 5.0


@pytest.mark.parametrize("change", [renamed, moved, with_another_key, with_another_timeout])
def test_a_change_of_the_client_is_seen(sdk, change):
    configurations = Configurations()
    before = configurations.of(sdk)
    assert configurations.of(sdk) is before
    change(sdk)
    after = configurations.of(sdk)
    assert after != before
    assert configurations.of(sdk) is after


def test_a_client_that_does_something_by_itself_has_none_though_it_had_one(sdk):
    configurations = Configurations()
    assert configurations.of(sdk) is not None
    sdk._prepare_options = lambda options: options
    assert configurations.of(sdk) is None


def test_clients_are_not_kept_alive(sdk):
    configurations = Configurations()
    short_lived = sdk.with_options(timeout=3.0)
    assert short_lived.chat.completions
    assert configurations.of(short_lived) is not None
    gone = weakref.ref(short_lived)
    del short_lived
    gc.collect()
    assert gone() is None
