"""What a scenario works with when the API server is the fake one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench import Lab, agree, check
from cluster import GPU_MEM
from component import wait_for
from daemon import Daemon
from fake_api import FakeApi
from truth import BY_HAND, GPU_COUNT, Truth

Json = Any


class FakeLab:
    """The fake API server with one node of two cards of 16, and a scenario's operations on it."""

    def __init__(self, lab: Lab, api: FakeApi) -> None:
        self.lab = lab
        self.api = api
        self.kubeconfig = api.write_kubeconfig(lab.workdir / f"{lab.scenario}.kubeconfig")
        api.create_node("n1", 32, 2)

    def cardpack(self, *args: str, **options: Any) -> Daemon:
        """Makes a cardpack, started and ready unless the caller asks otherwise."""
        return self.lab.daemon(self.kubeconfig, *args, **options)

    def pod(self, name: str, mem: int) -> Json:
        """Makes a pod that is not bound."""
        return self.api.create_pod(name, mem)

    def placed_pod(self, name: str, mem: int, node: str, card: int) -> Json:
        """Makes a pod that the test binds without cardpack."""
        notes = {"ALIYUN_COM_GPU_MEM_IDX": str(card)}
        return self.api.create_pod(name, mem, node=node, annotations=notes, labels={BY_HAND: "y"})

    def resize(self, name: str, mem: int, cards: int) -> None:
        """Changes the cards of a node."""
        total = {GPU_MEM: str(mem), GPU_COUNT: str(cards)}
        status = {"status": {"capacity": total, "allocatable": total}}
        self.api.must("PATCH", f"/api/v1/nodes/{name}", status)

    def node_of(self, name: str) -> str:
        """The pod's node in the API server; empty if it is not bound."""
        pod = self.api.pod(name)
        check(pod is not None, f"no pod {name}")
        node: str = pod["spec"].get("nodeName", "")
        return node

    def truth(self) -> Truth:
        """The truth from the fake API server's objects."""
        nodes = self.api.must("GET", "/api/v1/nodes")["items"]
        return Truth(nodes, self.api.must("GET", "/api/v1/pods")["items"])

    def verify(self, daemon: Daemon) -> Truth:
        """Checks: no card is over-committed, annotations are exact, and cardpack's inspect agrees."""
        agree(daemon, self.truth)
        truth = self.truth()
        check(not truth.overcommitted(), truth.overcommitted())
        check(not truth.bad_annotations(), truth.bad_annotations())
        return truth

    def count(self, what: str) -> int:
        """How many requests of a kind ("bind pods") the server got."""
        number: int = self.api.stats()["requests"].get(what, 0)
        return number

    def watched(self) -> None:
        """Waits until cardpack has its three watches open."""
        wait_for(lambda: len(self.api.stats()["watches"]) == 3, "three watches")

    def outage(self, ms: int) -> None:
        """Takes the API server away for `ms` (at least 200) milliseconds; returns when it is back."""
        before = self._outages()
        self.api.go_down(ms)
        wait_for(lambda: self._outages() > before, "the fake API server to have been away")

    def _outages(self) -> int:
        """How many outages have ended; -1 during one."""
        try:
            number: int = self.api.stats()["outages"]
        except OSError:
            return -1
        return number


@contextmanager
def fake_lab(lab: Lab) -> Iterator[FakeLab]:
    """Ends the API server after cardpack, and checks cardpack's end."""
    with FakeApi(lab.workdir) as api:
        yield FakeLab(lab, api)
        lab.finish()
