"""The Service of manifests/base selects the leader by its label, with the cluster's own controllers.

The replicas are processes of the test, as everywhere here. For each there is a Pod object, whose
kubelet the test plays: it stays ready, also when its process is killed or stopped. That is the worst
case: a node that has just gone down, whose pods are ready for another 40 s.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any

from bench import OBJECTS, PATIENCE, Bench, check, scenario
from component import wait_for
from replicas import HASTE, Replicas, seconds

from scenarios.ha import SHIPPED, _line, _tell

Json = Any

LABEL = "cardpack.io/leader-of"
SYSTEM = "/api/v1/namespaces/kube-system"
RIGHTS = OBJECTS / "rbac-leader-label.yaml"
# Of the controllers of endpoints, as both releases know them.
CONTROLLERS = ("endpoint", "endpointslice")
SERVICE = "cardpack-labelled"


class Labelled:
    """Two replicas with a Pod each, and a Service with the shipped selector."""

    def __init__(self, bench: Bench, *args: str) -> None:
        self.bench = bench
        self.names = [f"cardpack-labelled-{i}" for i in range(2)]
        bench.node("n1", 4, 40)
        self.uids = [self.make_pod(i) for i in range(2)]
        self.replicas = Replicas(bench, *args, own=self._own)
        self._make_service()
        bench.cluster.kubectl("apply", "-f", str(RIGHTS))
        _bind(bench)

    def _own(self, who: int) -> list[str]:
        return [
            f"--pod-name={self.names[who]}",
            "--pod-namespace=kube-system",
            f"--pod-uid={self.uids[who]}",
        ]

    def make_pod(self, who: int) -> str:
        """Makes the Pod, running and ready; returns its UID."""
        ports = [{"name": "http", "containerPort": 39999}]
        spec = {
            "nodeName": "n1",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "cardpack", "image": "cardpack:0.1.0", "ports": ports}],
        }
        labels = {"app.kubernetes.io/name": "cardpack"}
        meta = {"name": self.names[who], "labels": labels}
        pod = self.bench.cluster.must("POST", f"{SYSTEM}/pods", {"metadata": meta, "spec": spec})
        address = f"10.9.0.{who + 1}"
        status = {
            "phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
            "conditions": [{"type": "Ready", "status": "True"}],
        }  # fmt: skip
        self.bench.cluster.must(
            "PATCH", f"{SYSTEM}/pods/{self.names[who]}/status", {"status": status},
            content_type="application/merge-patch+json",
        )  # fmt: skip
        return str(pod["metadata"]["uid"])

    def delete_pod(self, who: int) -> None:
        """Deletes the Pod at once."""
        now = {"gracePeriodSeconds": 0}
        self.bench.cluster.api("DELETE", f"{SYSTEM}/pods/{self.names[who]}", now)

    def _make_service(self) -> None:
        """The shipped Service by another name, without its NodePort."""
        text = (OBJECTS / "service.yaml").read_text()
        text = re.sub(", nodePort: [0-9]+", "", text).replace("type: NodePort", "type: ClusterIP")
        text = text.replace("  name: cardpack\n", f"  name: {SERVICE}\n")
        self.bench.cluster.kubectl("apply", "-f", "-", stdin=text)

    def close(self) -> None:
        """Removes what is not in the scenario's namespace."""
        for who in range(2):
            self.delete_pod(who)
        self.bench.cluster.api("DELETE", f"{SYSTEM}/services/{SERVICE}")

    def labelled(self) -> list[int]:
        """The replicas whose Pods have the label."""
        found = []
        for who, name in enumerate(self.names):
            pod = self.bench.cluster.must("GET", f"{SYSTEM}/pods/{name}")
            if LABEL in pod["metadata"]["labels"]:
                check(pod["metadata"]["labels"][LABEL] == "cardpack", pod["metadata"])
                found.append(who)
        return found

    def selected(self) -> list[int]:
        """The replicas to which the Service leads; both controllers must agree."""
        status, endpoints = self.bench.cluster.api("GET", f"{SYSTEM}/endpoints/{SERVICE}")
        if status != 200:
            return []
        addresses = [
            entry["ip"]
            for subset in endpoints.get("subsets", [])
            for entry in subset.get("addresses", [])
        ]
        version = "v1" if self.bench.minor > 20 else "v1beta1"
        slices = self.bench.cluster.list_all(
            f"/apis/discovery.k8s.io/{version}/namespaces/kube-system/endpointslices",
            labelSelector=f"kubernetes.io/service-name={SERVICE}",
        )
        sliced = [
            address
            for one in slices
            for entry in one["endpoints"] or []
            if entry["conditions"]["ready"]
            for address in entry["addresses"]
        ]
        if sorted(addresses) != sorted(sliced):
            return [-1]
        return sorted(int(address.rpartition(".")[2]) - 1 for address in addresses)

    def until_selected(self, who: int) -> float:
        """Waits until the Service leads to this replica alone; returns the time."""
        wait_for(lambda: self.selected() == [who], f"the Service to lead to {who}", 90, poll=0.02)
        when = time.time()
        check(self.labelled() == [who], f"{self.labelled()} are labelled")
        return when

    def until_both_ready(self) -> None:
        """Waits until /readyz of both is 200: what a Deployment waits for."""
        for daemon in self.replicas.all:
            wait_for(lambda d=daemon: d.call("GET", "/readyz")[0] == 200, "/readyz", PATIENCE)


@scenario("real")
def service_follows_the_leader(bench: Bench) -> None:
    """
    Both replicas are ready, and the Service leads to the leader alone: after kill -9, after SIGTERM,
    and while the former leader is stopped.
    """
    controllers = bench.cluster.start_controller_manager(CONTROLLERS)
    labelled = Labelled(bench, *SHIPPED)
    replicas = labelled.replicas
    try:
        replicas.launch()
        old = replicas.wait_leader()
        labelled.until_selected(old)
        labelled.until_both_ready()
        for how in ("kill -9", "SIGTERM", "SIGSTOP"):
            new = 1 - old
            began = time.time()
            if how == "kill -9":
                replicas.kill(old)
            elif how == "SIGTERM":
                replicas.all[old].stop()
            else:
                replicas.all[old].process.pause()
            took = labelled.until_selected(new) - began
            decided = seconds(_line(replicas, new, "deciding from now on", began)["time"]) - began
            _tell(
                f"{how} to the Service's endpoint: {took:.2f} s, "
                f"{took - decided:.2f} s after the other one decides"
            )
            check(took < 60, "that is no fail-over")
            if how == "SIGSTOP":
                replicas.all[old].process.resume()
            else:
                replicas.all[old].launch()
            wait_for(lambda o=old: replicas.follows(replicas.all[o]), "a follower")
            labelled.until_both_ready()
            check(labelled.selected() == [new], "the Service does not lead to the leader")
            old = new
        replicas.judge_terms()
    finally:
        labelled.close()
        controllers.kill()


@scenario("real")
def leader_without_its_label(bench: Bench) -> None:
    """
    Without the right to label its pod the leader says so in /readyz, and decides. A pod that has
    the name of the leader's pod, and is another one, is not labelled.
    """
    labelled = Labelled(bench, *HASTE)
    replicas = labelled.replicas
    try:
        for kind in ("role", "rolebinding"):
            bench.cluster.kubectl("delete", kind, "cardpack-leader-label", "-n", "kube-system")
        _unbind(bench)
        replicas.launch()
        who = replicas.wait_leader()
        right = 'no right to patch pods/status in namespace "kube-system"'
        text = _unready(labelled, who)
        check(right in text and "can't get the leader's label" in text, text)
        check(replicas.all[who].bind(bench.own_pod("p", 1), "n1") == "", "a bind without the label")
        check(labelled.labelled() == [], labelled.labelled())
        bench.cluster.kubectl("apply", "-f", str(RIGHTS))
        _bind(bench)
        wait_for(lambda: labelled.labelled() == [who], "the label", PATIENCE)
        wait_for(lambda: replicas.all[who].call("GET", "/readyz") == (200, "ok\n"), "/readyz")
        said = [line["level"] for line in replicas.all[who].log("the leader's label can't be written")]
        check(said.count("warn") == 1, said)
        # A person removes it, and a person gives it to another pod.
        for pod, value in ((who, None), (1 - who, "cardpack")):
            bench.cluster.must(
                "PATCH", f"{SYSTEM}/pods/{labelled.names[pod]}",
                {"metadata": {"labels": {LABEL: value}}},
                content_type="application/merge-patch+json",
            )  # fmt: skip
        wait_for(lambda: labelled.labelled() == [who], "the label again", PATIENCE)
        other = 1 - who
        labelled.delete_pod(other)
        check(labelled.make_pod(other) != labelled.uids[other], "the same pod")
        replicas.all[who].stop()
        check(replicas.wait_leader() == other, "it does not lead")
        text = _unready(labelled, other)
        check("can't get the leader's label" in text and "uid" in text.lower(), text)
        # The old pod may keep the label for a moment: its process ends without waiting for the API server.
        check(other not in labelled.labelled(), "another pod is labelled")
        _tell(text)
        replicas.all[other].stop()
    finally:
        labelled.close()
        bench.cluster.kubectl("apply", "-f", str(RIGHTS))


def _unready(labelled: Labelled, who: int) -> str:
    daemon = labelled.replicas.all[who]
    answer = wait_for(
        lambda: [a for a in [daemon.call("GET", "/readyz")] if a[0] == 503], "503", PATIENCE
    )
    check(daemon.call("GET", "/readyz/leader") == (200, "ok\n"), "/readyz/leader")
    return str(answer[0][1])


def _bind(bench: Bench) -> None:
    """Gives the replicas' users the right of manifests/base."""
    subjects = [
        {"kind": "ServiceAccount", "name": f"cardpack-{i}", "namespace": "kube-system"}
        for i in range(2)
    ]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role"}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "cardpack-labels", "namespace": "kube-system"},
        "roleRef": {**role, "name": "cardpack-leader-label"}, "subjects": subjects,
    }  # fmt: skip
    bench.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(binding))


def _unbind(bench: Bench) -> None:
    bench.cluster.kubectl(
        "delete", "rolebinding", "cardpack-labels", "-n", "kube-system", "--ignore-not-found"
    )
