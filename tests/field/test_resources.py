"""F18, F39: descriptors, connections and places at the server are what they should be."""

import pytest
from agents import Routed, finished, run, runner, script, served

from ag2_parallel import ParallelTask

pytestmark = pytest.mark.usefixtures("no_threads_left")

MANY = """
import gc, os
server = Address(sys.argv[1])
def descriptors(): return len(os.listdir("/proc/self/fd"))
template = assistant(server)
own_client = lambda: assistant(server)  # with a TLS set-up of its own
agents = [own_client, template, ok(server), template, ok(server)]
def tasks():
    for i in range(400):
        if i % 8 == 7: yield ParallelTask(f"t{i}", "hello", agent_config(server))
        else: yield ParallelTask(f"t{i}", "status 400" if i % 50 == 0 else "hello", agent=agents[0 if i % 20 == 0 else 1 + i % 4])
run(list(tasks())[:8], max_workers=4)
gc.collect()
base, threads = descriptors(), threading.active_count()
for _ in range(3):
    results = run(list(tasks()), max_workers=16)
    print(results)
    assert descriptors() - base < 20 + 2 * 16, "connections outlive their run"
gc.collect()
print(descriptors() - base, threading.active_count() - threads)
"""


def test_descriptors_and_connections_go_back(line, tmp_path):
    """F18: 1,200 agents of every form, some of which fail, under `-W error::ResourceWarning`."""
    with served() as server:
        out, err = finished(script(tmp_path, MANY, server.base_url, line=line))
        assert server.ledger.wait_for(lambda ledger: ledger.connections == 0)
        assert server.ledger.count >= 1200
        assert server.ledger.peak_in_flight <= 16
    *runs, last = out.splitlines()
    assert runs == ["RunResults(392 succeeded, 8 failed)"] * 3
    growth, threads = map(int, last.split())
    assert growth < 20
    assert threads <= 1
    assert err == ""


def test_connections_end_with_the_run_and_are_kept_in_a_with_block(line):
    """F18."""
    with served() as server:
        tasks = [ParallelTask(f"t{i}", "hello", agent=line.assistant(server)) for i in range(8)]
        assert run(tasks, max_workers=4).ok
        assert server.ledger.wait_for(lambda ledger: ledger.connections == 0)
        with runner(max_workers=4) as kept:
            assert kept.run(tasks).ok
            open_ones = server.ledger.connections
            assert 0 < open_ones <= 4
            server.ledger.reset()
            assert kept.run(tasks).ok
            assert server.ledger.peak_connections <= 4
        assert server.ledger.wait_for(lambda ledger: ledger.connections == 0)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("form", ["alone", "team", "template"])
def test_never_more_requests_at_once_than_workers(line, form, workers):
    """F39."""
    with served(latency=0.03) as server:
        agent = {
            "alone": line.ok(server),
            "team": lambda ctx: line.team(Routed(ctx, server), 3),
            "template": line.assistant(server),
        }[form]
        tasks = [ParallelTask(f"t{i}", f"{i}", agent=agent, max_turns=3) for i in range(workers * 6)]
        assert run(tasks, max_workers=workers).ok
        assert server.ledger.peak_in_flight == workers
