"""A real control plane for a test: etcd, kube-apiserver, kube-scheduler.

    with ControlPlane("1.36.3", workdir) as cluster:
        cluster.create_node("n1", {GPU_MEM: 32})
        cluster.start_scheduler("http://127.0.0.1:12345/gpushare-scheduler")
        cluster.create_pod("p1", gpu_mem=8)
        wait_for(lambda: cluster.bound_pods().get("p1"), "p1 bound")
        cluster.apiserver.kill()

scripts/control-plane provides the programs. Nodes and pods are objects only:
there is no kubelet, so nothing runs, and a pod that was bound stays Pending.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import secrets
import ssl
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode

import scheduler_config
from certificates import Authority
from component import Component, Ports, StartError, StillAlive, die_with_parent, wait_for

__all__ = [
    "GPU_MEM",
    "SCHEDULER_USER",
    "VERSIONS",
    "ApiError",
    "Component",
    "ControlPlane",
    "PodWrites",
    "StartError",
    "StillAlive",
    "available_versions",
    "find_programs",
    "wait_for",
]

VERSIONS = ("1.20.2", "1.36.3")
PROGRAMS = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubectl")
GPU_MEM = "aliyun.com/gpu-mem"
SCHEDULER_USER = "system:kube-scheduler"
CARDPACK_RIGHTS = Path(__file__).resolve().parents[2] / "manifests/base/objects/rbac.yaml"

# The controllers that tests can start, by names that both releases know. nodelifecycle is left out:
# without a kubelet it would mark every node as dead and evict its pods.
CONTROLLERS = (
    "clusterrole-aggregation",
    "deployment",
    "disruption",
    "garbagecollector",
    "job",
    "namespace",
    "podgc",
    "replicaset",
    "serviceaccount",
    "statefulset",
)

# Logs every request but the probes. A watch is also logged at its start, as it may never end.
AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: ["/healthz*", "/livez*", "/readyz*", "/openapi*", "/version"]
- level: Metadata
"""

Json = Any


class ApiError(RuntimeError):
    """The API server refused what a helper asked for."""

    def __init__(self, what: str, status: int, body: Json) -> None:
        message = body.get("message") if isinstance(body, dict) else body
        super().__init__(f"{what}: {status} {message}")
        self.status = status
        self.body = body


@dataclass
class PodWrites:
    """The writes to one pod, counted from the audit log."""

    bindings: int = 0  # pods/binding that succeeded
    bindings_refused: int = 0  # pods/binding that got an error other than the next
    bindings_unknown: int = 0  # pods/binding that the API server gave up at its deadline: etcd may have it
    patches: int = 0  # successful patches of the pod or of a subresource
    updates: int = 0
    users: set[str] = field(default_factory=set)  # users that tried any of these writes


def _folder(version: str) -> Path:
    """The folder into which scripts/control-plane puts a release."""
    if assets := os.environ.get("KUBEBUILDER_ASSETS"):
        return Path(assets).resolve()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "cardpack" / "control-plane" / version


def find_programs(version: str) -> Path:
    """The folder of a release's programs; FileNotFoundError says how to get them."""
    folder = _folder(version)
    missing = [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]
    if missing:
        raise FileNotFoundError(
            f"{folder} lacks {', '.join(missing)}: run scripts/control-plane {version}"
        )
    answer = subprocess.run(
        [folder / "kube-apiserver", "--version"], capture_output=True, text=True, check=True
    ).stdout.split()
    if answer[-1:] != [f"v{version}"]:
        raise FileNotFoundError(f"{folder} holds {' '.join(answer)}, not {version}")
    return folder


def available_versions() -> list[str]:
    """The releases whose programs are installed here."""
    found = []
    for version in VERSIONS:
        try:
            find_programs(version)
        except FileNotFoundError:
            continue
        found.append(version)
    return found


def _signing_key() -> str:
    """A new P-256 private key in PEM, to sign the tokens of service accounts.

    SEC1 makes the public half optional. The private half is any number below the order of the curve,
    so this needs no library, and no key in the tree.
    """
    scalar = (1 + secrets.randbelow(2**255)).to_bytes(32, "big")
    p256 = bytes.fromhex("06082a8648ce3d030107")
    body = b"\x02\x01\x01" + b"\x04\x20" + scalar + b"\xa0" + bytes([len(p256)]) + p256
    der = b"\x30" + bytes([len(body)]) + body
    encoded = base64.encodebytes(der).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{encoded}-----END EC PRIVATE KEY-----\n"


def answers(port: int, path: str, certificate: Path | None, token: str | None = None) -> bool:
    """Whether a GET on loopback returns 200 now."""
    connection: http.client.HTTPConnection
    try:
        if certificate is None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        else:
            context = ssl.create_default_context(cafile=str(certificate))
            connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=context)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            connection.request("GET", path, headers=headers)
            return connection.getresponse().status == 200
        finally:
            connection.close()
    except (OSError, http.client.HTTPException):
        return False  # not listening, or its certificate is not written yet


@dataclass
class _Connection:
    """A thread's connection to one run of the API server."""

    http: http.client.HTTPSConnection
    life: int
    used: float


class ControlPlane:
    """One cluster on loopback; its logs and its state are in workdir.

    etcd and the API server run inside the `with`; the scheduler and the controller manager run once
    they are started. Each is a Component with its own kill(), terminate(), restart(), pause() and
    resume(). After a restart it has the same port, certificate and data.
    """

    # Less than the API server's own limit for an idle connection, so that a request never uses a
    # connection that the API server is closing.
    _IDLE_SECONDS = 20.0

    def __init__(
        self,
        version: str,
        workdir: str | os.PathLike[str],
        *,
        apiserver_args: Sequence[str] = (),
    ) -> None:
        self.version = version
        self.programs = find_programs(version)
        self.workdir = Path(workdir).resolve()
        self.workdir.mkdir(parents=True, exist_ok=True)
        self.minor = int(version.split(".")[1])
        self._ports = Ports()
        self._local = threading.local()
        self._life = 0
        self._marks = 0

        self.admin_token = secrets.token_hex(16)
        self.scheduler_token = secrets.token_hex(16)
        self.admin_kubeconfig = self.workdir / "admin.kubeconfig"
        self.scheduler_kubeconfig = self.workdir / "scheduler.kubeconfig"
        self.audit_log = self.workdir / "audit.log"

        self._etcd_port = self._ports.take()
        self.port = self._ports.take()
        self.url = f"https://127.0.0.1:{self.port}"
        self.ca_file = self.workdir / "apiserver-certs" / "apiserver.crt"
        self.clients = Authority(self.workdir, "clients")  # their certificates name users
        self.etcd = self._make_etcd()
        self.apiserver = self._make_apiserver(apiserver_args)
        self.scheduler: Component | None = None
        self.controller_manager: Component | None = None
        self._more: list[Component] = []

    # ---- life ---------------------------------------------------------------------------

    def __enter__(self) -> ControlPlane:
        try:
            self._write_credentials()
            self.etcd.start()
            self.apiserver.start()
            self.write_kubeconfig(self.admin_kubeconfig, self.admin_token)
            self.write_kubeconfig(self.scheduler_kubeconfig, self.scheduler_token)
            # The API server makes it after it is ready.
            wait_for(lambda: self._exists("/api/v1/namespaces/default"), "namespace default")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kills everything that runs, clients first; calling it twice does no harm."""
        parts = (self.scheduler, *self._more, self.controller_manager, self.apiserver, self.etcd)
        for component in parts:
            if component is not None:
                component.kill()
        self._drop_connection()
        self._ports.close()

    def start_scheduler(
        self,
        url_prefix: str | None = None,
        *,
        config: str | None = None,
        args: Sequence[str] = ("--v=2",),
        wait: bool = True,
        **render: Any,
    ) -> Component:
        """Starts kube-scheduler with the shipped configuration, or with config's text.

        url_prefix is the extender's, None leaves it out; wait: until it is ready;
        further keywords go to scheduler_config.render.
        """
        if self.scheduler is not None and self.scheduler.alive:
            raise RuntimeError("the scheduler runs already")
        if config is None:
            config = self._render(url_prefix, **render)
        (self.workdir / "scheduler.yaml").write_text(config)
        self.scheduler = self._make_client(
            "kube-scheduler",
            ["--config", str(self.workdir / "scheduler.yaml"), *args],
            self.scheduler_kubeconfig,
            "/readyz" if self.minor > 30 else "/healthz",
        )
        if wait:
            self.scheduler.start()
        else:
            self.scheduler.launch()
        return self.scheduler

    def end_scheduler(self) -> None:
        """Ends kube-scheduler with SIGTERM."""
        if self.scheduler is not None and self.scheduler.alive:
            self.scheduler.terminate()

    def make_scheduler(self, name: str, url_prefix: str | None, **render: Any) -> Component:
        """Makes another kube-scheduler without starting it; name is the name of its log."""
        config = self._render(url_prefix, **render)
        (self.workdir / f"{name}.yaml").write_text(config)
        scheduler = self._make_client(
            "kube-scheduler",
            ["--config", str(self.workdir / f"{name}.yaml"), "--v=2"],
            self.scheduler_kubeconfig,
            "/healthz",  # a kube-scheduler that does not lead is not ready
            name=name,
        )
        self._more.append(scheduler)
        return scheduler

    def _render(self, url_prefix: str | None, **render: Any) -> str:
        """
        The shipped configuration; v1beta1's plain port is a free one, as tests may run in parallel.
        """
        if self.minor < 23:
            render["plain_port"] = self._ports.take()
        return scheduler_config.render(
            self.version, self.scheduler_kubeconfig, url_prefix, **render
        )

    def start_controller_manager(self, controllers: Iterable[str] = CONTROLLERS) -> Component:
        """Starts kube-controller-manager with the named controllers alone."""
        if self.controller_manager is not None and self.controller_manager.alive:
            raise RuntimeError("the controller manager runs already")
        argv = [
            "--controllers", ",".join(controllers),
            "--kubeconfig", str(self.admin_kubeconfig),
            "--leader-elect=false",
            "--kube-api-qps=1000", "--kube-api-burst=1000",
        ]  # fmt: skip
        if self.minor < 23:
            argv.append("--port=0")  # its plain HTTP port listens on all interfaces
        self.controller_manager = self._make_client(
            "kube-controller-manager", argv, self.admin_kubeconfig, "/healthz"
        )
        self.controller_manager.start()
        return self.controller_manager

    # ---- requests -----------------------------------------------------------------------

    def api(
        self,
        method: str,
        path: str,
        body: Json = None,
        token: str | None = None,
        content_type: str = "application/json",
        timeout: float = 30.0,
    ) -> tuple[int, Json]:
        """One request; returns the status and the parsed body (text if it is no JSON).

        The user is the admin unless a token is given. Each thread keeps one connection. A failed
        request is not repeated: OSError or HTTPException tell the caller that the result of the
        request is unknown.
        """
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token or self.admin_token}"}
        if data is not None:
            headers["Content-Type"] = content_type
        connection = self._connection(timeout)
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            answer = response.read()
        except BaseException:
            self._drop_connection()
            raise
        try:
            return response.status, json.loads(answer.decode(errors="replace"))
        except ValueError:
            return response.status, answer.decode(errors="replace")

    def must(self, method: str, path: str, body: Json = None, **options: Any) -> Json:
        """api() that returns the body alone and raises ApiError unless it was a 2xx."""
        status, answer = self.api(method, path, body, **options)
        if not 200 <= status < 300:
            raise ApiError(f"{method} {path}", status, answer)
        return answer

    def list_all(self, path: str, limit: int = 500, **query: str) -> list[Json]:
        """All items of a collection, in pages; query may hold a fieldSelector."""
        while True:
            try:
                return list(self._pages(path, limit, query))
            except ApiError as error:
                if error.status != 410:  # its continue token expired: start the list again
                    raise

    def kubectl(
        self,
        *args: str,
        stdin: str | None = None,
        check: bool = True,
        kubeconfig: Path | None = None,
        timeout: float = 60.0,
    ) -> subprocess.CompletedProcess[str]:
        """Runs the real kubectl, as the admin unless given another kubeconfig."""
        result = subprocess.run(
            [self.programs / "kubectl", "--kubeconfig", kubeconfig or self.admin_kubeconfig, *args],
            input="" if stdin is None else stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=self.workdir,
            env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.workdir)},
            preexec_fn=die_with_parent(),
        )
        if check and result.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(args)}: {result.stdout}{result.stderr}")
        return result

    # ---- credentials --------------------------------------------------------------------

    def write_kubeconfig(
        self, path: str | os.PathLike[str], token: str, server: str | None = None
    ) -> Path:
        """Writes a kubeconfig; server may name a proxy before the API server."""
        authority = base64.b64encode(self.ca_file.read_bytes()).decode()
        text = f"""\
apiVersion: v1
kind: Config
current-context: test
clusters:
- name: test
  cluster:
    server: {server or self.url}
    certificate-authority-data: {authority}
users:
- name: test
  user:
    token: {token}
contexts:
- name: test
  context: {{cluster: test, user: test}}
"""
        path = Path(path)
        path.touch(mode=0o600)
        path.write_text(text)
        return path

    def cardpack_token(self, seconds: int = 6 * 3600) -> str:
        """Makes cardpack's ServiceAccount with the rights of manifests/; a token of it."""
        self.kubectl("apply", "-f", str(CARDPACK_RIGHTS))
        return self.service_account_token("kube-system", "cardpack", seconds)

    def service_account_token(self, namespace: str, name: str, seconds: int = 3600, node: str = "") -> str:
        """Returns a token of a service account, and makes the account if it is missing.

        600 seconds is the least that the API server grants. node: which the token names, as the one of
        a pod there does.
        """
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        if not self._exists(f"{accounts}/{name}"):
            self.must("POST", accounts, {"metadata": {"name": name}})
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        if node:
            uid = self.must("GET", f"/api/v1/nodes/{node}")["metadata"]["uid"]
            bound = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
            request["spec"] = {"expirationSeconds": seconds, "boundObjectRef": bound}
        token: str = self.must("POST", f"{accounts}/{name}/token", request)["status"]["token"]
        return token

    # ---- objects ------------------------------------------------------------------------

    def create_namespace(self, name: str) -> None:
        """Makes a namespace unless it exists."""
        if not self._exists(f"/api/v1/namespaces/{name}"):
            self.must("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def create_node(
        self,
        name: str,
        capacity: Mapping[str, object] | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        ready: bool = True,
        allocatable: Mapping[str, object] | None = None,
    ) -> Json:
        """Makes a node as a kubelet would; capacity adds to ample cpu, memory and pods.

        A node that is not ready also carries the taint: the scheduler reads the taint and not the
        condition, and the controller that sets taints does not run.
        """
        taints = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
        node = {
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, **(labels or {})},
                "annotations": dict(annotations or {}),
            },
            "spec": {} if ready else {"taints": taints},
        }
        self.must("POST", "/api/v1/nodes", node)
        return self.set_node_status(name, capacity or {}, ready, allocatable)

    def set_node_status(
        self,
        name: str,
        capacity: Mapping[str, object],
        ready: bool = True,
        allocatable: Mapping[str, object] | None = None,
    ) -> Json:
        """Writes a node's sizes and Ready condition; keys that are not named keep their values."""
        full = {"cpu": "64", "memory": "512Gi", "pods": "110"}
        full |= {key: str(value) for key, value in capacity.items()}
        usable = full | {key: str(value) for key, value in (allocatable or {}).items()}
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        condition = {
            "type": "Ready",
            "status": "True" if ready else "False",
            "reason": "Test",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        status = {"capacity": full, "allocatable": usable, "conditions": [condition]}
        return self.must(
            "PATCH",
            f"/api/v1/nodes/{name}/status",
            {"status": status},
            content_type="application/strategic-merge-patch+json",
        )

    def create_pod(
        self,
        name: str,
        namespace: str = "default",
        gpu_mem: int | str | None | Sequence[int | str | None] = None,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        resources: Mapping[str, object] | None = None,
        priority_class: str | None = None,
        node_name: str | None = None,
        scheduler_name: str | None = None,
        spec: Mapping[str, Json] | None = None,
    ) -> Json:
        """Makes a pod; a sequence as gpu_mem makes one container for each of its items.

        resources go to the first container, as limits and requests; spec replaces whole fields of the
        spec. The pod has no grace period: without a kubelet the period would never end. So a delete
        (also the scheduler's, when it preempts) removes the pod at once.
        """
        if gpu_mem is None or isinstance(gpu_mem, (int, str)):
            gpu_mem = [gpu_mem]
        containers = []
        for index, amount in enumerate(gpu_mem):
            sizes = {} if amount is None else {GPU_MEM: str(amount)}
            if index == 0:
                sizes |= {key: str(value) for key, value in (resources or {}).items()}
            containers.append(
                {
                    "name": f"c{index}",
                    "image": "example.invalid/none",
                    "resources": {"limits": sizes, "requests": sizes},
                }
            )
        full: dict[str, Json] = {
            "containers": containers,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
        }
        named = {
            "priorityClassName": priority_class,
            "nodeName": node_name,
            "schedulerName": scheduler_name,
        }
        full |= {key: value for key, value in named.items() if value is not None}
        full |= spec or {}
        metadata = {
            "name": name,
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        }
        return self.must(
            "POST", f"/api/v1/namespaces/{namespace}/pods", {"metadata": metadata, "spec": full}
        )

    def create_priority_class(self, name: str, value: int) -> None:
        """Makes a PriorityClass for create_pod's priority_class."""
        self.must(
            "POST",
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"metadata": {"name": name}, "value": value},
        )

    def pod(self, name: str, namespace: str = "default") -> Json | None:
        """The pod, or None."""
        return self._get(f"/api/v1/namespaces/{namespace}/pods/{name}")

    def delete_pod(self, name: str, namespace: str = "default", grace: int = 0) -> None:
        """Deletes a pod; without grace it is gone when this returns."""
        self.must(
            "DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}?gracePeriodSeconds={grace}"
        )

    def set_pod_phase(self, name: str, phase: str, namespace: str = "default") -> None:
        """Plays the kubelet: Running, Succeeded or Failed."""
        self.must(
            "PATCH",
            f"/api/v1/namespaces/{namespace}/pods/{name}/status",
            {"status": {"phase": phase}},
            content_type="application/merge-patch+json",
        )

    def bound_pods(self, namespace: str = "default") -> dict[str, str]:
        """Which pod is bound to which node, by name."""
        pods = self.list_all(f"/api/v1/namespaces/{namespace}/pods")
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in pods
            if pod["spec"].get("nodeName")
        }

    # ---- what was asked of the API server -------------------------------------------------

    def audit_events(self, settle: bool = True) -> Iterator[Json]:
        """All requests in the order in which they ended, as audit.k8s.io/v1 events.

        The API server logs a request after its answer, so settle sends a marker request and waits
        until the log has it.
        """
        if settle and self.apiserver.alive:
            self._marks += 1
            mark = f"/api/v1/namespaces/audit-mark-{self._marks}-{os.getpid()}"
            self.api("GET", mark)
            wait_for(lambda: mark in self._audit_text(), "the audit log")
        for line in self._audit_text().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue  # a line that a SIGKILL cut off

    def bindings_in_audit(self, *users: str) -> dict[str, PodWrites]:
        """The writes to each pod, by "namespace/name"; with users, only their writes.

        This counts promise 4: one Binding for each pod, and no patch or update by cardpack. The
        scheduler patches pods/status of pods that do not fit.
        """
        writes: dict[str, PodWrites] = {}
        for event in self.audit_events():
            what = event.get("objectRef", {})
            verb = event["verb"]
            binding = verb == "create" and what.get("subresource") == "binding"
            if what.get("resource") != "pods" or event["stage"] != "ResponseComplete":
                continue
            if not binding and verb not in ("patch", "update"):
                continue
            who = event["user"]["username"]
            if users and who not in users:
                continue
            entry = writes.setdefault(f"{what['namespace']}/{what['name']}", PodWrites())
            _count(entry, verb, binding, event["responseStatus"]["code"], who)
        return writes

    # ---- etcd -------------------------------------------------------------------------------

    def compact(self) -> None:
        """Makes etcd forget all history: a watch or list from before is 410 Gone.

        The API server still answers what its watch cache holds, so restart it too.
        """
        _, answer = self._etcd_call("/v3/kv/range", {"key": base64.b64encode(b"x").decode()})
        revision = answer["header"]["revision"]
        status, answer = self._etcd_call(
            "/v3/kv/compaction", {"revision": revision, "physical": True}
        )
        if status != 200:
            raise ApiError("compaction", status, answer)

    # ---- inside -----------------------------------------------------------------------------

    def _write_credentials(self) -> None:
        private = {
            "service-account.key": _signing_key(),
            "tokens.csv": f"{self.admin_token},admin,admin,system:masters\n"
            f"{self.scheduler_token},{SCHEDULER_USER},{SCHEDULER_USER},\n",
            "audit-policy.yaml": AUDIT_POLICY,
        }
        for name, text in private.items():
            path = self.workdir / name
            path.touch(mode=0o600)
            path.write_text(text)

    def _make_etcd(self) -> Component:
        client = f"http://127.0.0.1:{self._etcd_port}"
        peer = f"http://127.0.0.1:{self._ports.take()}"
        argv: list[str | os.PathLike[str]] = [
            self.programs / "etcd",
            "--data-dir", self.workdir / "etcd",
            "--listen-client-urls", client,
            "--advertise-client-urls", client,
            "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", peer,
            "--initial-cluster", f"default={peer}",
            "--logger", "zap",
            "--log-level", "warn",
            # Data survive a SIGKILL nevertheless; only a power failure would lose them.
            "--unsafe-no-fsync",
        ]  # fmt: skip
        return Component(
            "etcd", argv, self.workdir, lambda: answers(self._etcd_port, "/health", None)
        )

    def _make_apiserver(self, args: Sequence[str]) -> Component:
        key = self.workdir / "service-account.key"
        argv: list[str | os.PathLike[str]] = [
            self.programs / "kube-apiserver",
            "--etcd-servers", f"http://127.0.0.1:{self._etcd_port}",
            "--bind-address", "127.0.0.1",
            "--advertise-address", "127.0.0.1",
            "--secure-port", str(self.port),
            "--cert-dir", self.ca_file.parent,
            "--token-auth-file", self.workdir / "tokens.csv",
            "--client-ca-file", self.clients.pair.cert,
            "--authorization-mode", "RBAC",
            "--allow-privileged=true",  # as kubeadm sets it
            "--service-account-key-file", key,
            "--service-account-signing-key-file", key,
            "--service-account-issuer", "https://kubernetes.default.svc",
            "--service-cluster-ip-range", "10.0.0.0/24",
            # ServiceAccount needs accounts that no controller makes here; TaintNodesByCondition taints
            # each new node, and no controller would remove the taint.
            "--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition",
            "--audit-policy-file", self.workdir / "audit-policy.yaml",
            "--audit-log-path", self.audit_log,
            "--audit-log-maxsize", "4000",  # MB: of a rotated log only a part would be read
            *args,
        ]  # fmt: skip
        return Component(
            "kube-apiserver",
            argv,
            self.workdir,
            lambda: answers(self.port, "/readyz", self.ca_file, self.admin_token),
            before_start=self._end_audit_line,
            after_change=self._new_life,
        )

    def _make_client(
        self, program: str, args: list[str], kubeconfig: Path, probe: str, name: str = ""
    ) -> Component:
        """A client program of the API server, with its own secure port for probes."""
        port = self._ports.take()
        name = name or program
        certificates = self.workdir / f"{name}-certs"
        argv: list[str | os.PathLike[str]] = [
            self.programs / program,
            "--bind-address", "127.0.0.1",
            "--secure-port", str(port),
            "--cert-dir", certificates,
            "--authentication-kubeconfig", kubeconfig,
            "--authorization-kubeconfig", kubeconfig,
            "--authentication-tolerate-lookup-failure=true",
            *args,
        ]  # fmt: skip
        certificate = certificates / f"{program}.crt"
        return Component(name, argv, self.workdir, lambda: answers(port, probe, certificate))

    def _new_life(self) -> None:
        self._life += 1

    def _connection(self, timeout: float) -> http.client.HTTPSConnection:
        """This thread's connection; a new one if the old one may be dead."""
        held: _Connection | None = getattr(self._local, "held", None)
        now = time.monotonic()
        if held is not None and held.life == self._life and now - held.used < self._IDLE_SECONDS:
            held.used = now
            if held.http.sock is not None:
                held.http.sock.settimeout(timeout)
            return held.http
        self._drop_connection()
        context = ssl.create_default_context(cafile=str(self.ca_file))
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=timeout, context=context
        )
        self._local.held = _Connection(connection, self._life, now)
        return connection

    def _drop_connection(self) -> None:
        held: _Connection | None = getattr(self._local, "held", None)
        if held is not None:
            held.http.close()
            self._local.held = None

    def _get(self, path: str) -> Json | None:
        """The object, or None where there is none."""
        status, answer = self.api("GET", path)
        if status == 404:
            return None
        if status != 200:
            raise ApiError(f"GET {path}", status, answer)
        return answer

    def _exists(self, path: str) -> bool:
        return self._get(path) is not None

    def _pages(self, path: str, limit: int, query: Mapping[str, str]) -> Iterator[Json]:
        token = ""
        while True:
            parameters = {**query, "limit": str(limit)} | ({"continue": token} if token else {})
            page = self.must("GET", f"{path}?{urlencode(parameters, quote_via=quote)}")
            yield from page["items"] or []
            token = page["metadata"].get("continue", "")
            if not token:
                return

    def _audit_text(self) -> str:
        if not self.audit_log.exists():
            return ""
        return self.audit_log.read_text(errors="replace")

    def _end_audit_line(self) -> None:
        """Ends a line that a SIGKILL cut off, so that it does not swallow the next line."""
        if self.audit_log.exists() and not self._audit_text().endswith("\n"):
            with self.audit_log.open("a") as log:
                log.write("\n")

    def _etcd_call(self, path: str, body: Json) -> tuple[int, Json]:
        connection = http.client.HTTPConnection("127.0.0.1", self._etcd_port, timeout=30)
        try:
            connection.request("POST", path, json.dumps(body))
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()


_GATEWAY_TIMEOUT = 504


def _count(entry: PodWrites, verb: str, binding: bool, code: int, user: str) -> None:
    entry.users.add(user)
    good = 200 <= code < 300
    if binding:
        entry.bindings += good
        entry.bindings_unknown += code == _GATEWAY_TIMEOUT
        entry.bindings_refused += not good and code != _GATEWAY_TIMEOUT
    elif good and verb == "patch":
        entry.patches += 1
    elif good:
        entry.updates += 1
