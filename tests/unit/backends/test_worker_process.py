"""What becomes of a worker process that speaks rubbish, hangs up, or cannot be started: its end is told once."""

import socket
import threading

import pytest

from ag2_parallel.backends import wire
from ag2_parallel.backends.frames import HEAD, packed, read_frame
from ag2_parallel.backends.worker_process import WorkerProcess
from ag2_parallel.core.engine import Engine

KEY = wire.Key("run", 0, 1)


@pytest.fixture
def engine():
    engine = Engine()
    yield engine
    engine.close()


class Story:
    """A worker process whose other end is played by a function."""

    def __init__(self, engine, play, exited="ended with exit code 0"):
        self.heard = []
        self.died = []
        self.over = threading.Event()
        self._play = play
        self._exited = exited
        self.worker = WorkerProcess(
            self._start,
            loop=engine.loop,
            post=engine.post,
            spawn=lambda job: threading.Thread(target=job, daemon=True).start(),
            heard=lambda worker, message, inside: self.heard.append(message),
            died=self._died,
        )

    def _died(self, worker, why):
        self.died.append(why)
        self.over.set()

    def _start(self, sock, exited):
        mine = sock.dup()

        def live():
            with mine:
                self._play(mine)
            exited(self._exited)

        threading.Thread(target=live, daemon=True).start()
        return lambda: None

    def told(self):
        assert self.over.wait(10)
        return self.died


def test_messages_are_heard_and_the_end_is_told_with_the_exit_code(engine):
    def play(sock):
        reader = sock.makefile("rb")
        (hello,) = read_frame(reader.read)
        assert isinstance(hello, wire.Hello)
        sock.sendall(packed([wire.Ready(wire.VERSION, 1), wire.Alive(7)]))
        reader.close()

    story = Story(engine, play, "ended with exit code 3")
    assert story.told() == ["ended with exit code 3"]
    assert [type(each).__name__ for each in story.heard] == ["Ready", "Alive"]


@pytest.mark.parametrize("rubbish", [b"GET / HTTP/1.1\r\n\r\n" * 9, HEAD.pack(4) + b"abcd"])
def test_rubbish_is_the_end_of_it(engine, rubbish):
    story = Story(engine, lambda sock: sock.sendall(rubbish))
    (why,) = story.told()
    assert why.startswith("said what nobody understands")


@pytest.mark.parametrize("half", [HEAD.pack(100) + b"breaks off", b"\x00"])
def test_one_that_dies_in_the_middle_of_a_word(engine, half):
    assert Story(engine, lambda sock: sock.sendall(half), "was killed by signal 9").told() == ["was killed by signal 9"]


def test_one_that_hangs_up_and_lives_on_is_ended(engine):
    lives_on = threading.Event()

    def play(sock):
        sock.shutdown(socket.SHUT_RDWR)
        lives_on.wait(10)

    story = Story(engine, play)
    assert story.told() == ["hung up"]
    lives_on.set()


def test_one_that_cannot_be_started(engine):
    def refuses(_sock, _exited):
        raise OSError("no more processes")

    over = threading.Event()
    died = []

    def told(_worker, why):
        died.append(why)
        over.set()

    WorkerProcess(
        refuses,
        loop=engine.loop,
        post=engine.post,
        spawn=lambda job: threading.Thread(target=job, daemon=True).start(),
        heard=lambda *_: None,
        died=told,
    )
    assert over.wait(10)
    assert died == ["could not be started (no more processes)"]


def test_a_message_that_cannot_be_dealt_with_ends_the_process(engine, caplog):
    def play(sock):
        sock.sendall(packed([wire.LifeSign(KEY)]))
        sock.recv(1 << 20)
        while sock.recv(1 << 20):
            pass

    story = Story(engine, play)
    story.worker._heard = lambda *_: 1 / 0
    (why,) = story.told()
    assert "could not be dealt with" in why
    assert "please report this" in caplog.text
