"""What the doctor makes of what is installed, of keys, and of model servers."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ag2_parallel.cli.doctor.installation import backends, classic_line, installed, journal, keys, packages
from ag2_parallel.cli.doctor.servers import entries, reachable
from ag2_parallel.redaction import Redactor


@pytest.mark.parametrize(
    ("owners", "versions", "state", "told", "advice"),
    [
        ([], {}, "note", "not installed", "pip install"),
        (["autogen"], {"autogen": "0.14.1"}, "ok", "autogen 0.14.1", ""),
        (["autogen"], {"autogen": "1.0rc1"}, "ok", "autogen 1.0rc1", ""),
        (["autogen"], {"autogen": "0.9"}, "problem", "autogen 0.9 is too old", "pip install"),
        (["pyautogen", "autogen"], {"autogen": "0.14", "pyautogen": "0.2"}, "problem", "autogen 0.14, pyautogen 0.2", "pip uninstall autogen pyautogen"),
    ],
)  # fmt: skip
def test_the_line_of_ag2(owners, versions, state, told, advice):
    found = classic_line(owners, versions.get)
    assert (found.state, found.told) == (state, told)
    assert advice in found.advice


def test_packages_are_listed_with_their_versions():
    found = {each.what: each for each in packages()}
    assert found["AG2 Classic"].state == "ok"
    assert found["Python"].told.startswith("3.")


def test_keys_are_named_and_never_shown():
    found = keys(
        {"OPENAI_API_KEY": "sk-secret", "GROQ_API_KEY": "", "HOME": "/me", "HF_ACCESS_TOKEN": "hf", "KEYBOARD": "de"}
    )
    assert (found.state, found.told) == ("ok", "HF_ACCESS_TOKEN, OPENAI_API_KEY")
    assert keys({}).state == "note"


def test_a_journal_s_place(tmp_path):
    assert journal(tmp_path / "runs.db").state == "ok"
    assert list(tmp_path.iterdir()) == []
    assert "mkdir -p" in journal(tmp_path / "no" / "runs.db").advice


def test_entries_of_every_form_of_configuration():
    a, b = {"model": "a"}, {"model": "b"}
    for config in ({"config_list": [a, b], "temperature": 0}, [a, b]):
        assert list(entries(config)) == [a, b]
    assert list(entries(a)) == [a]
    assert list(entries(None)) == list(entries(False)) == []


@contextlib.contextmanager
def answering(status, body):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "body", "model", "state", "told"),
    [
        (200, b'{"data": [{"id": "m"}]}', "m", "ok", "answers, 1 model, m among them"),
        (200, b'{"data": [{"id": "m"}]}', "other", "note", "does not list other"),
        (401, b"", "m", "problem", "the key is refused"),
        (503, b"", "m", "problem", "answers 503"),
        (404, b"", "m", "note", "lists no models"),
        (200, b"<html>", "m", "note", "not with a list of models"),
    ],
)
def test_what_a_server_says(status, body, model, state, told):
    with answering(status, body) as base_url:
        found = reachable({"base_url": base_url, "model": model, "api_key": "k"}, Redactor())
    assert (found.state, told in found.told) == (state, True), found


def test_a_forgotten_v1_is_thought_of():
    with answering(404, b"") as base_url:
        entry = {"base_url": base_url.removesuffix("/v1"), "api_key": "k"}
        assert reachable(entry, Redactor()).advice == "check base_url: it often ends in /v1"
        assert reachable({**entry, "base_url": base_url}, Redactor()).advice == ""


def test_a_server_that_is_not_there_and_one_of_another_protocol():
    redactor = Redactor()
    redactor.learn({"api_key": "swordfish"})
    found = reachable({"base_url": "http://127.0.0.1:9/swordfish", "api_key": "swordfish"}, redactor)
    assert found.state == "problem"
    assert "swordfish" not in json.dumps(found.to_dict())
    assert reachable({"base_url": "http:// no", "model": "m"}, redactor).state == "problem"
    assert reachable({"api_type": "anthropic", "model": "m"}, redactor).state == "note"


def test_it_says_when_which_backend_pays():
    told = backends().told
    assert [word for word in ("local (threads)", "process when", "ray") if word in told] == [
        "local (threads)",
        "process when",
        "ray",
    ]
    assert ("not installed" in told) is (installed("ray") is None)
