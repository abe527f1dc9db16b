"""A Binding that the API server has received and not yet committed when its sender ends.

First a client of the test measures what API servers do with such a Binding; cardpack relies on that.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench import PATIENCE, Bench, check, scenario
from component import wait_for
from replicas import Replicas
from webhook import SlowWebhook

Json = Any

DEADLINE = 3.0  # of the test's own Bindings
SLOW = 8.0
SOON = 1.5
COMMIT = 1.0  # for a write that etcd has at the deadline: docs/high-availability.md
LATER = 5.0  # seconds after a webhook's answer in which an API server may still act
# How long the webhook holds the Binding of a leader that is stopped. The fail-over takes up to 17 s: 2 s until the
# other replica sees the last renewal, two thirds of the lease, and start-settle. An API server waits 30 s.
HELD = 28.0


class Sender:
    """A client that sends one Binding and does not read the answer."""

    def __init__(self, bench: Bench, pod: Json, query: str, *, body_later: bool = False) -> None:
        where = f"/api/v1/namespaces/{bench.namespace}/pods/{pod['metadata']['name']}/binding"
        self._body = json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": pod["metadata"]["name"], "namespace": bench.namespace},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
            }
        ).encode()
        head = (
            f"POST {where}{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {bench.cluster.admin_token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(self._body)}\r\n\r\n"
        ).encode()
        context = ssl.create_default_context(cafile=str(bench.cluster.ca_file))
        plain = socket.create_connection(("127.0.0.1", bench.cluster.port), timeout=60)
        self._socket = context.wrap_socket(plain, server_hostname="127.0.0.1")
        self._socket.sendall(head if body_later else head + self._body)

    def send_body(self) -> None:
        """Sends the body, if it was held back."""
        self._socket.sendall(self._body)

    def answer(self) -> bytes:
        """The first line of the answer."""
        return self._socket.recv(4096).split(b"\r\n")[0]

    def close(self) -> None:
        """Closes the connection as the kernel does for a killed process."""
        self._socket.close()


def _bound(bench: Bench, name: str) -> bool:
    path = f"/api/v1/namespaces/{bench.namespace}/pods/{name}"
    return "nodeName" in bench.cluster.must("GET", path)["spec"]


def _wait_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


@scenario("real")
def deadline_of_a_binding(bench: Bench) -> None:
    """
    ?timeout= of a Binding: if a webhook answers later than that, the pod is never bound, whatever the
    client does. Without ?timeout= the API server commits the Binding.
    """
    bench.node("n1", 1, 16)
    names = ("control", "closed", "in-time", "at-the-end", "kept", "closed-too", "late-body")
    pods = {name: bench.own_pod(name, 1) for name in names}
    query = f"?timeout={int(DEADLINE * 1000)}ms"
    with SlowWebhook(bench) as webhook:
        for name in names:
            webhook.delay(name, SLOW)
        webhook.delay("in-time", SOON)
        webhook.delay("at-the-end", DEADLINE - 0.1)
        webhook.delay("late-body", 0.0)
        began = time.monotonic()
        senders = {name: Sender(bench, pods[name], "") for name in ("control", "closed")}
        senders |= {
            name: Sender(bench, pods[name], query)
            for name in ("in-time", "at-the-end", "kept", "closed-too")
        }
        senders["late-body"] = Sender(bench, pods["late-body"], query, body_later=True)
        sent = time.monotonic()
        asked = max(webhook.wait_asked(name) for name in names[:-1])
        for name in ("closed", "closed-too"):
            senders[name].close()
        # The request without a body was sent last. No webhook tells when the API server has read its head,
        # from when on its time counts; the others' show how late it reads now.
        _wait_until(max(sent, asked) + DEADLINE + 0.5)
        senders["late-body"].send_body()
        # The webhook call and the request time out together. The status is 504 if the request does so
        # first, 500 if the call does so and its answer is complete. If the request times out while
        # the answer of the call is being written, the API server closes the connection without a
        # status (apiserver, pkg/server/filters/timeout.go: ErrAbortHandler).
        answer = senders["kept"].answer()
        check(answer == b"" or b" 504 " in answer or b" 500 " in answer, f"at the deadline: {answer!r}")
        answered = time.monotonic() - began
        check(answered < SLOW - 1, f"the deadline came after {answered:.1f} s")
        _wait_until(max(sent, asked) + DEADLINE + COMMIT)
        at_the_end = _bound(bench, "at-the-end")
        _wait_until(asked + SLOW + LATER)
        state = {name: _bound(bench, name) for name in names}
        print(f"        bound: {state}", flush=True)
        check(state["control"], "a Binding without a deadline is not carried out")
        check(state["in-time"], "a Binding within its deadline is not carried out")
        check(state["at-the-end"] == at_the_end, "carried out after its deadline")
        for name in ("kept", "closed-too", "late-body"):
            check(not state[name], f"{name}: carried out after its deadline")
        for sender in senders.values():
            sender.close()


@scenario("real")
def binding_of_a_stopped_leader(bench: Bench) -> None:
    """
    The leader is frozen (SIGSTOP) while a webhook holds its Binding, longer than the lease and
    start-settle. Another replica gives the same card away, so the Binding must not be committed.
    """
    bench.node("n1", 1, 16)
    replicas = Replicas(bench, "--start-settle=8s")
    replicas.launch()
    old = replicas.wait_leader()
    first, second = bench.own_pod("first", 10), bench.own_pod("second", 10)
    with SlowWebhook(bench) as webhook, ThreadPoolExecutor(1) as hands:
        webhook.delay("first", HELD)
        asking = hands.submit(replicas.all[old].bind, first, "n1")
        held = webhook.wait_asked("first")
        pid = replicas.all[old].process.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            other = replicas.all[1 - old]
            wait_for(other.ready, "the other one to lead", PATIENCE)
            check(other.bind(second, "n1") == "", "the second pod is not bound")
            check(time.monotonic() < held + HELD, "the webhook is no slower than the fail-over")
            _wait_until(held + HELD + LATER)
            check(not _bound(bench, "first"), "the stopped leader's Binding came late")
        finally:
            os.kill(pid, signal.SIGCONT)
        webhook.delay("first", 0.0)
        check(asking.result(PATIENCE) != "", "the stopped leader has bound it after all")
    bench.verify(other, killed=True)


@scenario("real")
def webhook_slower_than_the_deadline(bench: Bench) -> None:
    """The API server answers 504; cardpack reads the pod and sends the same Binding again."""
    bench.node("n1", 1, 16)
    daemon = bench.daemon(bench.kubeconfig, "--start-settle=8s")
    pod = bench.own_pod("p", 10)
    with SlowWebhook(bench) as webhook, ThreadPoolExecutor(1) as hands:
        webhook.delay("p", 25.0)
        asking = hands.submit(daemon.bind, pod, "n1")
        held = webhook.wait_asked("p")
        webhook.delay("p", 0.0)
        check(asking.result(PATIENCE) == "", "not bound")
        check(time.monotonic() < held + 20, "the deadline did not end the first Binding")
        check(len(webhook.asked("p")) == 2, f"{len(webhook.asked('p'))} Bindings")
        check(daemon.log("bound")[0]["writes"] == 2, "it was not sent twice")
    bench.verify(daemon, killed=True)
