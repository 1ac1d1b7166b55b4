"""F03, F08: nothing of AG2 1.x outlives its task, and loops come and go unnoticed."""

import pytest
from agents import finished, script, served

pytestmark = pytest.mark.usefixtures("no_threads_left")

NOTHING_LEFT = """
import gc, os
from ag2_parallel.teams import WorkflowTeam
server = Address(sys.argv[1])
def blocking() -> str: time.sleep(5.5); return "late"
async def waiting() -> str: await asyncio.sleep(60); return "late"
def forms(ctx): return Routed(ctx, server)
def boss(ctx): return assistant(forms(ctx), "boss", tools=[assistant(forms(ctx), "sub").as_tool(description="d")])
agents = {"hang": ok(server), "hang in a team": lambda ctx: team(forms(ctx)), "hang template": assistant(server),
          "call": agent_calling(server, waiting), "call blocking": agent_calling(server, blocking)}
def tasks(): return [ParallelTask(n, n.split()[0], agent=a) for n, a in agents.items()] + [ParallelTask("fine", "x", agent=boss, timeout=20)]
run([ParallelTask("warm", "x", agent=ok(server))])
before = set(threading.enumerate())
results = run(tasks(), timeout=2.5, grace=1, max_workers=8)
print(statuses(results), {n: r.ended for n, r in results.items() if r.ended == "abandoned"}, results.metrics["abandoned"])
time.sleep(3)
gc.collect()
print([t.name for t in threading.enumerate() if t not in before and t.is_alive()])
"""


def test_a_timed_out_ask_leaves_nothing_behind(ag2, tmp_path):
    """No task, no thread beyond the counted abandoned one, no request at the server, nothing on stderr."""
    strict = ("-W", "error", "-W", "ignore::DeprecationWarning")
    with served() as server:
        out, err = finished(script(tmp_path, NOTHING_LEFT, server.base_url, line=ag2, warnings=strict))
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 0 and ledger.connections == 0)
    first, threads = out.splitlines()
    assert first == f"{['timed_out'] * 5 + ['succeeded']} {{'call blocking': 'abandoned'}} 1"
    assert threads == "[]"
    assert err == ""


LOOPS = """
import gc, httpx2
server = Address(sys.argv[1])
client = httpx2.AsyncClient()
for _ in range(3):
    shared = config(server, http_client=client)
    template = Agent("a", config=shared)
    tasks = [ParallelTask(f"t{i}", "x", agent=template if i % 2 else lambda: Agent("a", config=shared)) for i in range(8)]
    results = ParallelAgentRunner(max_workers=4, progress=False).run(tasks)
    assert results.ok, results.errors
print("fine")
"""


def test_a_client_of_the_users_serves_one_run_after_another(ag2, tmp_path):
    """F08: no loop that is closed, no client that is not, nothing on stderr."""
    with served() as server:
        out, err = finished(script(tmp_path, LOOPS, server.base_url, line=ag2))
    assert out == "fine\n"
    assert err == ""
