"""One end of the wire."""

import socket
import threading

from ag2_parallel.backends import wire
from ag2_parallel.backends.frames import HEAD, unpacked
from ag2_parallel.backends.link import Link

MB = 1_000_000


def test_large_messages_that_wait_for_each_other_are_not_put_into_one_frame():
    ours, theirs = socket.socketpair()
    threads = []

    def spawn(work):
        threads.append(threading.Thread(target=work))

    link = Link(ours, spawn)  # its thread has yet to start, so that all of these wait
    messages = [wire.Start(wire.Key("r", i, 1), bytes(10 * MB), None, watched=False, recorded=False) for i in range(5)]
    for each in messages:
        link.send(each)
    link.close()
    threads[0].start()
    came, sizes = [], []
    with theirs, theirs.makefile("rb") as reader:
        while head := reader.read(HEAD.size):
            (size,) = HEAD.unpack(head)
            sizes.append(size)
            came += unpacked(reader.read(size))
    threads[0].join()
    assert came == messages
    assert max(sizes) < 20 * MB
