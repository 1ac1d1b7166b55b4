"""Proxies and certificates: those that the environment names, and those of a user's own client. Never bypassed."""

import base64
import socket

import httpx
import pytest
from autogen import ConversableAgent, LLMConfig
from certificates import authority_file, client_context, server_context, tls_server
from environment import environment
from forward_proxy import ForwardProxy
from gate_harness import FAST, HELLO, harness, http_answer, raw_server

from ag2_parallel import ParallelAgentRunner, ParallelTask
from ag2_parallel.gate.proxies import exempt
from ag2_parallel.policies import RetryPolicy
from ag2_parallel.testing import ModelServer, Reply

BODY = {"model": "m", "messages": HELLO}
SECURE = http_answer({"id": "secure"})
ONCE = RetryPolicy(1)


@pytest.fixture
def engine():
    with harness() as made:
        yield made


@pytest.fixture
def raw():
    with raw_server() as server:
        yield server


@pytest.fixture
def ca_file(tmp_path):
    with authority_file(tmp_path) as path:
        yield path


def post(engine, url, *, retry=FAST, **options):
    return engine.attempt(retry).http_client(**options).post(f"{url}/v1/chat/completions", json=BODY)


# Plain proxies


def test_the_environments_proxy_is_used(engine, raw):
    raw.answer = http_answer({"id": "by proxy"})
    with environment(HTTP_PROXY=f"http://user:word@127.0.0.1:{raw.url.rpartition(':')[2]}"):
        assert post(engine, "http://model.example").json()["id"] == "by proxy"
    assert raw.requests[0].startswith(b"POST http://model.example/v1/chat/completions HTTP/1.1\r\n")
    assert b"proxy-authorization: basic " + base64.b64encode(b"user:word").lower() in raw.requests[0].lower()


def test_a_model_server_behind_a_proxy_is_asked_like_any_other(engine):
    with ModelServer(Reply("fine", usage=(5, 1))) as server:
        names = {"model.example": ("127.0.0.1", server.port)}
        with ForwardProxy(user="user:wörd", names=names) as proxy, environment(http_proxy=proxy.url("user:w%C3%B6rd")):
            attempt = engine.attempt()
            for _ in range(3):
                answer = attempt.http_client().post("http://model.example/v1/chat/completions", json=BODY)
                assert answer.json()["choices"][0]["message"]["content"] == "fine"
            assert attempt.usage().total_tokens == server.ledger.tokens_sent == 18
            assert set(proxy.asked) == {"POST http://model.example/v1/chat/completions"}


def test_a_proxy_may_be_named_without_its_scheme(engine, raw):
    raw.answer = http_answer({"id": "by proxy"})
    with environment(ALL_PROXY=raw.url.removeprefix("http://")):
        assert post(engine, "http://model.example").json()["id"] == "by proxy"


@pytest.mark.parametrize("no_proxy", ["127.0.0.1", "127.0.0.0/8", "*", "other.example, 127.0.0.1:{port}"])
def test_hosts_that_the_environment_exempts_are_asked_directly(engine, no_proxy):
    server = ModelServer("direct")
    with server, environment(ALL_PROXY="127.0.0.1:9", NO_PROXY=no_proxy.format(port=server.start().port)):
        assert post(engine, server.url).is_success


@pytest.mark.parametrize(
    ("host", "port", "no_proxy", "exempted"),
    [
        ("model.example", 80, "example", True),
        ("model.example", 80, ".example", True),
        ("model.example", 80, "*.example", True),
        ("model.example", 80, "MODEL.example.", True),
        ("model.example", 80, "http://model.example", True),
        ("notmodel.example", 80, "model.example", False),
        ("model.example", 80, "model.example:443", False),
        ("model.example", 443, "a, model.example:443", True),
        ("10.1.2.3", 80, "10.0.0.0/8", True),
        ("11.1.2.3", 80, "10.0.0.0/8", False),
        ("::1", 80, "[::1]", True),
        ("::1", 80, "::1", True),
        ("::1", 8000, "[::1]:8000", True),
        ("model.example", 80, "", False),
        ("model.example", 80, " , ", False),
    ],
)
def test_what_no_proxy_names(host, port, no_proxy, exempted):
    assert exempt(host, port, no_proxy) is exempted


def test_a_proxy_that_is_down_is_named_as_the_cause(engine):
    with environment(HTTP_PROXY="http://user:secretword@127.0.0.1:9"):
        with pytest.raises(httpx.ProxyError, match="no connection to the proxy for http://mod") as failed:
            post(engine, "http://model.example", retry=ONCE)
        assert "secretword" not in str(failed.value)


def test_a_proxy_of_another_kind_is_refused_at_once_and_not_bypassed(engine):
    attempt = engine.attempt(FAST)
    with environment(ALL_PROXY="socks5://127.0.0.1:9"), pytest.raises(httpx.ProxyError, match="a socks5 proxy for mod"):
        attempt.http_client().post("http://model.example/v1/chat/completions", json=BODY)
    assert attempt.usage().retried_calls == 0
    llm = {"config_list": [{"model": "m", "api_key": "k", "base_url": "http://model.example/v1"}]}
    with environment(ALL_PROXY="socks5://127.0.0.1:9"):
        error = ParallelAgentRunner(progress=False).run([ParallelTask("t", "x", {"llm_config": llm})])["t"].error
    assert (error.kind, error.retryable) == ("configuration", False)


# Tunnels


def test_https_goes_through_a_tunnel_and_is_still_verified(engine, ca_file):
    with (
        tls_server(SECURE) as port,
        ForwardProxy(user="a:b", names={"model.example:443": ("127.0.0.1", port)}) as proxy,
    ):
        with environment(HTTPS_PROXY=proxy.url("a:b"), SSL_CERT_FILE=ca_file):
            assert post(engine, "https://model.example").json()["id"] == "secure"
        with environment(HTTPS_PROXY=proxy.url("a:b")), pytest.raises(httpx.TransportError, match="certificate verify"):
            post(engine, "https://model.example")
        assert proxy.asked == ["CONNECT model.example:443"] * 2, "a certificate is not asked for again"


def test_a_proxy_may_speak_tls_itself(engine, ca_file):
    with ModelServer("fine") as server:
        names = {"model.example": ("127.0.0.1", server.port)}
        with ForwardProxy(names=names, tls=server_context()) as proxy:
            with environment(HTTP_PROXY=proxy.url(), SSL_CERT_FILE=ca_file):
                assert post(engine, "http://model.example").is_success
            with environment(HTTP_PROXY=proxy.url()), pytest.raises(httpx.TransportError, match="certificate verify"):
                post(engine, "http://model.example")
        assert server.ledger.count == 1


@pytest.mark.parametrize(("refusal", "asked"), [(407, 1), (403, 1), (502, 5)])
def test_a_proxys_no_is_final_and_its_trouble_is_not(engine, refusal, asked):
    with ForwardProxy(refuse=refusal) as proxy, environment(HTTPS_PROXY=proxy.url("user:secretword")):
        with pytest.raises(httpx.ProxyError, match="the proxy refused https://model") as failed:
            post(engine, "https://model.example")
        assert len(proxy.asked) == asked
        assert "secretword" not in str(failed.value)


# Certificates


def test_https_trusts_the_certificates_that_the_environment_names(engine, ca_file):
    with tls_server(SECURE) as port, environment(SSL_CERT_FILE=ca_file):
        for host in ("127.0.0.1", "localhost"):
            assert post(engine, f"https://{host}:{port}").json()["id"] == "secure"


def test_what_the_environment_names_is_read_anew(engine, ca_file):
    with tls_server(SECURE) as port:
        with environment(), pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            post(engine, f"https://127.0.0.1:{port}")
        with environment(SSL_CERT_FILE=ca_file):
            assert post(engine, f"https://127.0.0.1:{port}").is_success


def test_a_certificate_that_is_not_trusted_is_an_error_at_once(engine):
    attempt = engine.attempt(FAST)
    with tls_server(b"") as port, environment(), pytest.raises(httpx.ConnectError, match="certificate verify failed"):
        attempt.http_client().post(f"https://127.0.0.1:{port}/v1/chat/completions", json=BODY)
    assert attempt.usage().retried_calls == 0


def test_a_certificate_for_another_name_is_an_error(engine, ca_file):
    said = r"certificate is not valid for 'other\.example'"
    with tls_server(SECURE) as port, ForwardProxy(names={"other.example:443": ("127.0.0.1", port)}) as proxy:
        proxied = environment(HTTPS_PROXY=proxy.url(), SSL_CERT_FILE=ca_file)
        with proxied, pytest.raises(httpx.TransportError, match=said):
            post(engine, "https://other.example")


def test_certificates_that_cannot_be_read_are_the_callers_error(engine):
    with environment(SSL_CERT_FILE="/nowhere.pem"), pytest.raises(httpx.NetworkError, match="No such file"):
        post(engine, "https://127.0.0.1:9", retry=ONCE)


# A user's own client


def test_a_users_client_brings_its_own_authority_and_certificate(engine):
    with tls_server(SECURE, wants_client=True) as port, environment():
        url = f"https://127.0.0.1:{port}"
        with httpx.Client(verify=client_context(certificate=True)) as own:
            assert post(engine, url, through=own).json()["id"] == "secure"
        with httpx.Client(verify=client_context()) as own, pytest.raises(httpx.TransportError):
            post(engine, url, through=own, retry=ONCE)
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            post(engine, url)


def test_a_users_client_brings_its_own_proxy_whatever_the_environment_says(engine):
    with ModelServer("fine") as server:
        names = {"model.example": ("127.0.0.1", server.port)}
        with ForwardProxy(names=names) as proxy, httpx.Client(proxy=proxy.url()) as own:
            with environment(HTTP_PROXY="http://127.0.0.1:9"):
                assert post(engine, "http://model.example", through=own).is_success
            assert len(proxy.asked) == 1


def test_a_users_client_brings_its_own_transport(engine):
    seen = []

    def handle(request):
        seen.append(request.url.host)
        return httpx.Response(200, json={"id": "mine"})

    with httpx.Client(transport=httpx.MockTransport(handle)) as own:
        assert post(engine, "http://model.example", through=own).json()["id"] == "mine"
    assert seen == ["model.example"]


def test_an_agents_own_client_is_the_one_that_sends():
    """From the configuration to the wire: client certificate, own authority, own proxy."""
    answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "secure"}}
    ], "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}}  # fmt: skip
    with tls_server(http_answer(answer), wants_client=True) as port:
        names = {"model.example:443": ("127.0.0.1", port)}
        with ForwardProxy(names=names) as proxy, environment():
            with httpx.Client(verify=client_context(certificate=True), proxy=proxy.url()) as own:
                entry = {"model": "m", "api_key": "k", "base_url": "https://model.example/v1", "http_client": own}
                tasks = [
                    ParallelTask("config", "x", {"llm_config": LLMConfig(entry)}),
                    ParallelTask("agent", "x", agent=ConversableAgent("a", llm_config=LLMConfig(entry))),
                ]
                results = ParallelAgentRunner(progress=False).run(tasks)
            assert results.ok, results.errors
            assert [result.output for result in results.values()] == ["secure", "secure"]
            assert results.usage.total_tokens == 8
            assert set(proxy.asked) == {"CONNECT model.example:443"}


@pytest.mark.parametrize("live", [True, False])
def test_a_client_that_ag2_would_ignore_is_refused_by_name(live):
    with httpx.Client() as own:
        llm = LLMConfig({"api_type": "ollama", "model": "m", "http_client": own})
        runner = ParallelAgentRunner(progress=False)
        said = 'has an http_client for "ollama", whose client in AG2 ignores it'
        if live:
            made = ConversableAgent("a", llm_config=llm, human_input_mode="NEVER")
            error = runner.run([ParallelTask("t", "x", agent=lambda: made)])["t"].error
            assert error.kind == "configuration"
            assert said in error.message
        else:
            with pytest.raises(ValueError, match=said):
                runner.run([ParallelTask("t", "x", {"llm_config": llm})])


def test_a_closed_port_is_no_proxy_error(engine):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with environment(), pytest.raises(httpx.ConnectError, match="no connection to"):
        post(engine, f"https://127.0.0.1:{port}", retry=ONCE)
