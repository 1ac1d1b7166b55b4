"""The process that forks workers goes on where the system has no room for one more."""

import json
import socket
import subprocess
import sys

PROGRAM = """
import os, socket, sys
from ag2_parallel.backends.fork_server import ForkServer

count = 0

def fork():
    global count
    count += 1
    if count == 2:
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return os.fork()

ForkServer(socket.socket(fileno=int(sys.argv[1])), os.getppid(), lambda sock: sock.sendall(sock.recv(1)), fork).serve()
"""


def test_no_room_for_one_more():
    control, theirs = socket.socketpair()
    with control, control.makefile("rb") as lines, theirs:
        arguments = [sys.executable, "-c", PROGRAM, str(theirs.fileno())]
        with subprocess.Popen(arguments, pass_fds=[theirs.fileno()]) as server:
            theirs.close()

            def told():
                return json.loads(lines.readline())

            def worker():
                ours, its = socket.socketpair()
                with its:
                    socket.send_fds(control, [b"F"], [its.fileno()])
                ours.settimeout(20)
                return ours

            assert told() == {"ready": True}
            with worker() as first:
                assert "pid" in told()
                with worker() as second:
                    assert "temporarily unavailable" in told()["refused"]
                    assert second.recv(1) == b""
                with worker():
                    assert "pid" in told()
                first.sendall(b"x")
                assert first.recv(1) == b"x"  # it is still there
            control.shutdown(socket.SHUT_RDWR)
            assert server.wait(20) == 0
