"""Two cardpacks for one cluster; their logs and the audit log show which one decided when.

Each replica has its own ServiceAccount with the rights of manifests/, so that the audit log shows
which replica sent a Binding.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bench import Bench, check
from component import wait_for
from daemon import Daemon

Json = Any

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cardpack"
# As short as the settings allow, for tests of the order of events and not of their speed.
HASTE = (
    "--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms", "--start-settle=2s",
)  # fmt: skip

_BEGINS = b"deciding from now on"  # a replica logs this before it answers kube-scheduler


def seconds(stamp: str) -> float:
    """A log's time in seconds, as time.time() counts."""
    return datetime.fromisoformat(stamp).timestamp()


@dataclass
class Term:
    """One replica becomes the leader."""

    at: float
    replica: int


@dataclass
class Accepted:
    """A Binding that the API server accepted."""

    pod: str
    replica: int
    received: float
    done: float


def accounts(bench: Bench, count: int) -> list[str]:
    """Makes `count` users, each with the rights of manifests/base."""
    names = [f"cardpack-{i}" for i in range(count)]
    for name in names:
        bench.cluster.service_account_token("kube-system", name)
        subject = f"--serviceaccount=kube-system:{name}"
        for argv in (
            ("clusterrolebinding", name, "--clusterrole=cardpack", subject),
            ("rolebinding", name, "--role=cardpack", "--namespace=kube-system", subject),
        ):
            done = bench.cluster.kubectl("create", *argv, check=False)
            check(done.returncode == 0 or "already exists" in done.stderr, done.stderr)
    users = [f"system:serviceaccount:kube-system:{name}" for name in names]
    bench.users += [user for user in users if user not in bench.users]
    return users


class Replicas:
    """Replicas are numbered from 0; a killed one that is started again keeps its number."""

    def __init__(
        self,
        bench: Bench,
        *args: str,
        count: int = 2,
        own: Callable[[int], Sequence[str]] = lambda _: (),
    ) -> None:
        """`own`: more arguments, of each replica."""
        self.bench = bench
        self.users = accounts(bench, count)
        self.all: list[Daemon] = []
        self.killed: list[float] = []
        # Deletes the Lease of an earlier scenario, so that the first replica leads at once.
        bench.cluster.api("DELETE", LEASE)
        for i in range(count):
            token = bench.cluster.service_account_token("kube-system", f"cardpack-{i}", 6 * 3600)
            kubeconfig = bench.workdir / f"cardpack-{i}.kubeconfig"
            bench.cluster.write_kubeconfig(kubeconfig, token)
            daemon = Daemon(
                bench.options.binary, bench.workdir, bench.ports.take(), kubeconfig,
                (*args, *own(i)), name=f"cardpack-{bench.scenario}-{i}",
            )  # fmt: skip
            self.all.append(daemon)
            bench.daemons.append(daemon)

    def launch(self) -> None:
        """Starts all of them, and waits until one leads."""
        for daemon in self.all:
            daemon.launch()
        wait_for(lambda: self.leader() is not None, "a leader")
        for daemon in self.all:
            wait_for(lambda d=daemon: d.ready() or self.follows(d), "a follower")

    def leader(self) -> int | None:
        """
        The replica that answers kube-scheduler; there must never be two. They are asked one after the
        other. If one of them becomes the leader meanwhile, the answers do not belong together, and all
        are asked again.
        """
        while True:
            begun = self._begun()
            ready = [i for i, d in enumerate(self.all) if d.process.alive and d.ready()]
            if self._begun() == begun:
                break
        check(len(ready) < 2, "two answer at a time")
        return ready[0] if ready else None

    def _begun(self) -> int:
        """How often one of them has become the leader, by their logs."""
        return sum(daemon.process.log.read_bytes().count(_BEGINS) for daemon in self.all)

    def wait_leader(self, timeout: float = 60.0) -> int:
        """Waits until one is ready."""
        found = wait_for(lambda: [i for i in [self.leader()] if i is not None], "a leader", timeout)
        return found[0]

    def follows(self, daemon: Daemon) -> bool:
        """Whether it is ready as a follower, and names its leader."""
        try:
            status, text = daemon.call("GET", "/readyz", timeout=2)
        except OSError:
            return False
        return status == 200 and "leads, and this one follows it" in str(text)

    def terms(self) -> list[Term]:
        """When each replica became the leader, in order."""
        found = [
            Term(seconds(line["time"]), i)
            for i, daemon in enumerate(self.all)
            for line in daemon.log(_BEGINS.decode())
        ]
        return sorted(found, key=lambda term: term.at)

    def accepted(self) -> list[Accepted]:
        """The replicas' Bindings, in the order in which they ended."""
        found = []
        for event in self.bench.cluster.audit_events():
            what = event.get("objectRef", {})
            user = event["user"].get("username")  # absent without authentication
            if what.get("subresource") != "binding" or user not in self.users:
                continue
            if event.get("responseStatus", {}).get("code") != 201:
                continue
            found.append(
                Accepted(
                    f"{what['namespace']}/{what['name']}",
                    self.users.index(user),
                    seconds(event["requestReceivedTimestamp"]),
                    seconds(event["stageTimestamp"]),
                )
            )
        return sorted(found, key=lambda one: one.done)

    def judge_terms(self) -> None:
        """Checks that no Binding of a replica was accepted after another one became the leader."""
        terms = self.terms()
        for one in self.accepted():
            if not one.pod.startswith(self.bench.namespace + "/"):
                continue
            before = [term for term in terms if term.at <= one.done]
            check(before, f"{one}: no replica had begun to decide: {terms}")
            check(before[-1].replica == one.replica, f"{one}, and {before[-1]} decides: {terms}")

    def lease(self) -> Json:
        """The Lease's spec."""
        return self.bench.cluster.must("GET", LEASE)["spec"]

    def kill(self, who: int) -> float:
        """Sends SIGKILL; returns the time."""
        daemon = self.all[who]
        check(daemon.process.alive, f"replica {who} ended: {daemon.process.tail()}")
        when = time.time()
        daemon.kill()
        check(daemon.process.status == -9, f"status {daemon.process.status}")
        self.killed.append(when)
        return when

    def until_bound(self, who: int, name: str, node: str) -> tuple[float, list[str]]:
        """Repeats a bind until it succeeds; returns the time of success, and the errors before."""
        pod = self.bench.own_pod(name, 1)
        errors: list[str] = []

        def bound() -> bool:
            error = self.all[who].bind(pod, node)
            if error:
                errors.append(error)
            return not error

        wait_for(bound, f"replica {who} to bind", 60, poll=0.02)
        return time.time(), errors
