"""S11: what is masked, and what is not."""

import base64
import re

import cloudpickle
import pydantic
import pytest

from ag2_parallel.redaction import Redactor, cut, masked_config, masked_text

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
    [
        "sk-learn is a library",
        "pk_patient_id",
        "a risk-based view",
        "hf_transformers",
        "see https://example.org/a:b",
        "git clone ssh://git@github.com/a/b",
        "https://someone@dev.example.org/project/_git/x",
        "mail to http://h/a, or to me@example.org",
        "basic training: basic understanding, Basic authentication",
        "a cookie: flour, sugar = 3 cups",
        "Cookie: a=b",
        "the token=short of it",
        "eyJ and AKIA and AIza: prefixes",
    ],
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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("redis://:pass@word@host/0", "redis://***@host/0"),
        ("https://a1b2c3d4e5f6a7b8c9@host/v1", "https://***@host/v1"),
        ("Cookie: sid=abc123; theme=dark", "Cookie: ***"),
        ("Set-Cookie: sid=abc123; Path=/; Expires=Wed, 21 Oct 2026\nnext", "Set-Cookie: ***\nnext"),
        ("{'set-cookie': 'sid=abc123', 'a': 'b'}", "{'set-cookie': '***', 'a': 'b'}"),
        ("[(b'cookie', b'sid=abc123'), (b'a', b'b')]", "[(b'cookie', b'***'), (b'a', b'b')]"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "Authorization: Basic ***"),
        ("https://h/x?a=1&sig=abcdefgh%2B12&b=2", "https://h/x?a=1&sig=***&b=2"),
        ("https://h/x?access_token=abcdefgh12", "https://h/x?access_token=***"),
        ("AccountName=n;AccountKey=abcdefghijklmnopqrstuvwx==;X=y", "AccountName=n;AccountKey=***;X=y"),
    ],
)
def test_shapes_of_addresses_and_headers(text, shown):
    assert masked_text(text) == shown
    assert masked_text(shown) == shown


SECRET = "plainvalue123"


@pytest.mark.parametrize(
    "config",
    [
        {"api_key": SECRET.encode()},
        {"api_key": pydantic.SecretStr(SECRET)},
        {"a": [pydantic.SecretBytes(SECRET.encode())]},
        {"base_url": f"https://{SECRET}@host/v1"},
        {"base_url": f"https://user:{SECRET}@host/v1"},
        {"base_url": f"https://host/v1?key={SECRET}"},
        {"proxy": f"http://:{SECRET}@proxy:3128"},
        {"default_headers": {"Cookie": f"theme=dark; sid={SECRET}; lang=en"}},
        {"cookies": {"sid": SECRET}},
        {"dsn": f"host=db user=me password={SECRET} port=5432"},
        {"dsn": f"postgres://me:{SECRET}@db/x"},
        {"connection_string": f"Server=db;User=me;Password={SECRET};Encrypt=yes"},
        {"azure_connection_string": f"AccountName=me;AccountKey={SECRET};EndpointSuffix=x"},
        {"connectionString": SECRET},
        {"default_headers": {"Authorization": "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()}},
        {"clientSecret": SECRET, "sessionToken": "x"},
    ],
)
def test_secrets_are_found_where_they_stand(config):
    redactor = Redactor()
    redactor.learn(config)
    inside = base64.b64encode(f"user:{SECRET}".encode()).decode()
    assert redactor.text(f"refused {SECRET} by host, me, db, dark, en") == "refused *** by host, me, db, dark, en"
    assert re.fullmatch(r"(dXNlcjp?)?\*\*\*", redactor.text(inside))
    assert SECRET not in repr(masked_config(config))


def test_a_secret_number():
    redactor = Redactor()
    redactor.learn({"password": 1234567890, "token": 12, "access_key": True})
    assert redactor.text("1234567890, 12 and True") == "***, 12 and True"


@pytest.mark.parametrize(
    "config",
    [
        {"api_key": "ollama", "password": "password"},
        {"default_headers": {"Authorization": "Bearer none"}},
        {"base_url": "https://someone@host/v1"},
        {"base_url": "postgres://user:password@host/db"},
        {"system_message": "Connect to postgres://me:mypassword@host, then ask."},
        {"connection_string": "sqlite:///words.db"},
        {"default_headers": {"Cookie": "theme=dark; consent=accepted"}},
    ],
)
def test_words_are_not_learnt(config):
    redactor = Redactor()
    redactor.learn(config)
    text = "ollama has a password, or none; someone said mypassword is no sqlite:///words.db: dark, accepted"
    assert redactor.text(text) == text


def test_data_may_speak_of_tokens_and_secrets():
    redactor = Redactor()
    redactor.learn_data(
        {"token": "running", "secret": "a garden", "password": "hunter", "authorization": "prior approval"}
    )
    assert redactor.text("running in a garden, hunter: prior approval") == "running in a garden, hunter: prior approval"
    redactor.learn_data({"password": "hunter22", "rows": [{"api_key": SECRET}]})
    assert redactor.text(f"hunter22 {SECRET}") == "*** ***"


def test_long_texts_and_many_secrets():
    redactor = Redactor()
    words = "a text without any of them. " * 1000
    for count in range(400):
        redactor.learn({"api_key": f"plainvalue{count:04}x"})
    for text in ("plainvalue0000x", f"{words}plainvalue0399x{words}plainvalue0000x"):
        assert "plainvalue0" not in redactor.text(text)
    assert redactor.text(words) == words


def test_a_text_is_cut_between_words():
    assert cut("short", 10) == "short"
    assert cut("the key is Zebra9QuiltMarble", 20) == "the key is …"
    assert cut("the key is Zebra9QuiltMarble", 10) == "the key is…"


def test_a_configuration_is_shown_without_the_secrets_in_its_addresses():
    config = {"base_url": f"https://{SECRET}@h/v1?key={SECRET}", "dsn": f"host=db password={SECRET}"}
    assert masked_config(config) == {"base_url": "https://***@h/v1?key=***", "dsn": "host=db password=***"}


def test_a_redactor_goes_to_another_process():
    redactor = Redactor()
    redactor.learn({"api_key": SECRET})
    text = cloudpickle.loads(cloudpickle.dumps(redactor.text))
    assert text(f"refused {SECRET}") == "refused ***"
