"""The ledger says exactly what the server saw."""

import asyncio
import threading

import aiohttp
import httpx
import pytest

from ag2_parallel.testing import Fault, Ledger, ModelServer, Reply


def body(text="hello", **fields):
    return {"model": "m", "messages": [{"role": "user", "content": text}], **fields}


def post(server, text="hello", **options):
    return httpx.post(f"{server.base_url}/chat/completions", json=body(text), trust_env=False, **options)


def test_it_notes_each_request():
    with ModelServer(Reply("x", usage=(3, 1))) as server:
        post(server, "first")
        server.fail_next(Fault.status(500))
        post(server, "second")
        first, second = server.ledger.requests
        assert (first.number, first.model, first.text, first.status, first.http_status) == (
            0,
            "m",
            "first",
            "answered",
            200,
        )
        assert first.body == body("first")
        assert first.usage == (3, 1)
        assert first.at <= first.finished_at <= second.at
        assert (second.number, second.text, second.status, second.usage) == (1, "second", "fault", None)
        assert (server.ledger.count, server.ledger.answered, server.ledger.tokens_sent) == (2, 1, 4)
        assert server.ledger.peak_in_flight == server.ledger.peak_connections == 1


def test_a_client_that_goes_away_while_the_server_waits_is_cut_once():
    with ModelServer(latency=60) as server:
        with pytest.raises(httpx.ReadTimeout):
            post(server, timeout=0.2)
        assert server.ledger.wait_for(lambda ledger: ledger.cut == 1)
        (seen,) = server.ledger.requests
        assert (seen.status, seen.http_status, seen.usage) == ("cut", None, None)
        assert (server.ledger.in_flight, server.ledger.answered, server.ledger.faults) == (0, 0, 0)
        assert server.ledger.wait_for(lambda ledger: ledger.connections == 0)


def test_a_client_that_goes_away_while_the_reply_function_blocks_is_cut():
    go = threading.Event()
    with ModelServer(lambda request: str(go.wait(30))) as server:
        with pytest.raises(httpx.ReadTimeout):
            post(server, timeout=0.2)
        assert server.ledger.wait_for(lambda ledger: ledger.cut == 1)
        go.set()
        assert post(server).status_code == 200
        assert (server.ledger.cut, server.ledger.answered) == (1, 1)


@pytest.mark.parametrize("words", [30, 60_000])
def test_a_stream_left_in_the_middle_is_cut_and_its_tokens_are_not_counted(words):
    reply = Reply("word " * words, chunk_delay=0.05 if words == 30 else 0.0)
    with ModelServer(reply) as server:
        url, fields = f"{server.base_url}/chat/completions", {"stream": True, "stream_options": {"include_usage": True}}
        with httpx.stream("POST", url, json=body(**fields), trust_env=False) as response:
            next(response.iter_bytes())
        assert server.ledger.wait_for(lambda ledger: ledger.cut == 1)
        assert (server.ledger.answered, server.ledger.tokens_sent) == (0, 0)
        assert server.ledger.requests[0].usage is None


def test_closing_the_server_ends_requests_as_faults():
    with ModelServer(latency=60) as server:
        errors = []

        def ask():
            try:
                post(server, timeout=30)
            except httpx.TransportError as error:
                errors.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 1)
        server.close()
        asking.join(20)
        assert len(errors) == 1
        assert server.ledger.requests[0].status == "fault"
        assert (server.ledger.cut, server.ledger.in_flight, server.ledger.connections) == (0, 0, 0)


def test_a_thousand_requests_at_once():
    clients = 1000

    async def ask_all(server):
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

            async def ask(number):
                url = f"{server.base_url}/chat/completions"
                async with session.post(url, json=body(f"n{number}")) as response:
                    return (await response.json())["choices"][0]["message"]["content"]

            asking = asyncio.gather(*map(ask, range(clients)))
            everybody = await asyncio.to_thread(server.ledger.wait_for, lambda ledger: ledger.in_flight == clients, 40)
            assert everybody, server.ledger.summary()
            loops.pop().call_soon_threadsafe(go.set)
            return await asking

    go, loops = asyncio.Event(), set()

    async def reply(request):
        loops.add(asyncio.get_running_loop())
        await go.wait()
        return f"echo: {request.last_text}"

    with ModelServer(reply) as server:
        answers = asyncio.run(ask_all(server))
        assert answers == [f"echo: n{number}" for number in range(clients)]
        ledger = server.ledger
        assert (ledger.peak_in_flight, ledger.peak_connections, ledger.answered) == (clients, clients, clients)
        assert ledger.tokens_sent == 3 * clients
        assert [seen.number for seen in ledger.requests] == list(range(clients))


def test_the_counts_are_served_over_http_too():
    with ModelServer("one two") as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        client.post("/v1/chat/completions", json=body())
        counts = client.get("/ledger").json()
        assert counts == server.ledger.summary()
        assert (counts["count"], counts["tokens_sent"], counts["peak_in_flight"], counts["cut"]) == (1, 3, 1, 0)
        assert client.post("/ledger/reset").status_code == 200
        assert client.get("/ledger").json()["count"] == 0


def test_reset_forgets_requests_in_flight_and_keeps_open_connections():
    go = threading.Event()
    with ModelServer(lambda request: str(go.wait(30))) as server:
        asking = threading.Thread(target=lambda: post(server, timeout=30))
        asking.start()
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 1)
        server.ledger.reset()
        assert (server.ledger.count, server.ledger.in_flight, server.ledger.peak_connections) == (0, 0, 1)
        go.set()
        asking.join(20)
        assert (server.ledger.count, server.ledger.answered, server.ledger.in_flight) == (0, 0, 0)
        post(server)
        assert [seen.number for seen in server.ledger.requests] == [0]


def test_wait_for_gives_up():
    assert not Ledger().wait_for(lambda ledger: ledger.count, timeout=0.01)
