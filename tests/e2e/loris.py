"""Slow clients: many connections that never send a complete request.

    loris.py PORT COUNT SECONDS KIND

Opens COUNT connections to PORT and sends a byte on each every SECONDS; it reopens a connection that
was closed. KIND says what they send: "head" or "body" of a bind, "hello" of a TLS handshake, or
"silent". Prints "up" once all are connected; when it is told to end, prints how often a connection was
closed. It is a process of its own, so that it takes no CPU time from the measuring process.
"""

from __future__ import annotations

import signal
import socket
import sys
import time

HEAD = b"POST /gpushare-scheduler/bind HTTP/1.1\r\nHost: x\r\n"
STARTS = {
    "head": HEAD,
    "body": HEAD + b"Content-Length: 100000\r\n\r\n{",
    "hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "silent": b"",
}
MORE = {"head": b"X", "body": b" ", "hello": b"\x00", "silent": b""}


class Herd:
    """All connections."""

    def __init__(self, port: int, count: int, kind: str) -> None:
        self.port, self.kind = port, kind
        self.cut = 0
        self.all = [self.open() for _ in range(count)]

    def open(self) -> socket.socket:
        """A new connection."""
        one = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        one.setblocking(False)
        if STARTS[self.kind]:
            one.send(STARTS[self.kind])
        return one

    def step(self, index: int) -> None:
        """Sends one more byte on one of them."""
        one = self.all[index]
        try:
            gone = not one.recv(4096)
        except BlockingIOError:
            gone = False
        except OSError:
            gone = True
        try:
            if not gone and MORE[self.kind]:
                one.send(MORE[self.kind])
        except OSError:
            gone = True
        if gone:
            one.close()
            self.cut += 1
            self.all[index] = self.open()


def main() -> None:
    """See the top of this file."""
    port, count, seconds, kind = sys.argv[1:]
    ended = False

    def end(*_: object) -> None:
        nonlocal ended
        ended = True

    signal.signal(signal.SIGTERM, end)
    herd = Herd(int(port), int(count), kind)
    print("up", flush=True)
    while not ended:
        for index in range(len(herd.all)):
            if ended:
                break
            herd.step(index)
            time.sleep(float(seconds) / len(herd.all))
    print(herd.cut, flush=True)


if __name__ == "__main__":
    main()
