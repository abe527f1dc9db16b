"""Admission webhooks: one delays Bindings as long as a test asks, one refuses to change an annotation.

    with SlowWebhook(bench) as webhook:
        webhook.delay("pod", 6.0)
    with Refusing(bench, "pod", "its/annotation") as webhook:
        ...
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from bench import Bench, Json
from certificates import Authority
from component import wait_for

CONFIGURATIONS = (
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
)
LONGEST = 30  # the most seconds that an API server waits for a webhook


class _Webhook:
    """A server that the API server asks; `allows` says what the answer is."""

    def __init__(self, bench: Bench, name: str, operation: str, resource: str) -> None:
        self._bench = bench
        self._cluster = bench.cluster
        self._name = name
        self._lock = threading.Lock()
        authority = Authority(bench.workdir, f"{name}-ca")
        pair = authority.sign(name, "serverAuth", "IP:127.0.0.1")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.cert, pair.key)
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            """Each connection has a thread."""

            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:  # noqa: N802
                """Answers an AdmissionReview."""
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked = review["request"]
                answer = json.dumps(
                    {
                        "apiVersion": "admission.k8s.io/v1",
                        "kind": "AdmissionReview",
                        "response": {"uid": asked["uid"], "allowed": webhook.allows(asked)},
                    }
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Logs nothing."""

        class Server(ThreadingHTTPServer):
            """An API server that gives up closes the connection; the thread then gets an error."""

            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """Ignores that error."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._configuration = {
            "metadata": {"name": name},
            "webhooks": [
                {
                    "name": f"{name}.cardpack.io",
                    "rules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation],
                         "resources": [resource]}
                    ],
                    "clientConfig": {
                        "url": f"https://127.0.0.1:{self._server.server_address[1]}/",
                        "caBundle": base64.b64encode(authority.pair.cert.read_bytes()).decode(),
                    },
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "failurePolicy": "Fail",
                    "timeoutSeconds": LONGEST,
                }
            ],
        }  # fmt: skip

    def __enter__(self) -> Self:
        self._thread.start()
        self._cluster.must("POST", CONFIGURATIONS, self._configuration)
        # The API server reads webhooks by a watch of its own: a request that comes before is not shown to it.
        wait_for(self.is_asked, f"the API server to ask {self._name}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._cluster.api("DELETE", f"{CONFIGURATIONS}/{self._name}")
        self._server.shutdown()
        self._server.server_close()

    def allows(self, asked: Json) -> bool:
        """The answer to this request."""
        raise NotImplementedError

    def is_asked(self) -> bool:
        """Sends a request that changes nothing; whether the API server has asked the webhook about it."""
        raise NotImplementedError


class Refusing(_Webhook):
    """
    Refuses to change one annotation of a pod by way of the pod's status, as cardpack-node does. All other
    writes of the status, as the kubelet's, are allowed.
    """

    def __init__(self, bench: Bench, pod: str, annotation: str) -> None:
        super().__init__(bench, "refusing", "UPDATE", "pods/status")
        self._pod = pod
        self._annotation = annotation
        self.refused = 0

    def allows(self, asked: Json) -> bool:
        if asked["name"] != self._pod or self._value(asked["object"]) == self._value(asked["oldObject"]):
            return True
        self.refused += 1
        return False

    def _value(self, pod: Json) -> str | None:
        value: str | None = pod["metadata"].get("annotations", {}).get(self._annotation)
        return value

    def is_asked(self) -> bool:
        path = f"/api/v1/namespaces/{self._bench.namespace}/pods/{self._pod}/status?dryRun=All"
        body = {"metadata": {"annotations": {self._annotation: "asks-the-webhook"}}}
        self._cluster.api("PATCH", path, body, content_type="application/merge-patch+json")
        asked = self.refused > 0
        self.refused = 0
        return asked


class SlowWebhook(_Webhook):
    """Allows every Binding, each after the delay of its pod."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, "slow-bindings", "CREATE", "pods/binding")
        self._delays: dict[str, float] = {}
        self._asked: dict[str, list[float]] = defaultdict(list)

    def allows(self, asked: Json) -> bool:
        self.hold(asked["name"])
        return True

    def is_asked(self) -> bool:
        name = "asks-the-webhook"  # there is no such pod: the API server asks before it looks
        body = {"metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": "none"}}
        self._cluster.api("POST", f"/api/v1/namespaces/{self._bench.namespace}/pods/{name}/binding?dryRun=All", body)
        return bool(self.asked(name))

    def delay(self, pod: str, seconds: float) -> None:
        """Sets the delay of that pod's later Bindings."""
        with self._lock:
            self._delays[pod] = seconds

    def hold(self, pod: str) -> None:
        """Records the request, and sleeps for the pod's delay."""
        with self._lock:
            self._asked[pod].append(time.monotonic())
            seconds = self._delays.get(pod, 0.0)
        time.sleep(seconds)

    def asked(self, pod: str) -> list[float]:
        """The times of that pod's Bindings, by time.monotonic()."""
        with self._lock:
            return list(self._asked[pod])

    def wait_asked(self, pod: str, count: int = 1) -> float:
        """Waits for `count` Bindings of the pod; returns the time of the last one."""
        wait_for(lambda: len(self.asked(pod)) >= count, f"a Binding of {pod}", poll=0.01)
        return self.asked(pod)[count - 1]
