#!/usr/bin/env python3
"""Proves the fake API server: its semantics and each of its faults.

python3 -m unittest tests/e2e/fake_api_test.py
"""

from __future__ import annotations

import http.client
import json
import sys
import unittest
from pathlib import Path
from typing import Any
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parent))

from component import wait_for  # noqa: E402
from fake_api import FakeApi  # noqa: E402

Json = Any


class Stream:
    """An open watch."""

    def __init__(self, api: FakeApi, rv: str, query: str = "", resource: str = "pods") -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", api.port, timeout=20)
        path = f"/api/v1/{resource}?watch=true&allowWatchBookmarks=true&resourceVersion={rv}{query}"
        self.connection.request("GET", path)
        self.response = self.connection.getresponse()

    def next(self) -> tuple[str, Json]:
        event = json.loads(self.response.readline())
        return event["type"], event["object"]

    def names(self, count: int) -> list[tuple[str, str]]:
        events = [self.next() for _ in range(count)]
        return [(kind, item["metadata"]["name"]) for kind, item in events]

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()


class FakeApiTest(unittest.TestCase):
    def setUp(self) -> None:
        self.api = FakeApi()
        self.api.__enter__()
        self.addCleanup(self.api.__exit__, None, None, None)

    def rv(self) -> str:
        version: str = self.api.stats()["resource_version"]
        return version

    def pages(self, path: str) -> list[list[Json]]:
        pages, token = [], ""
        while True:
            body = self.api.must("GET", path + (f"&continue={quote(token)}" if token else ""))
            pages.append(body["items"])
            token = body["metadata"].get("continue", "")
            if not token:
                return pages

    def bind(self, pod: str, node: str, **metadata: Json) -> tuple[int, Json]:
        binding = {"metadata": {"name": pod} | metadata, "target": {"kind": "Node", "name": node}}
        return self.api.request("POST", f"/api/v1/namespaces/default/pods/{pod}/binding", binding)

    def test_pages_are_of_one_moment(self) -> None:
        for i in range(5):
            self.api.create_pod(f"p{i}")
        first = self.api.must("GET", "/api/v1/pods?limit=2")
        self.api.delete_pod("p3")
        self.api.create_pod("p9")
        token = quote(first["metadata"]["continue"])
        second = self.api.must("GET", f"/api/v1/pods?limit=9&continue={token}")
        self.assertEqual([i["metadata"]["name"] for i in second["items"]], ["p2", "p3", "p4"])
        self.assertEqual(
            second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]
        )
        self.assertNotIn("kind", second["items"][0])
        self.api.compact()
        self.assertEqual(self.api.request("GET", f"/api/v1/pods?limit=9&continue={token}")[0], 410)

    def test_watch_follows_a_selector(self) -> None:
        rv = self.rv()
        self.api.create_pod("a")
        selector = "&fieldSelector=status.phase%21%3DSucceeded"
        with Stream(self.api, rv, selector) as watch:
            self.assertEqual(watch.names(1), [("ADDED", "a")])
            self.api.patch_pod("a", {"metadata": {"labels": {"x": "y"}}})
            self.assertEqual(watch.names(1), [("MODIFIED", "a")])
            self.api.set_pod_phase("a", "Succeeded")
            kind, item = watch.next()
            self.assertEqual((kind, item["status"]["phase"]), ("DELETED", "Pending"))
            self.assertEqual(item["metadata"]["resourceVersion"], self.rv())
            self.api.create_node("elsewhere", 8)
            self.api.bookmark()
            kind, item = watch.next()
            self.assertEqual((kind, item["kind"]), ("BOOKMARK", "Pod"))
            self.assertEqual(item["metadata"]["resourceVersion"], self.rv())
            self.api.close_watches("pods")
            self.assertEqual(watch.response.read(), b"")
        self.assertEqual(self.api.request("GET", "/api/v1/pods?fieldSelector=a.b%3Dc")[0], 400)

    def test_watch_from_the_past_and_the_future(self) -> None:
        rv = self.rv()
        self.api.create_pod("a")
        self.api.compact()
        for version, code in ((rv, 410), ("99999", 504)):
            with Stream(self.api, version) as watch:
                kind, item = watch.next()
                self.assertEqual((kind, item["code"]), ("ERROR", code))
        status, body = self.api.request("GET", "/api/v1/pods?resourceVersion=99999")
        self.assertEqual(status, 504)
        self.assertEqual(body["details"]["causes"][0]["reason"], "ResourceVersionTooLarge")

    def test_binding_is_one_transaction(self) -> None:
        self.api.create_pod("a", 8, annotations={"kept": "1"})
        uid = self.api.pod("a")["metadata"]["uid"]
        self.assertEqual(self.bind("a", "n1", uid="other")[0], 409)
        self.assertEqual(self.bind("a", "n1", name="b")[0], 400)
        self.assertEqual(self.bind("missing", "n1")[0], 404)
        self.assertEqual(self.bind("a", "n1", uid=uid, annotations={"card": "3"})[0], 201)
        pod = self.api.pod("a")
        self.assertEqual(pod["spec"]["nodeName"], "n1")
        self.assertEqual(pod["metadata"]["annotations"], {"kept": "1", "card": "3"})
        status, body = self.bind("a", "n2", uid=uid, annotations={"card": "4"})
        self.assertEqual((status, body["details"]["kind"]), (409, "pods/binding"))
        self.assertIn('already assigned to node "n1"', body["message"])
        self.assertEqual(self.api.pod("a"), pod)
        self.api.configure(preconditions=False)
        self.api.create_pod("b")
        self.assertEqual(self.bind("b", "n1", uid="other")[0], 201)

    def test_leases(self) -> None:
        """Each request was sent to 1.20.2 and 1.36.3, which gave these answers."""
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
        one = f"{leases}/l"
        full = 'leases.coordination.k8s.io "l"'
        details = {"name": "l", "group": "coordination.k8s.io", "kind": "leases"}

        status, body = self.api.request("GET", one)
        self.assertEqual((status, body["message"]), (404, f"{full} not found"))
        self.assertEqual(body["details"], details)
        spec = {"holderIdentity": "a", "leaseDurationSeconds": 10, "leaseTransitions": 0}
        times = {"renewTime": "2026-01-01T00:00:00.000000Z", "acquireTime": None}
        made = self.api.must("POST", leases, {"metadata": {"name": "l"}, "spec": spec | times})
        status, body = self.api.request("POST", leases, {"metadata": {"name": "l"}})
        self.assertEqual((status, body["reason"]), (409, "AlreadyExists"))
        self.assertEqual((body["message"], body["details"]), (f"{full} already exists", details))

        same = self.api.must("PUT", one, made)
        self.assertEqual(same["metadata"], made["metadata"])  # nothing changed: no write
        made["spec"]["holderIdentity"] = ""
        renewed = self.api.must("PUT", one, made)
        self.assertNotEqual(
            renewed["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]
        )
        status, body = self.api.request("PUT", one, made)
        self.assertEqual((status, body["reason"], body["details"]), (409, "Conflict", details))
        self.assertIn(f"on {full}: the object has been modified", body["message"])
        status, body = self.api.request("PUT", one, {"metadata": {"name": "l"}, "spec": spec})
        self.assertEqual((status, body["reason"]), (422, "Invalid"))

        for code, wrong in (
            (400, {"renewTime": "2026-01-01T00:00:00Z"}),
            (400, {"acquireTime": "2026-01-01T00:00:00.123Z"}),
            (400, {"renewTime": "2026-01-01T00:00:00.123456789Z"}),
            (400, {"renewTime": ""}),
            (400, {"leaseDurationSeconds": "10"}),
            (422, {"leaseDurationSeconds": 0}),
            (422, {"leaseTransitions": -1}),
        ):
            lease = {"metadata": renewed["metadata"], "spec": spec | wrong}
            self.assertEqual(self.api.request("PUT", one, lease)[0], code, wrong)
            again = {"metadata": {"name": "other"}, "spec": spec | wrong}
            self.assertEqual(self.api.request("POST", leases, again)[0], code, wrong)

        self.api.must("DELETE", one)
        status, body = self.api.request("PUT", one, renewed)
        self.assertEqual((status, body["reason"]), (409, "Conflict"))  # its UID is gone
        del renewed["metadata"]["uid"]
        status, body = self.api.request("PUT", one, renewed)
        self.assertEqual((status, body["kind"]), (201, "Lease"))

    def test_writes(self) -> None:
        self.api.put_configmap("unhealthy-gpu-n1", {"gpus": "0"})
        self.api.put_configmap("unhealthy-gpu-n1", {"gpus": "1"})
        maps = self.api.must("GET", "/api/v1/namespaces/kube-system/configmaps")["items"]
        self.assertEqual([m["data"]["gpus"] for m in maps], ["1"])

    def test_request_faults(self) -> None:
        for name in "abc":
            self.api.create_pod(name)
        self.api.fault(kind="status", verb="list", code=429, retry_after=2, text="later", skip=1)
        self.assertEqual(self.api.request("GET", "/api/v1/pods")[0], 200)
        self.assertEqual(self.api.request("GET", "/api/v1/pods"), (429, "later"))
        self.assertEqual(self.api.request("GET", "/api/v1/pods")[0], 200)
        self.api.fault(kind="drop", verb="bind")
        with self.assertRaises(http.client.HTTPException):
            self.bind("a", "n1")
        self.assertNotIn("nodeName", self.api.pod("a")["spec"])
        self.api.fault(kind="drop_after_commit", verb="bind", path="/a/binding$")
        with self.assertRaises(http.client.HTTPException):
            self.bind("a", "n1")
        self.assertEqual(self.api.pod("a")["spec"]["nodeName"], "n1")
        self.api.fault(kind="late_commit", verb="bind", ms=100)
        self.assertEqual(self.bind("b", "n1")[0], 504)
        wait_for(lambda: self.api.pod("b")["spec"].get("nodeName"), "the late commit")
        self.api.fault(kind="truncate", bytes=50, clean=True)
        self.assertEqual(len(self.api.request("GET", "/api/v1/pods")[1]), 50)
        self.api.fault(kind="truncate")
        with self.assertRaises(http.client.HTTPException):
            self.api.request("GET", "/api/v1/pods")
        self.api.fault(kind="status", code=410, reason="Expired", continued=True)
        self.assertEqual(self.api.request("GET", "/api/v1/pods?limit=1")[0], 200)
        self.assertEqual(self.api.request("GET", "/api/v1/pods?limit=1&continue=x")[0], 410)
        self.assertEqual(self.api.request("POST", "/_fault", {"kind": "nonsense"})[0], 400)
        self.assertEqual(self.api.request("POST", "/_fault", {"kind": "drop", "code": 1})[0], 400)
        self.assertEqual(self.api.stats()["faults_left"], 0)

    def test_watch_faults(self) -> None:
        rv = self.rv()
        for name in "abc":
            self.api.create_pod(name)
        self.api.fault(kind="cut", bytes=30, after_events=1)
        with Stream(self.api, rv) as watch:
            watch.next()
            with self.assertRaises(http.client.IncompleteRead) as caught:
                watch.response.read()
            self.assertEqual(len(caught.exception.partial), 30)
        self.api.fault(kind="garbage", after_events=3)
        self.api.fault(kind="drop_event")
        with Stream(self.api, rv) as watch:
            self.assertEqual(watch.names(3), [("ADDED", name) for name in "abc"])
            self.assertIn(b"<html>", watch.response.readline())
        with Stream(self.api, rv) as watch:
            self.assertEqual(watch.names(2), [("ADDED", name) for name in "bc"])
            self.api.fault(kind="error_event", now=True, code=500, reason="InternalError")
            self.assertEqual(watch.next()[1]["code"], 500)
            self.assertEqual(watch.response.read(), b"")
        with Stream(self.api, rv) as watch:
            watch.names(3)
            self.api.fault(kind="quiet", now=True, resource="pods")
            self.api.create_pod("d")
            watch.connection.sock.settimeout(0.2)
            with self.assertRaises(TimeoutError):
                watch.response.readline()

    def test_outage(self) -> None:
        self.api.create_pod("a")
        self.api.go_down(200)

        def answers() -> bool:
            try:
                return bool(self.api.pod("a"))
            except (OSError, http.client.HTTPException):
                return False

        wait_for(lambda: not answers(), "the outage")
        wait_for(answers, "its end")

    def test_world(self) -> None:
        self.api.create_pod("mine", 8)
        self.api.world(nodes=20, cards=2, card_mem=16, pods=1500, gpu_pods=70, pod_mem=8)
        pods = [p for page in self.pages("/api/v1/pods?limit=400") for p in page]
        keys = [(p["metadata"]["namespace"], p["metadata"]["name"]) for p in pods]
        self.assertEqual(len(pods), 1501)
        self.assertEqual(keys, sorted(set(keys)))
        cards: dict[tuple[str, str], int] = {}
        for pod in pods:
            given = pod["metadata"]["annotations"]
            if "ALIYUN_COM_GPU_MEM_IDX" in given:
                card = (pod["spec"]["nodeName"], given["ALIYUN_COM_GPU_MEM_IDX"])
                cards[card] = cards.get(card, 0) + int(given["ALIYUN_COM_GPU_MEM_POD"])
        self.assertEqual((sum(cards.values()), max(cards.values())), (560, 16))
        self.assertEqual(len(self.pages("/api/v1/nodes?limit=7")), 3)

        self.api.delete_pod("pod-000500", "load-000")
        self.api.patch_pod("pod-000700", {"metadata": {"labels": {"x": "y"}}}, "load-000")
        self.assertEqual(sum(map(len, self.pages("/api/v1/pods?limit=333"))), 1500)
        self.assertEqual(len(self.api.must("GET", "/api/v1/pods")["items"]), 1500)
        found = self.api.must("GET", "/api/v1/pods?labelSelector=x%3Dy")["items"]
        self.assertEqual([p["metadata"]["name"] for p in found], ["pod-000700"])


if __name__ == "__main__":
    unittest.main()
