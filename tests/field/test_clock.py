"""F37, F38: wall time may jump, and time in the queue is nobody's fault."""

import json

import pytest
from agents import finished, run, script, served

from ag2_parallel import ParallelTask

pytestmark = pytest.mark.usefixtures("no_threads_left")

JUMPS = """
import datetime, email.utils, json
class FakeWallClock:
    def __init__(self): self.offset, self.real_time, self.real_now = 0.0, time.time, datetime.datetime.now
    def time(self): return self.real_time() + self.offset
clock = FakeWallClock()
real = datetime.datetime
class FakeDatetime(real):
    @classmethod
    def now(cls, tz=None): return real.fromtimestamp(clock.time(), tz)
    @classmethod
    def utcnow(cls): return real.fromtimestamp(clock.time(), datetime.timezone.utc).replace(tzinfo=None)
time.time = clock.time
datetime.datetime = FakeDatetime
import ag2_parallel.assembly, ag2_parallel.core.clock, ag2_parallel.frameworks.failures, ag2_parallel.retry_after
for module in [m for n, m in sys.modules.items() if n.startswith("ag2_parallel") and hasattr(m, "datetime")]:
    if module.datetime is real: module.datetime = FakeDatetime

server = Address(sys.argv[1])
def once(jump):
    clock.offset = 0
    tasks = [ParallelTask("quick", "after 0.6 done", agent=ok(server)),
             ParallelTask("hang", "hang", agent=ok(server), timeout=1),
             ParallelTask("retried", "date 1", agent=ok(server)),
             ParallelTask("past", "date -100000", agent=ok(server)),
             ParallelTask("far", "date 900000", agent=ok(server), timeout=8)]
    threading.Timer(0.3, lambda: setattr(clock, "offset", jump)).start()
    before = time.monotonic()
    results = run(tasks, timeout=20, max_workers=5)
    rows = {name: [str(r.status), r.stop_reason, r.output, r.attempts, r.duration, r.queued, r.waited,
                   r.started_at.isoformat(), r.finished_at.isoformat(), r.error and r.error.retry_after]
            for name, r in results.items()}
    print(json.dumps({"took": time.monotonic() - before, "rows": rows, "retries": results.usage.retried_calls}), flush=True)
run([ParallelTask("warm", "hello", agent=ok(server))])
for jump in (0, -3600, 86400): once(jump)
"""


def test_jumps_of_the_wall_clock_change_nothing(line, tmp_path):
    """F37: the process's `time.time` and `datetime.now` jump while a run is open; the monotonic clock is real."""
    from datetime import UTC, datetime, timedelta
    from email.utils import format_datetime

    from agents import by_prompt

    from ag2_parallel.testing import Fault

    refused, offset = set(), [0]

    def reply(request):
        word, _, rest = request.last_text.partition(" ")
        if word != "date":
            return by_prompt(request)
        if (rest, offset[0]) in refused:
            return "at last"
        refused.add((rest, offset[0]))
        return Fault.status(
            429, retry_after=format_datetime(datetime.now(UTC) + timedelta(seconds=int(rest)), usegmt=True)
        )

    with served(reply) as server:
        process = script(tmp_path, JUMPS, server.base_url, line=line)
        rows = []
        for line in process.stdout:
            rows.append(json.loads(line))
            offset[0] += 1
        _, err = finished(process)
    assert err == ""
    plain, back, forth = rows
    for each in rows:
        assert {n: row[0] for n, row in each["rows"].items()} == {
            "quick": "succeeded",
            "hang": "timed_out",
            "retried": "succeeded",
            "past": "succeeded",
            "far": "failed",
        }
        assert each["rows"]["far"][9] <= 7 * 86400
        assert each["rows"]["retried"][3] == 1
        for name, (_, _, _, _, duration, queued, waited, started, ended, _) in each["rows"].items():
            assert duration >= 0 <= queued, name
            assert 0 <= waited <= duration, name
            assert datetime.fromisoformat(started).utcoffset() == timedelta(0)
            assert datetime.fromisoformat(ended).utcoffset() == timedelta(0)
        assert 0.6 <= each["rows"]["quick"][4] < 5
        assert 0.9 <= each["rows"]["hang"][4] < 5
        assert each["rows"]["past"][4] < 5
        assert each["rows"]["far"][4] < 8
    assert [row["retries"] for row in rows] == [2, 2, 2]
    assert max(back["took"], forth["took"]) < plain["took"] + 5


@pytest.mark.parametrize("form", ["factory", "template", "config"])
def test_time_in_the_queue_does_not_count(line, form):
    """F38."""
    with served(latency=0.1) as server:
        agent = {"factory": {"agent": line.ok(server)}, "template": {"agent": line.assistant(server)}}
        made = agent.get(form) or {"agent_config": line.agent_config(server)}
        results = run([ParallelTask(f"t{i}", "x", **made) for i in range(24)], max_workers=2, timeout=1)
    assert results.ok
    assert results["t23"].queued > 1 > results["t23"].duration
