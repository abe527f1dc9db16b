"""The same scenarios on two grounds: a real control plane with kube-scheduler, and the fake API
server.

A function with @on_all_grounds is a scenario of both kinds. On the fake ground the test is the
scheduler: it calls filter with all nodes and binds to the first node of the answer. Every such
scenario ends with verify(): no card is over-committed (share_truth.py), and kubectl-inspect shows the
same as cardpack (inspect_reader.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench import PATIENCE, Bench, Lab, check, message, scenario
from component import wait_for
from daemon import Daemon
from fake_api import FakeApi
from inspect_reader import differences
from share_truth import CARDS, CORES, EXCLUSIVE, GPU_COUNT, ShareTruth
from truth import BY_HAND, IDX

from cluster import GPU_MEM

Json = Any
Amounts = int | str | None | Sequence[int | str | None]

NO_CARD = "Insufficient GPU Memory in one device"


def card(index: int, memory: int, **more: Json) -> Json:
    """A card of a node's card table."""
    return {"index": index, "memory": memory, **more}


class Ground:
    """Nodes, pods and cardpack, for either kind of API server."""

    namespace = "default"
    modern = True  # the API server knows sidecars
    scheduled = True  # kube-scheduler binds the pods, not the test
    seed = 0  # of all random choices

    def __init__(self) -> None:
        self._daemon: Daemon | None = None
        self.shrink = False  # cardpack's setting shrink-after-init

    # ---- what differs -------------------------------------------------------------------

    def must(self, method: str, path: str, body: Json = None) -> Json:
        """Sends a request that must succeed; a PATCH is a merge patch."""
        raise NotImplementedError

    def start(self, *args: str) -> Daemon:
        """Starts a cardpack."""
        raise NotImplementedError

    def bound(self, name: str) -> Json:
        """Waits until the pod is bound, and returns it."""
        raise NotImplementedError

    def refused(self, name: str, *parts: str) -> str:
        """
        Waits until the reason that users read contains all parts, and returns it; the pod must not be
        bound.
        """
        raise NotImplementedError

    def decided(self, name: str) -> bool:
        """Whether the pod is bound, after the scheduler has tried it."""
        raise NotImplementedError

    # ---- objects ------------------------------------------------------------------------

    @property
    def daemon(self) -> Daemon:
        """The cardpack that runs."""
        assert self._daemon is not None
        return self._daemon

    def cardpack(self, *args: str) -> Daemon:
        """
        Starts cardpack and waits until it knows the nodes: kube-scheduler must not ask about unknown
        ones.
        """
        self.shrink = "--shrink-after-init=true" in args
        self._daemon = self.start(*args)
        return self._daemon

    def node(
        self,
        name: str,
        cards: int | Sequence[Json],
        size: int = 0,
        *,
        labels: Mapping[str, str] | None = None,
        notes: Mapping[str, str] | None = None,
        exclusive: int = 0,
        allocatable: int | None = None,
    ) -> None:
        """Makes a node with `cards` cards of `size` each, or with a card table."""
        table = {} if isinstance(cards, int) else {CARDS: json.dumps(cards)}
        count = cards if isinstance(cards, int) else len(cards)
        total = count * size if isinstance(cards, int) else sum(c["memory"] for c in cards)
        capacity = {"cpu": "64", "memory": "512Gi", "pods": "110"}
        if count:
            capacity |= {GPU_MEM: str(total), GPU_COUNT: str(count), CORES: str(100 * count)}
        capacity[EXCLUSIVE] = str(exclusive)  # 0: of a plugin that is gone, and whose pods count
        usable = capacity | ({} if allocatable is None else {GPU_MEM: str(allocatable)})
        metadata = {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            "annotations": {**table, **(notes or {})},
        }
        self.must("POST", "/api/v1/nodes", {"metadata": metadata, "spec": {}})
        ready = {"type": "Ready", "status": "True", "reason": "Test"}
        status = {"capacity": capacity, "allocatable": usable, "conditions": [ready]}
        self.must("PATCH", f"/api/v1/nodes/{name}/status", {"status": status})

    def annotate_node(self, name: str, **metadata: Json) -> None:
        """Changes annotations= and labels=; None deletes a key."""
        self.must("PATCH", f"/api/v1/nodes/{name}", {"metadata": metadata})

    def draft(
        self,
        name: str,
        mem: Amounts = None,
        *,
        cores: Amounts = None,
        exclusive: int | None = None,
        init: Sequence[int] = (),
        sidecars: Sequence[int] = (),
        labels: Mapping[str, str] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> Json:
        """A pod object that is not in the API server; a sequence makes one container for each item."""
        mems, shares = _amounts(mem), _amounts(cores)
        shares += [None] * (len(mems) - len(shares))
        containers = [
            _container(f"c{i}", {GPU_MEM: m, CORES: c, EXCLUSIVE: exclusive if not i else None})
            for i, (m, c) in enumerate(zip(mems, shares, strict=True))
        ]
        before = [
            _container(f"s{i}", {GPU_MEM: m}) | {"restartPolicy": "Always"}
            for i, m in enumerate(sidecars)
        ] + [_container(f"i{i}", {GPU_MEM: m}) for i, m in enumerate(init)]
        spec: Json = {
            "containers": containers,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
        } | ({"initContainers": before} if before else {})
        metadata = {
            "name": name,
            "namespace": self.namespace,
            "labels": dict(labels or {}),
            "annotations": dict(notes or {}),
        }
        return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}

    def pod(self, name: str, mem: Amounts = None, **options: Any) -> Json:
        """Creates such a pod, to be scheduled."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        return self.must("POST", path, self.draft(name, mem, **options))

    def bound_by_hand(self, name: str, mem: Amounts, node: str, notes: Mapping[str, str]) -> Json:
        """Makes a pod that is bound without cardpack."""
        pod = self.draft(name, mem, labels={BY_HAND: "yes"}, notes=notes)
        pod["spec"]["nodeName"] = node
        return self.must("POST", f"/api/v1/namespaces/{self.namespace}/pods", pod)

    def annotate_pod(self, name: str, notes: Mapping[str, str]) -> None:
        """Writes annotations, as the pod's device plugin or another scheduler does."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}"
        self.must("PATCH", path, {"metadata": {"annotations": notes}})

    def get(self, name: str) -> Json:
        """Returns the pod, which must exist."""
        return self.must("GET", f"/api/v1/namespaces/{self.namespace}/pods/{name}")

    def delete(self, *names: str) -> None:
        """Deletes pods and waits until cardpack knows it."""
        for name in names:
            path = f"/api/v1/namespaces/{self.namespace}/pods/{name}?gracePeriodSeconds=0"
            self.must("DELETE", path)
        self.settle()

    def initialized(self, name: str) -> None:
        """Plays the kubelet: the pod's init containers have ended."""
        condition = {"type": "Initialized", "status": "True", "lastTransitionTime": None}
        conditions = [*self.get(name)["status"].get("conditions", []), condition]
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/status"
        self.must("PATCH", path, {"status": {"conditions": conditions}})
        self.settle()

    def running(self, name: str) -> None:
        """Plays the kubelet: the pod's containers have their cards, and started."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/status"
        self.must("PATCH", path, {"status": {"phase": "Running"}})
        self._heard()

    def _heard(self) -> None:
        """
        Waits until cardpack has seen all earlier writes of pods. Its watch shows writes in order, so
        it waits for a marker pod.
        """
        self.bound_by_hand("mark", 1, "nowhere", {})
        wait_for(lambda: self.daemon.inspect("nowhere")["nodes"], "the mark")
        path = f"/api/v1/namespaces/{self.namespace}/pods/mark?gracePeriodSeconds=0"
        self.must("DELETE", path)
        wait_for(lambda: not self.daemon.inspect("nowhere")["nodes"], "no mark")  # the next one may come at once

    def unhealthy(self, node: str, gpus: str) -> None:
        """Creates the ConfigMap of the node's unhealthy cards."""
        name = f"unhealthy-gpu-{node}"
        item = {"metadata": {"name": name}, "data": {"gpus": gpus}}
        self.must("POST", "/api/v1/namespaces/kube-system/configmaps", item)

    # ---- what comes of it ---------------------------------------------------------------

    def placed(self, name: str, mem: Amounts, **options: Any) -> list[int]:
        """Makes a pod and returns the cards that it gets."""
        self.pod(name, mem, **options)
        return self.cards(name)

    def cards(self, name: str) -> list[int]:
        """The cards in the pod's annotation, once it is bound."""
        notes = self.bound(name)["metadata"].get("annotations", {})
        check(IDX in notes, f"{name} is bound without a card: {notes}")
        return [int(index) for index in notes[IDX].split(",")]

    def turned_away(self, name: str, mem: Amounts, *parts: str, **options: Any) -> None:
        """Makes a pod that must be refused for that reason, and deletes it."""
        self.pod(name, mem, **options)
        self.refused(name, *parts)
        self.delete(name)

    def burst(self, pods: Mapping[str, tuple[Amounts, Mapping[str, Any]]]) -> list[str]:
        """Makes many pods at once; deletes the refused ones and returns their names."""
        for name, (mem, options) in pods.items():
            self.pod(name, mem, **options)
        refused = [name for name in pods if not self.decided(name)]
        for name in refused:
            path = f"/api/v1/namespaces/{self.namespace}/pods/{name}?gracePeriodSeconds=0"
            self.must("DELETE", path)
        self.settle()
        return refused

    def comes_to_fit(self, node: str, mem: Amounts, **options: Any) -> None:
        """Waits until cardpack knows a change that makes the node feasible for such a pod."""
        self._comes_to_say(lambda text: not text, node, self.draft("if", mem, **options))

    def comes_to_refuse(self, node: str, mem: Amounts, *parts: str, **options: Any) -> None:
        """Waits until cardpack refuses the node for such a pod, with that reason."""
        pod = self.draft("if", mem, **options)
        self._comes_to_say(lambda text: all(part in text for part in parts) and text, node, pod)

    def _comes_to_say(self, good: Callable[[str], object], node: str, pod: Json) -> None:
        pod["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000"
        try:
            wait_for(lambda: good(self.daemon.reason(pod, node)), "another answer", 10)
        except TimeoutError as error:
            raise AssertionError(f"{error}: {self.daemon.reason(pod, node)!r}") from None

    def settle(self) -> None:
        """Waits until cardpack's state equals the API server's."""
        found: list[str] = []

        def same() -> bool:
            nodes, pods = self._lists()
            found[:] = differences(nodes, pods, self.daemon.inspect(), self.shrink)
            return not found

        try:
            wait_for(same, "inspect to agree", PATIENCE / 12, poll=0.1)
        except TimeoutError:
            raise AssertionError(f"no agreement: {found}") from None

    def judge(self) -> None:
        """
        Checks that no card and no pod is wrong, and that cardpack and kubectl-inspect show the same.
        """
        faults = ShareTruth(*self._lists(), self.shrink).faults()
        check(not faults, f"--seed {self.seed}: {faults}")
        self.settle()

    def verify(self) -> None:
        """Checks everything that must hold when the cluster is idle."""
        self.judge()

    def _lists(self) -> tuple[list[Json], list[Json]]:
        nodes, pods = (self.must("GET", f"/api/v1/{kind}")["items"] for kind in ("nodes", "pods"))
        return nodes or [], pods or []


def _amounts(amounts: Amounts) -> list[int | str | None]:
    return [amounts] if amounts is None or isinstance(amounts, (int, str)) else list(amounts)


def _container(name: str, amounts: Mapping[str, int | str | None]) -> Json:
    sizes = {key: str(value) for key, value in amounts.items() if value is not None}
    resources = {"limits": sizes, "requests": sizes}
    return {"name": name, "image": "example.invalid/none", "resources": resources}


class RealGround(Ground):
    """The real control plane; kube-scheduler binds the pods."""

    def __init__(self, bench: Bench) -> None:
        super().__init__()
        self.bench = bench
        self.namespace = bench.namespace
        self.modern = bench.minor > 28
        self.seed = bench.options.seed

    def must(self, method: str, path: str, body: Json = None) -> Json:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        return self.bench.cluster.must(method, path, body, content_type=kind)

    def start(self, *args: str) -> Daemon:
        return self.bench.cardpack(*args)

    def bound(self, name: str) -> Json:
        try:
            return wait_for(
                lambda: (pod := self.get(name))["spec"].get("nodeName") and pod,
                f"{name} bound", PATIENCE / 6,
            )  # fmt: skip
        except TimeoutError as error:
            raise AssertionError(f"{error}: {self._conditions(name)}") from None

    def refused(self, name: str, *parts: str) -> str:
        def said() -> str:
            pod = self.get(name)
            check(not pod["spec"].get("nodeName"), f"{name} is bound")
            text = message(pod)
            return text if text and all(part in text for part in parts) else ""

        try:
            return wait_for(said, f"{name} refused", PATIENCE / 6)
        except TimeoutError as error:
            raise AssertionError(f"{error} for {parts}: {self._conditions(name)}") from None

    def decided(self, name: str) -> bool:
        def tried() -> Json:
            pod = self.get(name)
            return pod if pod["spec"].get("nodeName") or message(pod) else None

        pod = wait_for(tried, f"a decision on {name}", PATIENCE / 6)
        return bool(pod["spec"].get("nodeName"))

    def _conditions(self, name: str) -> str:
        return str(self.get(name)["status"].get("conditions"))

    def verify(self) -> None:
        super().verify()
        self.bench.verify_history(self.bench.truth())


class FakeGround(Ground):
    """The fake API server; the test is the scheduler."""

    scheduled = False

    def __init__(self, lab: Lab, api: FakeApi) -> None:
        super().__init__()
        self.lab = lab
        self.api = api
        self.seed = lab.options.seed
        self.kubeconfig = api.write_kubeconfig(lab.workdir / f"{lab.scenario}.kubeconfig")

    def must(self, method: str, path: str, body: Json = None) -> Json:
        return self.api.must(method, path, body)

    def start(self, *args: str) -> Daemon:
        return self.lab.daemon(self.kubeconfig, *args)

    def _names(self) -> list[str]:
        return [node["metadata"]["name"] for node in self._lists()[0]]

    def bound(self, name: str) -> Json:
        pod = self.get(name)
        if pod["spec"].get("nodeName"):
            return pod
        names = self._names()
        offered = wait_for(lambda: self.daemon.fitting(pod, names), f"{name} to fit", 10)
        error = self.daemon.bind(pod, offered[0])
        check(not error, f"{name}: {error}")
        return self.get(name)

    def refused(self, name: str, *parts: str) -> str:
        pod, names = self.get(name), self._names()
        texts: list[str] = []

        def said() -> bool:
            answer = self.daemon.filter(pod, names)
            check(not answer["Error"], answer)
            texts[:] = answer["FailedNodes"].values()
            text = " ".join(texts)
            return not answer["NodeNames"] and all(part in text for part in parts)

        try:
            wait_for(said, f"{name} refused", 10)
        except TimeoutError as error:
            raise AssertionError(f"{error} for {parts}: {texts}") from None
        return " ".join(texts)

    def decided(self, name: str) -> bool:
        """
        A feasible node must be bindable, and a refused pod must not fit. Nothing else changes this
        cluster, so the test can check both.
        """
        pod, names = self.get(name), self._names()
        answer = self.daemon.filter(pod, names)
        for node in answer["NodeNames"][:1]:
            error = self.daemon.bind(pod, node)
            check(not error, f"--seed {self.seed}: {name} was offered {node}: {error}")
            return True
        check(answer["FailedNodes"].keys() == set(names), answer)
        room = ShareTruth(*self._lists(), self.shrink).room_for(pod)
        check(not room, f"--seed {self.seed}: {name} is refused ({answer}), and fits on {room}")
        return False


GroundScenario = Callable[[Ground], None]


def on_all_grounds(function: GroundScenario) -> GroundScenario:
    """
    Registers a scenario for every release, and one for the fake API server with "-fake" in its name.
    """

    def real(bench: Bench) -> None:
        ground = RealGround(bench)
        function(ground)
        ground.verify()

    def fake(lab: Lab) -> None:
        with FakeApi(lab.workdir) as api:
            ground = FakeGround(lab, api)
            function(ground)
            ground.verify()
            lab.finish()

    for kind, runs, name in (("real", real, ""), ("fake", fake, "_fake")):
        runs.__name__ = function.__name__ + name
        runs.__doc__ = function.__doc__
        scenario(kind)(runs)
    return function
