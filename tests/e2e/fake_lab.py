"""A scenario's ground where the API server is the fake one."""

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
    """The fake API server with a node of two cards of 16, and what a scenario does to it."""

    def __init__(self, lab: Lab, api: FakeApi) -> None:
        self.lab = lab
        self.api = api
        self.kubeconfig = api.write_kubeconfig(lab.workdir / f"{lab.scenario}.kubeconfig")
        api.create_node("n1", 32, 2)

    def cardpack(self, *args: str, **options: Any) -> Daemon:
        """Ready, unless it is not to be started."""
        return self.lab.daemon(self.kubeconfig, *args, **options)

    def pod(self, name: str, mem: int) -> Json:
        """A pod that is not bound."""
        return self.api.create_pod(name, mem)

    def placed_pod(self, name: str, mem: int, node: str, card: int) -> Json:
        """A pod that is bound past cardpack."""
        notes = {"ALIYUN_COM_GPU_MEM_IDX": str(card)}
        return self.api.create_pod(name, mem, node=node, annotations=notes, labels={BY_HAND: "y"})

    def resize(self, name: str, mem: int, cards: int) -> None:
        """Other cards for a node."""
        total = {GPU_MEM: str(mem), GPU_COUNT: str(cards)}
        status = {"status": {"capacity": total, "allocatable": total}}
        self.api.must("PATCH", f"/api/v1/nodes/{name}", status)

    def node_of(self, name: str) -> str:
        """Where the API server has the pod, empty for nowhere."""
        pod = self.api.pod(name)
        check(pod is not None, f"no pod {name}")
        node: str = pod["spec"].get("nodeName", "")
        return node

    def truth(self) -> Truth:
        """From the fake API server's objects."""
        nodes = self.api.must("GET", "/api/v1/nodes")["items"]
        return Truth(nodes, self.api.must("GET", "/api/v1/pods")["items"])

    def verify(self, daemon: Daemon) -> Truth:
        """No card over-committed, annotations exact, and cardpack of the same opinion."""
        agree(daemon, self.truth)
        truth = self.truth()
        check(not truth.overcommitted(), truth.overcommitted())
        check(not truth.bad_annotations(), truth.bad_annotations())
        return truth

    def count(self, what: str) -> int:
        """How many requests of a kind ("bind pods") there were."""
        number: int = self.api.stats()["requests"].get(what, 0)
        return number

    def watched(self) -> None:
        """Until cardpack has its three watches open."""
        wait_for(lambda: len(self.api.stats()["watches"]) == 3, "three watches")

    def outage(self, ms: int) -> None:
        """The API server is away for so long, 200 at least; returns when it is back."""
        before = self._outages()
        self.api.go_down(ms)
        wait_for(lambda: self._outages() > before, "the fake API server to have been away")

    def _outages(self) -> int:
        """How many have ended; -1 while one lasts."""
        try:
            number: int = self.api.stats()["outages"]
        except OSError:
            return -1
        return number


@contextmanager
def fake_lab(lab: Lab) -> Iterator[FakeLab]:
    """The API server ends after cardpack, whose end is checked."""
    with FakeApi(lab.workdir) as api:
        yield FakeLab(lab, api)
        lab.finish()
