"""A run over two nodes of a cluster on the loopback address, one of which is killed in its middle. Run as a program."""

import contextlib
import json
import signal
import sys
import threading
import time
from pathlib import Path

import psutil
from ray._private import ray_constants
from ray.cluster_utils import Cluster

from ag2_parallel import ParallelAgentRunner, ParallelTask, RayBackend

STORE = 80 * 1024 * 1024


def works(ctx):
    """Say on which node, and wait for a file that tells that it may end."""
    from ray import get_runtime_context

    ctx.report(get_runtime_context().get_node_id())
    while not Path(ctx.metadata).exists():
        ctx.check()
        time.sleep(0.02)
    return ctx.name


class Watch:
    """Kills a node when tasks run on both; then the others may end."""

    def __init__(self, node, may):
        self.node = node
        self.may = Path(may)
        self.on = {}
        self.killed = threading.Event()

    def __call__(self, event):
        if event.type != "TaskReported":
            return
        self.on.setdefault(event.message, set()).add(event.task)
        if len(self.on) == 2 and sum(map(len, self.on.values())) == 8 and not self.killed.is_set():
            self.killed.set()
            kill(self.node)
            self.may.touch()


def kill(node):
    raylet = psutil.Process(node.all_processes[ray_constants.PROCESS_TYPE_RAYLET][0].process.pid)
    for each in (raylet, *raylet.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            each.send_signal(signal.SIGKILL)


def main(folder, client_port=None):
    """With the port of a server for clients, the run is a client of the cluster."""
    here = {"num_cpus": 1, "object_store_memory": STORE, "node_ip_address": "127.0.0.1"}
    client = {} if client_port is None else {"ray_client_server_port": int(client_port)}
    cluster = Cluster(initialize_head=True, head_node_args={**here, "include_dashboard": False, **client})
    first = cluster.add_node(**here, resources={"agents": 4})
    cluster.add_node(**here, resources={"agents": 4})
    watch = Watch(first, Path(folder, "may"))
    backend = RayBackend(
        address=f"ray://127.0.0.1:{client_port}" if client_port else cluster.address, actors=2, resources={"agents": 1}
    )
    try:
        with ParallelAgentRunner(8, backend=backend, progress=False, observers=[watch]) as runner:
            tasks = [ParallelTask(f"t{i}", run=works, metadata=str(watch.may)) for i in range(12)]
            results = runner.run(tasks)
    finally:
        cluster.shutdown()
    log = {name: [record.ended for record in result.attempt_log] for name, result in results.items()}
    why = [record.error.message for result in results.values() for record in result.attempt_log if record.error]
    lost = sorted(watch.on[first.node_id])
    print(json.dumps({"outputs": [r.output for r in results.values()], "log": log, "why": why, "lost": lost}))


if __name__ == "__main__":
    main(*sys.argv[1:])
