"""Attempts in worker processes: who runs where, and what becomes of them when a process ends.

Theory of operation
===================

The pool has up to `workers` ordinary processes, started as there is something to run; an attempt goes to the
one with the fewest. A process is left alone (it drains) once it has had `max_tasks`, has nearly `max_memory`, or
holds an attempt that does not stop; another takes its place. It ends when the last attempt in it has.

When a process dies, whoever was in it may have been what killed it. So each of them runs again alone in
a process, where the guilty one takes nobody along; with a second process it is given up.

    start ─► ordinary process ─► Ended
                  │ dies: lost
                  └─► suspects ─► process of its own ─► Ended
                                       │ dies
                                       └─► failed, `worker_crashed`

A stopped attempt that does not end when that is insisted on is stuck: its process is killed as soon as nobody else is in
it, or at once where its heartbeat is silent, because somebody in it holds the interpreter.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from ag2_parallel.backends import wire
from ag2_parallel.backends.ahead import Ahead
from ag2_parallel.backends.current_starter import CurrentStarter
from ag2_parallel.backends.permits import PERMIT_MESSAGES, Permits
from ag2_parallel.backends.worker_process import Post, WorkerProcess

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from ag2_parallel.backend_options import ProcessBackend, RayBackend
    from ag2_parallel.backends.flights import Flight
    from ag2_parallel.backends.permits import Office
    from ag2_parallel.backends.process_run import ProcessRun
    from ag2_parallel.backends.starting import Starter

_LOOK = 0.25
"""Seconds between two looks at heartbeats."""

_END_TIME = 3.0
"""Seconds that processes have to end by themselves when the pool closes."""


class ProcessPool:
    """The worker processes of a runner. On the loop, where nothing else is said."""

    def __init__(
        self,
        policy: ProcessBackend | RayBackend,
        office: Office,
        starter: Callable[[bool], Starter],
        *,
        loop: asyncio.AbstractEventLoop,
        post: Post,
        spawn: Callable[[Callable[[], None]], None],
    ) -> None:
        """Nothing starts yet; `starter` makes what will start processes, with AG2 Classic loaded or not."""
        self.policy = policy
        self._starter = CurrentStarter(starter, lambda: post(self._renew))
        self.loop = loop
        self._permits = Permits(office)
        self.post = post
        self._spawn = spawn
        self._runs: dict[str, ProcessRun] = {}
        self._leaving: dict[str, ProcessRun] = {}
        self._workers: list[WorkerProcess] = []
        self._suspects: deque[Flight] = deque()
        self._opening = threading.Lock()
        self._opened = False
        self._ahead: Ahead | None = None
        self._looking = False
        self._slots = 1
        self._ended = threading.Event()

    # ---- from other threads

    def open(self, *, preload: bool) -> None:
        """Get ready to start processes; blocking. `preload` AG2 Classic, now if not before.

        Where starting takes its time, they are started now.
        """
        with self._opening:
            if self.is_open(preload=preload):
                return
            self._starter.open(preload=preload)
            if self._starter.elsewhere:
                self._ahead = Ahead()
                self.post(self._start_ahead)
                self._ahead.wait()
            self._opened = True

    def is_open(self, *, preload: bool) -> bool:
        """Whether processes can be started, and have AG2 Classic loaded."""
        return self._opened and self._starter.is_open(preload=preload)

    def _start_ahead(self) -> None:
        assert self._ahead is not None
        missing = range(self._size - len(self._open))
        self._ahead.expect(len([self._new() for _ in missing]))

    def _renew(self) -> None:
        for each in list(self._workers):
            each.draining = True
            if not each.flights:
                each.quit()

    def close(self) -> None:
        """Let all processes end; they are killed after some seconds. Blocking."""
        self._starter.closing()
        if self._ahead is not None:
            self._ahead.give_up()
        self._ended.clear()
        self.post(self._quit)
        self._ended.wait(_END_TIME)
        self.post(self._kill_all)
        self._starter.close()

    def _kill_all(self) -> None:
        for each in self._workers:
            each.kill("was not needed any more")

    def _quit(self) -> None:
        for each in self._workers:
            each.quit()
        if not self._workers:
            self._ended.set()

    # ---- runs

    def enter(self, run: ProcessRun, slots: int) -> None:
        """A run begins, of at most `slots` tasks at once."""
        self._runs[run.run_id] = run
        self._slots = max(self._slots, slots)

    def leave(self, run: ProcessRun) -> int:
        """A run is over; returns how many processes close what it had open."""
        self._leaving[run.run_id] = run
        self._runs.pop(run.run_id, None)
        told = [each for each in self._workers if run.run_id in each.runs]
        for each in told:
            each.runs.discard(run.run_id)
            each.send(wire.CloseRun(run.run_id))
        return len(told)

    def left(self, run: ProcessRun) -> None:
        """What a run had open is closed."""
        self._leaving.pop(run.run_id, None)

    # ---- who runs where

    @property
    def _open(self) -> list[WorkerProcess]:
        return [each for each in self._workers if not each.draining and not each.alone]

    @property
    def _size(self) -> int:
        return self.policy.workers_for(self._slots, self._starter.places)

    def place(self, flight: Flight, *, alone: bool) -> None:
        """Find a process for an attempt; `alone` for one that may have killed one."""
        if not alone:
            self._run_in(self._ordinary(), flight)
            return
        self._suspects.append(flight)
        self._place_suspects()

    def _ordinary(self) -> WorkerProcess:
        there = self._open
        best = min(there, key=lambda each: (each.late, len(each.flights)), default=None)
        if best is None or (best.flights and len(there) < self._size):
            new = self._new()
            if best is None or best.late or not new.late:
                return new
        return best

    def _place_suspects(self) -> None:
        while self._suspects:
            worker = next(
                (each for each in self._workers if each.alone and not each.flights and not each.draining), None
            )
            if worker is None:
                worker = next((each for each in self._open if not each.flights), None)
            if worker is None:
                alone = sum(each.alone for each in self._workers)
                if alone >= self._size or (alone and self._is_full()):
                    return
                worker = self._new()
            worker.alone = True
            self._run_in(worker, self._suspects.popleft())

    def _is_full(self) -> bool:
        """Whether there is no room for one more: it would wait for a place while others have nothing to do."""
        return self._starter.places is not None and len(self._workers) >= self._size

    def _new(self) -> WorkerProcess:
        worker = WorkerProcess(
            self._starter.start, loop=self.loop, post=self.post, spawn=self._spawn, heard=self._heard, died=self._died,
            elsewhere=self._starter.elsewhere,
        )  # fmt: skip
        self._workers.append(worker)
        if not self._looking:
            self._looking = True
            self.loop.call_later(_LOOK, self._look)
        return worker

    def _run_in(self, worker: WorkerProcess, flight: Flight) -> None:
        run = self._runs[flight.key.run]
        worker.flights[flight.key] = flight
        worker.started += 1
        worker.draining = worker.draining or worker.started == self.policy.max_tasks
        if run.run_id not in worker.runs:
            worker.runs.add(run.run_id)
            worker.send(run.opening)
        worker.send(run.order_for(flight))

    def tell(self, flight: Flight, message: object) -> bool:
        """Send the process of an attempt a message; False where it is in none."""
        worker = self._worker_of(flight)
        if worker is None:
            return False
        worker.send(message)
        return True

    def tell_all(self, run: str, message: object) -> None:
        """Send every process that knows a run a message."""
        for each in self._workers:
            if run in each.runs:
                each.send(message)

    def withdraw(self, flight: Flight) -> bool:
        """Take back an attempt that waits for a process of its own; False where it has one."""
        if flight not in self._suspects:
            return False
        self._suspects.remove(flight)
        return True

    def gone(self, flight: Flight) -> None:
        """An attempt could not be sent to its process."""
        worker = self._worker_of(flight)
        if worker is not None:
            del worker.flights[flight.key]
            self._emptier(worker)

    def _worker_of(self, flight: Flight) -> WorkerProcess | None:
        return next((each for each in self._workers if flight.key in each.flights), None)

    # ---- what comes from them

    def _heard(self, worker: WorkerProcess, message: Any, inside: Any) -> None:
        match message:
            case wire.Alive():
                worker.has_memory(message.memory, self.policy.max_memory)
            case wire.Ready():
                self._ready(worker, message)
            case wire.Ended():
                self._flight_ended(worker, message, inside)
            case wire.Logged():
                extra = {"task": message.task, "attempt": message.attempt}
                logging.getLogger(message.logger).log(message.level, "%s", message.message, extra=extra)
            case wire.RunClosed():
                if message.run in self._leaving:
                    self._leaving[message.run].closed_one()
            case _:
                self._about_a_run(worker, message, inside)

    def _ready(self, worker: WorkerProcess, message: wire.Ready) -> None:
        if message.version != wire.VERSION:
            worker.kill("is of another version of ag2-parallel")
            return
        worker.ready = True
        if self._ahead is not None:
            self._ahead.came()

    def _about_a_run(self, worker: WorkerProcess, message: Any, inside: Any) -> None:
        if isinstance(message, PERMIT_MESSAGES):
            self._permits.heard(worker, message, self._runs)
            return
        name = message.key.run if hasattr(message, "key") else getattr(message, "run", "")
        run = self._runs.get(name)
        if run is not None:  # one that is over may have had its last words on their way
            run.heard(worker, message, inside)

    def _flight_ended(self, worker: WorkerProcess, message: wire.Ended, inside: Any) -> None:
        flight = worker.flights.pop(message.progress.key, None)
        run = self._runs.get(message.progress.key.run)
        if flight is not None and run is not None:
            run.ended(flight, message, inside)
        self._emptier(worker)

    def _emptier(self, worker: WorkerProcess) -> None:
        """One attempt less runs in a process."""
        if worker.flights:
            self._kill_if_stuck(worker)
        elif worker.draining:
            worker.quit()
        elif worker.alone:
            self._place_suspects()
            if not worker.flights:
                worker.alone = False
                if len(self._open) > self._size:
                    worker.quit()

    # ---- what goes wrong

    def look_after(self, flight: Flight) -> None:
        """An attempt that was insisted on has not ended."""
        worker = self._worker_of(flight)
        if worker is not None:
            flight.stuck = worker.draining = True
            self._kill_if_stuck(worker)

    def _kill_if_stuck(self, worker: WorkerProcess) -> None:
        stuck = [flight for flight in worker.flights.values() if flight.stuck]
        if stuck and (len(stuck) == len(worker.flights) or worker.silent):
            worker.kill(f'was killed because task "{stuck[0].name}" in it did not stop')

    def _look(self) -> None:
        for each in list(self._workers):
            self._kill_if_stuck(each)
        self._looking = bool(self._workers)
        if self._looking:
            self.loop.call_later(_LOOK, self._look)

    def _died(self, worker: WorkerProcess, why: str) -> None:
        self._workers.remove(worker)
        self._permits.lost(worker)
        if self._ahead is not None and not worker.ready:
            self._ahead.failed(why)
        flights = list(worker.flights.values())
        for flight in flights:
            run = self._runs.get(flight.key.run)
            if run is not None:
                run.lost(flight, why, others=len(flights) - 1, began=not worker.late)
        for each in self._runs.values():
            if each.run_id in worker.runs:
                each.closed_one()
        self._place_suspects()
        if not self._workers:
            self._ended.set()
