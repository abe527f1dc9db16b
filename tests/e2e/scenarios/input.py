"""Any input: cardpack gives a clear answer and keeps running."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

from bench import Bench, Lab, agree, check, scenario
from component import wait_for
from daemon import VERBS, Daemon
from fake_lab import fake_lab

from cluster import GPU_MEM

Json = Any
PREFIX = VERBS + "/"


def asks(quantity: Json) -> Json:
    """A pod with any JSON value as its limit."""
    container = {"name": "c0", "resources": {"limits": {GPU_MEM: quantity}}}
    metadata = {"name": "p", "namespace": "default", "uid": "u"}
    return {"metadata": metadata, "spec": {"containers": [container]}}


BAD_FILTERS: list[tuple[Json, str]] = [
    (b"", "ExtenderArgs: expected a value"),
    (b"{", "ExtenderArgs: expected a member's name"),
    (b"null", "must be a JSON object"),
    (b"[]", "must be a JSON object"),
    (b"\xff\xfe", "0xff"),
    (b'{"Pod":{},"NodeNames":[]} x', "expected the end"),
    (b'{"Pod":' + b'{"a":' * 100 + b"1" + b"}" * 101, "Nodes and NodeNames are both absent"),
    (b'{"Pod":' + b"[" * 200_000, "expected an object, got a list"),
    (b'{"X":' + b"[" * 200_000, "X: a value without an end"),
    (b'{"Pod":1,"NodeNames":[]}', "Pod: expected an object, got a number"),
    (b'{"Pod":null,"NodeNames":[]}', "arg or pod is nil"),
    (b'{"Pod":{"metadata":{"name":"\xc3"}},"NodeNames":[]}', "Pod.metadata.name: invalid UTF-8"),
    (b'{"Pod":{"metadata":{"name":"\\ud800"}},"NodeNames":[]}', "Pod.metadata.name: an escape"),
    ({"Pod": asks("1"), "NodeNames": 7}, "NodeNames: expected a list, got a number"),
    ({"Pod": asks("1"), "NodeNames": "n1"}, "NodeNames: expected a list, got a string"),
    ({"Pod": asks("1"), "NodeNames": ["n1", 2]}, "NodeNames[1]: expected a string, got a number"),
    ({"Pod": asks("1"), "NodeNames": None, "Nodes": None}, "Nodes and NodeNames are both absent"),
    ({"Pod": asks("1"), "Nodes": []}, "Nodes: expected an object, got a list"),
    ({"Pod": asks("1"), "Nodes": {"items": {}}}, "Nodes.items: expected a list"),
    ({"Pod": asks("1"), "Nodes": {"items": [{}]}}, "Nodes.items[0]: a Node without metadata.name"),
    ({"Pod": {"spec": {"containers": {}}}, "NodeNames": []}, "spec.containers: expected a list"),
    ({"Pod": asks(True), "NodeNames": ["n1"]}, f"limits[{GPU_MEM}]: expected a string or a number"),
    ({"Pod": asks({}), "NodeNames": ["n1"]}, f"limits[{GPU_MEM}]: expected a string or a number"),
]

BAD_BINDS: list[tuple[Json, str]] = [
    (b"", "ExtenderBindingArgs: expected a value"),
    (b"null", "must be a JSON object"),
    (b"{}", "PodName is empty"),
    ({"PodName": 1}, "PodName: expected a string, got a number"),
    ({"PodName": "p"}, "PodNamespace is empty"),
    ({"PodName": "p", "PodNamespace": "d", "Node": "n"}, "PodUID is empty"),
    ({"PodName": "p", "PodNamespace": "d", "PodUID": "u", "Node": None}, "Node is empty"),
    ({"PodName": "p", "PodNamespace": "d", "PodUID": "u", "Node": []}, "Node: expected a string"),
    ({"PodName": "none", "PodNamespace": "d", "PodUID": "u", "Node": "n"}, "does not exist"),
]

# The answer's words about the pod's quantity; None: it is valid, and n1 has cards of 16.
QUANTITIES: list[tuple[Json, str | None]] = [
    ("100E", "write 100, not 100E"),
    ("1e31", '"1e31" is out of range'),
    ("9223372036854775808", '"9223372036854775808" is out of range'),
    ("1" * 200, "is out of range"),
    ("-1", '"-1" is negative'),
    ("1.5", '"1.5" is not a whole number'),
    ("500m", '"500m" is not a whole number'),
    (5.5, '"5.5" is not a whole number'),
    ("", '"" is not a quantity'),
    ("abc", '"abc" is not a quantity'),
    ("0x10", '"0x10" is not a quantity'),
    ("1_0", '"1_0" is not a quantity'),
    ("1e", '"1e" is not a quantity'),
    ("1K", '"1K" is not a quantity'),
    ("16k", "Insufficient GPU Memory in one device"),
    ("1e3", "Insufficient GPU Memory in one device"),
    ("2Gi", "asks for 2147483648 units of GiB or MiB; write 2, not 2Gi"),
    ("17", "Insufficient GPU Memory in one device"),
    ("16", None),
    ("16000m", None),
    ("1.6e1", None),
    (5, None),
    ("0", None),
    (None, None),
]

ROUTES = [
    ("GET", PREFIX + "filter", 405, "GET is not allowed here, only POST"),
    ("PUT", PREFIX + "bind", 405, "PUT is not allowed here, only POST"),
    ("POST", PREFIX + "inspect", 405, "only GET"),
    ("DELETE", "/readyz", 405, "only GET"),
    ("BREW", "/version", 405, "BREW is not allowed"),
    ("GET", "/", 303, "see ui/"),
    ("POST", "/", 405, "only GET"),
    ("GET", "/debug/pprof/", 404, "no such path"),
    ("POST", PREFIX + "filter/", 404, "no such path"),
    ("GET", "/gpushare-scheduler", 404, "no such path"),
    ("GET", "/" + "x" * 20_000, 404, "no such path"),
    ("GET", PREFIX + "inspect/%00", 400, "NUL"),
    ("GET", PREFIX + "inspect/nope", 200, 'node \\"nope\\" not found'),
    ("GET", PREFIX + "inspect/%ff%22%0a", 200, "not found"),
    ("GET", PREFIX + "inspect/a/b", 200, 'node \\"a/b\\" not found'),
    ("POST", "/api/v1/namespaces/default/pods", 404, "only the embedded cluster"),
]


def goes_on(daemon: Daemon) -> None:
    """Checks that cardpack runs, with the same answers as before."""
    check(daemon.call("GET", "/readyz") == (200, "ok\n"), "not ready")
    check(daemon.fitting(asks("16"), ["n1"]) == ["n1"], "n1 does not fit any more")


@scenario("fake")
def bad_bodies(lab: Lab) -> None:
    """filter and bind answer every bad body with 200 and an Error that names the field."""
    with fake_lab(lab) as fake:
        daemon = fake.cardpack()
        agree(daemon, fake.truth)
        for verb, table in (("filter", BAD_FILTERS), ("bind", BAD_BINDS)):
            for body, text in table:
                error = daemon.verb(verb, body)["Error"]
                check(text in error, f"{verb} {body!r:.120}: {error!r}, not {text!r}")
        for quantity, said in QUANTITIES:
            reason = daemon.reason(asks(quantity), "n1")
            good = reason == "" if said is None else said in reason
            check(good, f"{quantity!r}: {reason!r}, not {said!r}")
            if said and '"' in said:
                check("c0" in reason and GPU_MEM in reason, f"{quantity!r}: {reason!r}")
        answer = daemon.filter(asks("1"), ["n1", "", "n1", "\u20ac"])
        check(answer["NodeNames"] == ["n1", "n1"], answer)
        check(answer["FailedNodes"]["\u20ac"] == 'node "\u20ac" not found', answer)
        check(daemon.filter(asks("1"), [])["NodeNames"] == [], "no names")
        huge = daemon.filter(asks("1"), [f"node-{i:05}" for i in range(50_000)] + ["n1"])
        check(huge["NodeNames"] == ["n1"] and len(huge["FailedNodes"]) == 50_000, "50,000 names")
        goes_on(daemon)
        check(fake.count("bind pods") == 0, "something was bound")


@scenario("fake")
def bad_routes(lab: Lab) -> None:
    """Wrong paths and methods get an error that names the right ones."""
    with fake_lab(lab) as fake:
        daemon = fake.cardpack()
        for method, path, status, text in ROUTES:
            got, answer, headers = daemon.exchange(method, path)
            body = answer.decode()  # valid UTF-8, for any request
            check(got == status and text in body, f"{method} {path[:80]}: {got} {body[:200]}")
            if status == 405:
                check(headers["Allow"] in ("GET", "POST"), f"{method} {path}: {headers['Allow']}")
            if headers["Content-Type"] == "application/json":
                json.loads(body)
        check(daemon.exchange("HEAD", "/readyz")[0] == 200, "HEAD /readyz")
        status, _ = daemon.call("GET", "/version?x=" + "y" * 10_000)
        check(status == 200, f"a long query: {status}")
        goes_on(daemon)


@scenario("fake")
def bodies_over_the_limit(lab: Lab) -> None:
    """
    max-body holds: kube-scheduler gets an Error, other clients a 413; cardpack does not take the
    memory.
    """
    with fake_lab(lab) as fake:
        daemon = fake.cardpack("--max-body", "1MiB")
        agree(daemon, fake.truth)
        before = daemon.peak_rss()
        body = b'{"Pod":{},"NodeNames":["' + b"x" * (200 << 20) + b'"]}'
        for verb in ("filter", "bind"):
            error = daemon.verb(verb, body)["Error"]
            check(str(len(body)) in error and "max-body" in error, f"{verb}: {error}")
        status, answer = daemon.call("POST", "/nope", body)
        check(status == 413 and "max-body" in answer["error"], f"/nope: {status} {answer}")
        grown = daemon.peak_rss() - before
        check(grown < 32 << 20, f"{grown} bytes more for bodies that are not kept")
        just = b'{"Pod":{},"NodeNames":["' + b"x" * ((1 << 20) - 27) + b'"]}'
        check(daemon.verb("filter", just)["Error"] == "", "a body just below the limit")
        goes_on(daemon)


@scenario("fake")
def slow_clients(lab: Lab) -> None:
    """More slow clients than connections: cardpack closes theirs, and serves other clients."""
    with fake_lab(lab) as fake:
        daemon = fake.cardpack("--max-connections", "20", "--request-timeout", "1s")
        agree(daemon, fake.truth)
        slow = [socket.create_connection(("127.0.0.1", daemon.port)) for _ in range(40)]
        starts = [b"", b"POST ", b"POST /gpushare-scheduler/filter HTTP/1.1\r\nHost: a\r\n"]
        starts.append(starts[2] + b"Content-Length: 1000\r\n\r\n{")
        for i, one in enumerate(slow):
            one.settimeout(60)
            _drip(one, starts[i % len(starts)])
        # A single byte now and then does not keep a connection alive.
        until = time.monotonic() + 3
        while time.monotonic() < until:
            for one in slow:
                _drip(one, b"a")
            time.sleep(0.2)
        check(daemon.call("GET", "/livez", timeout=60) == (200, "ok\n"), "/livez beside slow clients")
        for one in slow:
            check(_is_cut(one), "a slow client is still connected")
            one.close()
        goes_on(daemon)


def _drip(one: socket.socket, data: bytes) -> None:
    try:
        one.sendall(data)
    except OSError:
        pass  # cut already


def _is_cut(one: socket.socket) -> bool:
    """Whether the peer has closed it; an answer may come before that."""
    try:
        while one.recv(4096):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


@scenario("fake")
def torn_clients(lab: Lab) -> None:
    """Bytes that are not HTTP, clients that disconnect, requests in one piece or in many."""
    with fake_lab(lab) as fake:
        daemon = fake.cardpack()
        agree(daemon, fake.truth)
        body = json.dumps({"Pod": asks("1"), "NodeNames": ["n1"]}).encode()
        head = b"POST /gpushare-scheduler/filter HTTP/1.1\r\nHost: a\r\n"
        whole = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        for garbage in (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"\0" * 1000, b"\r\n" * 1000,
            b"GET / HTTP/9.9\r\n\r\n", b"GET /\r\n\r\n", head + b"A" * 300_000, b"A" * 300_000,
            head + b"Content-Length: -5\r\n\r\n", head + b"Content-Length: 5x\r\n\r\nhello",
            head + b"Content-Length: 99999999999999999999\r\n\r\n",
            head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", whole[: len(whole) // 2],
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ):  # fmt: skip
            with socket.create_connection(("127.0.0.1", daemon.port), timeout=60) as one:
                _drip(one, garbage)
        for piece in (1, 7, len(whole)):
            check(b'["n1"]' in _send(daemon.port, whole, piece), f"in pieces of {piece}")
        answer = _send(daemon.port, whole * 20, len(whole) * 20, answers=20)
        check(answer.count(b'["n1"]') == 20, "20 requests in one piece")
        chunked = head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
        check(b'["n1"]' in _send(daemon.port, chunked % (len(body), body), 9), "chunked")
        goes_on(daemon)
        # None of them delays the shutdown, although libmicrohttpd misses some disconnects.
        daemon.stop()
        check(not daemon.log("shutdown-grace is over: requests or binds are unfinished"), "the end waited")


def _send(port: int, data: bytes, piece: int, answers: int = 1) -> bytes:
    """All received bytes until `answers` answers are complete."""
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(data), piece):
            one.sendall(data[at : at + piece])
        while got.count(b'"Error":""}') < answers:
            part = one.recv(65536)
            check(part, f"closed after {got[-200:]!r}")
            got += part
    return got


@scenario("real")
def odd_names(bench: Bench) -> None:
    """Pod names that look like another path of the API server are still only names."""
    bench.node("n1", 1, 8)
    bench.own_pod("p", 1)
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    for name in ("../p", "p/binding", "p?x=1", "p#", "%2e%2e", ".", "..", "p\u20ac", "x" * 2000):
        uid = "00000000-0000-4000-8000-000000000000"
        pod = {"metadata": {"name": name, "namespace": bench.namespace, "uid": uid}}
        error = daemon.bind(pod, "n1")
        check(error.startswith("can't bind pod"), f"{name[:40]}: {error[:300]}")
    check(not bench.get("p")["spec"].get("nodeName"), "p was bound")
    wait_for(daemon.ready, "ready")
    bench.verify(daemon)
