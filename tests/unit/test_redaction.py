"""S11: what is masked, and what is not."""

import base64

import pytest

from ag2_parallel.redaction import Redactor, masked_config, masked_text

KEY = "plain-looking-secret-value"


@pytest.mark.parametrize(
    "secret",
    [
        "sk-test-0123456789abcdef",
        "sk-live-123",
        "sk-ant-api03-abc123def456",
        "gsk_0123456789abcdefghij",
        "hf_abcdefghijklmnop1234",
        "AIzaSyA1234567890abcdefghijk",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
    ],
)
def test_key_shaped_text_is_masked(secret):
    assert secret not in masked_text(f"Error: bad key {secret}, sorry")


@pytest.mark.parametrize(
    "text",
    ["sk-learn is a library", "pk_patient_id", "a risk-based view", "hf_transformers", "see https://example.org/a:b"],
)
def test_ordinary_words_are_left(text):
    assert masked_text(text) == text


def test_bearer_tokens_and_passwords_in_addresses():
    assert masked_text("Authorization: Bearer abcdefgh12345") == "Authorization: Bearer ***"
    assert masked_text("postgres://me:secret@host/db") == "postgres://***@host/db"


def test_keys_of_a_configuration_are_learnt_however_nested():
    redactor = Redactor()
    redactor.learn(
        {"config_list": [{"model": "m", "api_key": KEY, "default_headers": {"X-Api-Key": "other-secret-1"}}]}
    )
    encoded = base64.b64encode(KEY.encode()).decode()
    text = redactor.text(f"{KEY} other-secret-1 {encoded} m")
    assert text == "*** *** *** m"


def test_a_classic_llm_config_is_learnt():
    import autogen

    redactor = Redactor()
    redactor.learn(autogen.LLMConfig({"model": "m", "api_key": KEY}))
    assert redactor.text(KEY) == "***"


def test_placeholders_of_local_servers_are_no_secrets():
    redactor = Redactor()
    redactor.learn({"api_key": "x", "token": "none"})
    assert redactor.text("x none") == "x none"


def test_the_users_function_comes_first_and_values_are_walked():
    redactor = Redactor(lambda text: text.replace("Ms Smith", "the patient"))
    value = {"a": ["Ms Smith", ("Ms Smith", 3)], "b": None}
    assert redactor.value(value) == {"a": ["the patient", ("the patient", 3)], "b": None}


def test_a_shown_configuration_keeps_its_structure():
    shown = masked_config({"config_list": [{"model": "m", "api_key": KEY, "password": ""}], "temperature": 0})
    assert shown == {"config_list": [{"model": "m", "api_key": "***", "password": ""}], "temperature": 0}


def test_circles_end():
    config = {"api_key": KEY}
    config["self"] = config
    redactor = Redactor()
    redactor.learn(config)
    assert redactor.text(KEY) == "***"


@pytest.mark.parametrize(
    "config",
    [
        {"default_headers": {"Authorization": "Basic plainvalue123"}},
        {"default_headers": {"authorization": "bearer plainvalue123"}},
        {"default_headers": {"Ocp-Apim-Subscription-Key": "plainvalue123"}},
        {"passphrase": "plainvalue123"},
    ],
)
def test_keys_of_gateways_are_known(config):
    redactor = Redactor()
    redactor.learn(config)
    assert redactor.text("refused plainvalue123") == "refused ***"


@pytest.mark.parametrize("name", ["key", "api_key", "api-key", "apikey", "subscription-key"])
def test_a_key_in_an_address_is_masked(name):
    assert masked_text(f"GET http://h/v1?a=1&{name}=plainvalue123&b=2") == f"GET http://h/v1?a=1&{name}=***&b=2"
