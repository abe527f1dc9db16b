"""Tries what docs/threat-model.md says of hostile pods, nodes and neighbours."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

from bench import Lab, agree, check, scenario
from daemon import Daemon
from fake_lab import FakeLab, fake_lab
from truth import ASSIGNED, ASSUME_TIME, BY_HAND, IDX

from cluster import GPU_MEM

from .input import asks, goes_on

Json = Any

# Invalid card indices.
CARDS = (
    "-1", "+ 1", "", "1 1", "+-1", "01x", "0x1", "1.0", "1e0", "one", "-1,x", "[0]", "null", "\0", "1\0",
    "\uff11", "\u0661", "\u202e1", "2", "1023", "2147483647", "2147483648", "4294967296",
    "18446744073709551616", "9" * 4000, "\ud7ff" * 1000, '"}]}', "\n", "\u2028",
)  # fmt: skip
TIMES = ("4611686018427387904", "9223372036854775807", "18446744073709551615", "-1", "1e30", "\0")
DAY_NS = 86_400 * 10**9
HUGE = 2**63 - 1


def assume_time(fake: FakeLab, name: str) -> int:
    """The ASSUME_TIME that the Binding wrote."""
    return int(fake.api.pod(name)["metadata"]["annotations"][ASSUME_TIME])


def unplaced(daemon: Daemon, node: str) -> int:
    """The memory that the node holds without a card."""
    devices = daemon.inspect(node)["nodes"][0]["devs"]
    return sum(dev["usedGPU"] for dev in devices if dev["id"] == -1)


@scenario("fake")
def hostile_pods(lab: Lab) -> None:
    """
    Pods whose annotations name no valid card still count against their node; an ASSUME_TIME in the far
    future does not break the order, also after a restart; ten thousand containers are summed like any
    others.
    """
    with fake_lab(lab) as fake:
        fake.api.create_node("n2", 2 * len(CARDS), 2)
        for i, card in enumerate(CARDS):
            notes = {IDX: card, ASSIGNED: "true"}
            fake.api.create_pod(f"card-{i}", 1, node="n2", annotations=notes, labels={BY_HAND: "y"})
        ahead = str(time.time_ns() + DAY_NS - 10**9)
        for i, when in enumerate((*TIMES, ahead)):
            notes = {IDX: "0", ASSUME_TIME: when, ASSIGNED: "false"}
            fake.api.create_pod(f"time-{i}", 1, node="n1", annotations=notes, labels={BY_HAND: "y"})
        daemon = fake.cardpack()
        agree(daemon, fake.truth)
        check(unplaced(daemon, "n2") == len(CARDS), daemon.inspect("n2"))
        check(daemon.fitting(asks(str(len(CARDS))), ["n2"]) == ["n2"], "the node's other half")
        times = []
        for i in range(4):
            if i == 2:
                daemon.kill()
                daemon.start()
            check(daemon.bind(fake.pod(f"ours-{i}", 1), "n1") == "", f"bind {i}")
            times.append(assume_time(fake, f"ours-{i}"))
        check(times == sorted(set(times)), times)
        check(int(ahead) < times[0] < int(ahead) + DAY_NS, f"{times} after {ahead}")
        container = asks("1")["spec"]["containers"][0]
        for kind in ("containers", "initContainers"):
            pod = asks("0")
            pod["spec"][kind] = [{**container, "name": f"c{i}"} for i in range(10_000)]
            failed = daemon.filter(pod, ["n1"])["FailedNodes"]
            check("more than 16 containers" in failed.get("n1", ""), f"10,000 {kind}: {failed}")
        fake.verify(daemon)


@scenario("fake")
def hostile_nodes(lab: Lab) -> None:
    """A node's false figures affect only that node: all other nodes keep their sizes."""
    sizes: list[tuple[Json, Json, bool]] = [  # gpu-mem, gpu-count, whether a pod fits
        (str(2**50), "1024", True),  # a card may be as large as the largest request, and no larger
        (str(2**50 + 1024), "1024", False),
        (str(HUGE), "1024", False),
        (str(HUGE), "1", False),
        (str(HUGE), "1025", False),
        (str(HUGE + 1), "1", False),
        ("16", str(HUGE), False),
        ("16", "0", False),
        ("-16", "1", False),
        ("16", "-1", False),
        ("1e18", "1e3", False),
        ("100E", "1", False),
        ("16.5", "1", False),
        ("", "1", False),
        ("0", "1", False),
        ("\u0661\u0666", "1", False),
        ("1" * 200_000, "1", False),
        (16, 1, True),
    ]
    with fake_lab(lab) as fake:
        for i, (mem, count, _) in enumerate(sizes):
            capacity = {GPU_MEM: mem, "aliyun.com/gpu-count": count}
            fake.api.must(
                "POST",
                "/api/v1/nodes",
                {
                    "metadata": {"name": f"liar-{i}", "annotations": {"x": "[" * 100_000}},
                    "status": {"capacity": capacity, "allocatable": {GPU_MEM: mem}},
                },
            )
        daemon = fake.cardpack()
        names = [f"liar-{i}" for i in range(len(sizes))]
        expected = [name for name, (_, _, fits) in zip(names, sizes, strict=True) if fits]
        check(daemon.fitting(asks("16"), names) == expected, daemon.filter(asks("16"), names))
        check(daemon.fitting(asks(str(HUGE)), names) == [], "more than may be asked for")
        for i in range(3):  # the sums of a node stay correct
            pod = fake.pod(f"large-{i}", 2**40)
            check(daemon.bind(pod, "liar-0") == "", "bind")
        check(daemon.fitting(asks("16"), [*names, "n1"])[-1:] == ["n1"], "n1")
        check(daemon.bind(fake.pod("p", 16), "n1") == "", "bind")
        check(daemon.fitting(asks("17"), ["n1"]) == [], "n1 is larger than it is")
        status, _ = daemon.call("GET", "/gpushare-scheduler/inspect")
        check(status == 200, "inspect")
        goes_on(daemon)


def exchange(port: int, data: bytes) -> bytes:
    """All that the peer sends until it closes or pauses."""
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as one:
        try:
            one.sendall(data)
            one.settimeout(1)
            while part := one.recv(65536):
                got += part
        except (TimeoutError, ConnectionError):
            pass
    return got


@scenario("fake")
def hostile_requests(lab: Lab) -> None:
    """
    Requests whose end two HTTP parsers could see in different places: cardpack takes none of them for
    two requests, and none of them binds a pod.
    """
    with fake_lab(lab) as fake:
        daemon = fake.cardpack()
        agree(daemon, fake.truth)
        pod = fake.pod("victim", 1)
        ask = {"PodName": "victim", "PodNamespace": "default", "Node": "n1"}
        ask["PodUID"] = pod["metadata"]["uid"]
        body = json.dumps(ask).encode()
        head = b"POST /version HTTP/1.1\r\nHost: a\r\n"
        bind = b"POST /gpushare-scheduler/bind HTTP/1.1\r\nHost: a\r\n"
        # One parser reads a body; another reads the end of one and then a second request.
        hidden = b"0\r\n\r\n" + bind + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        for heading in (
            b"Content-Length: 5\r\nContent-Length: %d\r\n" % len(hidden),
            b"Content-Length: 5, %d\r\n" % len(hidden),
            b"Content-Length: +%d\r\n" % len(hidden),
            b"Content-Length: 0x5\r\n",
            b"Content-Length : 5\r\n",
            b"Content-Length:\r\n 5\r\n",
            b"Transfer-Encoding: identity, chunked\r\n",
            b"Transfer-Encoding: chunked, identity\r\n",
            b"Transfer-Encoding: xchunked\r\n",
            b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            b"Transfer-Encoding : chunked\r\n",
            b"Transfer-Encoding:\x0bchunked\r\n",
            b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            b"X: " + b"a" * 200_000 + b"\r\n",
            b"".join(b"X%d: a\r\n" % i for i in range(20_000)),
        ):
            answer = exchange(daemon.port, head + heading + b"\r\n" + hidden)
            what = f"{heading[:60]!r}: {answer!r:.200}"
            served = answer.count(b"\r\nDate: ") - answer.count(b"HTTP/1.1 400 Bad Request\r\nDate: ")
            check(served <= 1, f"two answers to {what}")
            check(b'"Error"' not in answer and not fake.node_of("victim"), f"it binds: {what}")
        check(fake.count("bind pods") == 0, "a Binding was sent")
        goes_on(daemon)
