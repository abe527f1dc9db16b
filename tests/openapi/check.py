"""Compares docs/openapi.yaml with the daemon, in both directions. See run."""

from __future__ import annotations

import argparse
import http.client
import json
import random
import re
import secrets
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from component import Ports, wait_for  # noqa: E402
from daemon import Daemon  # noqa: E402
from document import Document, matches  # noqa: E402
from fake_api import write_kubeconfig  # noqa: E402
from generate import spoil, value  # noqa: E402

Json = Any

CLUSTER = ROOT / "config" / "example-cluster.yaml"
GOLDEN = ROOT / "tests" / "golden"
EVENTS = "/ui/events"
ROUNDS = 150  # of each operation with a body
ASKED = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
# Answers that need a misbehaving API server, or a process without memory.
NOT_MADE = {("explainPod", "502"), ("createPod", "503"), ("deletePod", "503")}
# Answers that all routes share: one route must show each.
COMMON = {"401", "431", "503"}


class Check:
    """Counts the checks, and sends requests to daemons."""

    def __init__(self, binary: Path, workdir: Path, seed: int) -> None:
        self.binary = binary
        self.workdir = workdir
        self.chance = random.Random(seed)
        self.document = Document(ROOT / "docs" / "openapi.yaml")
        self.ports = Ports()
        self.daemons: list[Daemon] = []
        self.passed = self.failed = 0

    def say(self, what: str, wrong: list[str]) -> None:
        """Reports one check."""
        if wrong:
            self.failed += 1
            print(f"FAILED  {what}\n        " + "\n        ".join(wrong[:12]), flush=True)
        else:
            self.passed += 1
            print(f"ok      {what}", flush=True)

    def start(self, *flags: str, kubeconfig: Path | None = None) -> Daemon:
        """Starts a daemon; returns when it listens."""
        if kubeconfig is None:
            flags = ("--cluster", str(CLUSTER), *flags)
        name = f"cardpack-{len(self.daemons)}"
        daemon = Daemon(self.binary, self.workdir, self.ports.take(), kubeconfig, flags, name=name)
        self.daemons.append(daemon)
        daemon.launch()
        wait_for(lambda: daemon.log("listening") or not daemon.process.alive, "cardpack to listen")
        if not daemon.process.alive:
            raise RuntimeError(f"cardpack does not start: {daemon.process.tail(3)}")
        return daemon

    def ask(
        self, daemon: Daemon, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, http.client.HTTPMessage, Json, list[str]]:
        """Status, headers, the body parsed or as text, and the errors against the document."""
        if (method, path) == ("GET", EVENTS):
            status, data, got = self._beginning(daemon, headers)
        else:
            status, data, got = daemon.exchange(method, path, body, headers=headers)
        kind = got.get("Content-Type", "")
        text = data.decode()
        if method == "HEAD":
            return status, got, text, [] if text == "" else ["a HEAD has a body"]
        parsed = json.loads(text) if kind.startswith("application/json") else text
        operation = self.document.find(method, path)
        if operation is None:
            wrong = self.document.errors({"$ref": "#/components/schemas/StatusOrError"}, parsed)
        else:
            wrong = self.document.answer_errors(operation, status, kind, parsed)
        return status, got, parsed, [f"{method} {path}: {fault}" for fault in wrong]

    @staticmethod
    def _beginning(
        daemon: Daemon, headers: dict[str, str]
    ) -> tuple[int, bytes, http.client.HTTPMessage]:
        """The beginning of an answer without an end: up to the event that completes the state."""
        connection = daemon.connection()
        try:
            connection.request("GET", EVENTS, headers=headers)
            answer = connection.getresponse()
            if answer.headers["Content-Type"] != "text/event-stream":
                return answer.status, answer.read(), answer.headers
            lines: list[bytes] = []
            while lines[-2:-1] != [b"event: ready\n"]:
                lines.append(answer.readline())
                if lines[-1] == b"":
                    raise RuntimeError(f"the events end: {lines[-5:]}")
            return answer.status, b"".join(lines), answer.headers
        finally:
            connection.close()

    # ---- the checks ---------------------------------------------------------------------------

    def routes(self, daemon: Daemon) -> None:
        """The daemon has all documented routes, and no other method on them."""
        for template in self.document.root["paths"]:
            wrong = []
            path = re.sub(r"{\w+}", "x", template)
            documented = self.document.methods(template)
            near = set().union(*(self.document.methods(p) for p in self.document.root["paths"]
                                 if p == template or "/" not in (p, template)
                                 and (p.startswith(template) or template.startswith(p))))  # fmt: skip
            for method in ASKED:
                body = b"" if method in ("POST", "PUT", "PATCH") else None
                status, headers, answer, faults = self.ask(daemon, method, path, body)
                wrong += faults if method in documented else []
                if method in documented and (status == 405 or "no such path" in str(answer)):
                    wrong.append(f"{method} {path}: is not there: {status}")
                if method not in documented and status not in (404, 405):
                    wrong.append(f"{method} {path}: {status}, and is not documented")
                allow = set(headers.get("Allow", "").split(", ")) - {""}
                if status == 405 and not documented - {"HEAD"} <= allow <= near:
                    wrong.append(f"{method} {path}: Allow is {sorted(allow)}, not {sorted(documented)}")
            self.say(f"route {template}", wrong)

    def no_other_routes(self, daemon: Daemon) -> None:
        """Requests every text in the program that looks like a path."""
        known = list(self.document.root["paths"])
        words = set(re.findall(rb"/[A-Za-z0-9_.~-]+(?:/[A-Za-z0-9_.~-]+)*", self.binary.read_bytes()))
        paths = {word[i:].decode() for word in words for i in range(len(word)) if word[i : i + 1] == b"/"}
        paths |= {path.rstrip("/") + "/x" for path in list(paths)}
        wrong, found = [], set()
        connection = daemon.connection()
        for path in sorted(p for p in paths if len(p) < 80):
            if any(matches(template, path) or template.startswith(path + "/") for template in known):
                found.add(path)
                continue
            for method in ("GET", "POST", "DELETE"):
                connection.request(method, path, b"" if method == "POST" else None)
                answer = connection.getresponse()
                text = answer.read().decode()
                below = any("{" in t and path.startswith(t.partition("{")[0]) for t in known)
                if "no such path" not in text and not (below and answer.status in (404, 405)):
                    wrong.append(f"{method} {path}: {answer.status} {text[:80]}, and is not documented")
        connection.close()
        if len(found) < len(known) // 2:
            wrong.append(f"only {sorted(found)} found in the program: is the search right?")
        self.say(f"no other route, of {len(paths)} asked", wrong)

    def golden(self) -> None:
        """The requests and answers of tests/golden, and recorded requests of real schedulers."""
        wrong, count = [], 0
        for case in sorted(GOLDEN.glob("*/*.req")):
            head, _, text = case.read_text().partition("\n\n")
            method, path = head.split()
            operation = self.document.find(method, path)
            if operation is None:
                continue
            count += 1
            first, _, body = case.with_suffix(".out").read_text().partition("\n\n")
            status, kind = first.split(" ", 1)
            body = body.removesuffix("\n")
            parsed = json.loads(body) if kind.startswith("application/json") else body
            faults = self.document.answer_errors(operation, int(status), kind, parsed)
            wrong += [f"{case.name}: {fault}" for fault in faults]
            if text.startswith("@"):
                sent = json.loads((GOLDEN / text.strip()[1:]).read_text())
                wrong += [f"{text.strip()}: {f}" for f in self.document.request_errors(operation, sent)]
        self.say(f"{count} golden requests and answers", wrong if count > 300 else [f"only {count}"])
        kinds = {"filter": "ExtenderArgs", "prioritize": "ExtenderArgs", "bind": "ExtenderBindingArgs",
                 "preempt": "ExtenderPreemptionArgs"}  # fmt: skip
        wrong, files = [], sorted((GOLDEN / "wire").rglob("*.json"))
        for file in files:
            schema = {"$ref": f"#/components/schemas/{kinds[file.stem.partition('-')[0]]}"}
            faults = self.document.errors(schema, json.loads(file.read_text()))
            wrong += [f"{file.parent.name}/{file.name}: {fault}" for fault in faults]
        self.say(f"{len(files)} requests of real schedulers", wrong if files else ["none is there"])

    def generated(self, daemon: Daemon) -> None:
        """The schema accepts what the daemon accepts, and every answer is valid."""
        for path, method, operation in list(self.document.operations()):
            if "requestBody" not in operation:
                continue
            schema = self.document.deref(operation["requestBody"])["content"]["application/json"]["schema"]
            wrong, counts = [], [0, 0]
            for _ in range(ROUNDS):
                body = value(self.chance, self.document, schema)
                for item in (body, spoil(self.chance, body)):
                    good = not self.document.request_errors(operation, item)
                    counts[good] += 1
                    wrong += self._one(daemon, method, path, item, good)
            if min(counts) < ROUNDS // 8:
                wrong.append(f"{counts} bad and good ones: not a test of both")
            what = f"{operation['operationId']}: {counts[1]} good and {counts[0]} bad requests"
            self.say(what, wrong)

    def _one(self, daemon: Daemon, method: str, path: str, item: Json, good: bool) -> list[str]:
        text = json.dumps(item)
        path = path.replace("{namespace}", f"ns-{self.chance.randrange(9)}")
        status, _, answer, wrong = self.ask(daemon, method, path, text.encode())
        taken = _taken(path, status, answer, item)
        if taken is not None and taken != good:
            schema = "takes" if good else "refuses"
            wrong.append(f"{path}: the schema {schema} {text[:400]}, the daemon says {str(answer)[:300]}")
        return wrong

    def questions(self, daemon: Daemon) -> None:
        """The requests without a body, and the answers for every pod and node of the cluster."""
        wrong = []
        nodes = daemon.inspect()["nodes"]
        pods = {(p["namespace"], p["name"]) for n in nodes for d in n["devs"] for p in d["pods"]}
        paths = ["/gpushare-scheduler/inspect", "/gpushare-scheduler/inspect/nowhere", "/version", "/livez"]
        paths += [f"/gpushare-scheduler/inspect/{node['name']}" for node in nodes]
        paths += [f"/gpushare-scheduler/explain/{ns}/{name}" for ns, name in sorted(pods)]
        paths += [path.replace("inspect", "cards") for path in paths]
        paths += [f"{path}?used={used}" for path in paths if "inspect" in path for used in ("true", "false", "x")]
        paths += ["/healthz", "/readyz", "/readyz/leader", "/metrics"]
        for path in [*paths, "/gpushare-scheduler/explain/no/body"]:
            wrong += self.ask(daemon, "GET", path)[3]
        for ns, name in sorted(pods):
            path = f"/api/v1/namespaces/{ns}/pods"
            body = json.dumps({"metadata": {"name": name}}).encode()
            wrong += self.ask(daemon, "POST", path, body)[3]  # exists already
            wrong += self.ask(daemon, "DELETE", f"{path}/{name}")[3]
            wrong += self.ask(daemon, "DELETE", f"{path}/{name}")[3]
        self.say(f"questions about {len(nodes)} nodes and {len(pods)} pods", wrong)

    def cards(self) -> None:
        """All fields about a card, from one cluster."""
        table = [
            {"index": 0, "memory": 16, "model": "A100", "uuid": "GPU-0", "profile": "1g.5gb", "numa": 1},
            {"index": 1, "memory": 16},
        ]
        size = {"aliyun.com/gpu-mem": "32", "aliyun.com/gpu-count": "2"}
        note = {"cardpack.io/cards": json.dumps(table)}
        label = {"cardpack.io/pool": "training"}
        nodes = [
            ({"name": "all", "annotations": note, "labels": label}, size),
            ({"name": "bad", "annotations": {"cardpack.io/cards": "[{}]"}}, size),
            ({"name": "shut", "annotations": {"cardpack.io/cordoned-cards": "0"}}, size),
        ]
        items: list[Json] = [
            {"kind": "Node", "metadata": meta, "status": {"capacity": status, "allocatable": status}}
            for meta, status in nodes
        ]
        asked = {"aliyun.com/gpu-mem": "4"}
        for name, index in (("placed", "0"), ("unplaced", "9")):
            notes = {"ALIYUN_COM_GPU_MEM_IDX": index}
            meta = {"name": name, "namespace": "ns", "uid": name, "annotations": notes}
            spec = {"nodeName": "all", "containers": [{"name": "c", "resources": {"limits": asked}}]}
            items.append({"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running"}})
        usage = {
            "seen": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "cards": [{"index": 0, "usedMiB": 9000, "totalMiB": 16384, "busyPercent": 37}],
            "pods": [{"uid": "placed", "namespace": "ns", "name": "placed", "card": 0, "usedMiB": 8000}],
        }
        meta = {"name": "cardpack-usage-all", "namespace": "kube-system"}
        items.append({"kind": "ConfigMap", "metadata": meta, "data": {"usage": json.dumps(usage)}})
        world = self.workdir / "cards.json"
        world.write_text(json.dumps({"kind": "List", "items": items}))
        daemon = self.start("--cluster", str(world))  # the last flag counts
        _, _, answer, wrong = self.ask(daemon, "GET", "/gpushare-scheduler/cards")
        text = json.dumps(answer)
        told = ("model", "uuid", "profile", "numa", "pool", "fault", "cordoned", "compute", '"id": -1')
        wrong += [f"{word} is not told: {text}" for word in told if word not in text]
        measured = ("measured", "usedMiB", "sizeMiB", "busyPercent", "exceeds")
        wrong += [f"{word} is not told: {text}" for word in measured if word not in text]
        for query in ("?used=true", "", "?used=false"):
            _, _, answer, faults = self.ask(daemon, "GET", f"/gpushare-scheduler/inspect{query}")
            text = json.dumps(answer)
            wrong += faults + [f"{word} in inspect{query}: {text}" for word in measured
                               if (word in text) != (query == "?used=true")]  # fmt: skip
        self.say("the answers about cards", wrong)

    def costs(self) -> None:
        """explain's costs and scores, of a policy with costs that has learned from enough pods."""
        size = {"aliyun.com/gpu-mem": "32", "aliyun.com/gpu-count": "2"}
        items: list[Json] = [
            {"kind": "Node", "metadata": {"name": name}, "status": {"capacity": size, "allocatable": size}}
            for name in ("a", "b", "c")
        ]
        spec = {"containers": [{"name": "c", "resources": {"limits": {"aliyun.com/gpu-mem": "8"}}}]}
        for i in range(40):
            meta = {"name": f"waits-{i}", "namespace": "ns", "uid": f"uid-{i}"}
            items.append({"kind": "Pod", "metadata": meta, "spec": spec})
        world = self.workdir / "costs.json"
        world.write_text(json.dumps({"kind": "List", "items": items}))
        for policy, word in (("bid-price", "cost"), ("fgd", "score")):
            daemon = self.start("--cluster", str(world), "--node-policy", policy)
            verdicts: list[Json] = [{}]
            while word not in verdicts[0]:
                _, _, answer, wrong = self.ask(daemon, "GET", "/gpushare-scheduler/explain/ns/waits-0")
                verdicts = answer["verdicts"]
            seen = [sum(key in v for v in verdicts) for key in (word, "why")]
            self.say(f"explain with the policy {policy}", wrong + ([] if seen == [3, 2] else [str(answer)]))

    def page(self, daemon: Daemon) -> None:
        """Each file of the page, new and unchanged; and the beginning of the events."""
        wrong = []
        files = sorted((ROOT / "src" / "daemon" / "page" / "ui").glob("*.*"))
        for path in ["/ui/", *(f"/ui/{file.name}" for file in files if file.name != "meson.build")]:
            status, got, _, faults = self.ask(daemon, "GET", path)
            wrong += faults + ([] if status == 200 else [f"{path}: {status}"])
            again = {"If-None-Match": got.get("ETag", "")}
            status, _, _, faults = self.ask(daemon, "GET", path, **again)
            wrong += faults + ([] if status == 304 else [f"{path} again: {status}"])
        _, _, text, faults = self.ask(daemon, "GET", EVENTS)
        wrong += faults
        for data in re.findall(r"^data: (.*)$", text, re.MULTILINE):
            json.loads(data)
        if not re.search(r"^event: nodes$", text, re.MULTILINE):
            wrong.append(f"no node before ready: {text[:400]}")
        self.say(f"{len(files)} files of the page, and its events", wrong)

    def refusals(self) -> None:
        """Refusals before routing, and the answers of a daemon that is not ready."""
        token = secrets.token_hex(16)
        (self.workdir / "token").write_text(token)
        shut = self.start("--token-file", str(self.workdir / "token"), "--max-body", "64KiB")
        status, headers, _, wrong = self.ask(shut, "GET", "/readyz")
        if (status, headers.get("WWW-Authenticate")) != (401, "Bearer"):
            wrong.append(f"without a token: {status}")
        many = {f"X-{i}": "y" for i in range(101)} | {"Authorization": f"Bearer {token}"}
        status, _, _, faults = self.ask(shut, "GET", "/version", **many)
        wrong += faults + ([] if status == 431 else [f"101 headers: {status}"])
        allowed = {"Authorization": f"Bearer {token}"}
        for path, _, operation in list(self.document.operations()):
            if "requestBody" in operation:
                path = path.replace("{namespace}", "ns")
                wrong += self.ask(shut, "POST", path, b" " * 70_000, **allowed)[3]
        nobody = write_kubeconfig(self.workdir / "kubeconfig", "http://127.0.0.1:9")
        waits = self.start(kubeconfig=nobody)
        pod = {"metadata": {"name": "p"}}
        for method, path, body in (
            ("GET", "/readyz", None),
            ("GET", "/gpushare-scheduler/cards", None),
            ("GET", "/gpushare-scheduler/cards/n", None),
            ("GET", "/gpushare-scheduler/explain/a/b", None),
            ("POST", "/gpushare-scheduler/explain", pod),
            ("POST", "/gpushare-scheduler/fit", {"pod": pod}),
        ):
            data = None if body is None else json.dumps(body).encode()
            status, _, _, faults = self.ask(waits, method, path, data)
            wrong += faults + ([] if status == 503 else [f"not ready, {path}: {status}"])
        for path in ("/gpushare-scheduler/filter", "/gpushare-scheduler/prioritize"):
            args = {"Pod": pod, "NodeNames": ["n1"]}
            wrong += self.ask(waits, "POST", path, json.dumps(args).encode())[3]
        for path in ("/api/v1/namespaces/a/pods", "/api/v1/namespaces/a/pods/b"):
            wrong += self.ask(waits, "DELETE" if path.endswith("b") else "POST", path, b"")[3]
        self.say("refusals: no token, too many headers, too large, not ready", wrong)

    def any_case(self, daemon: Daemon) -> None:
        """Rules in the document's text: the case of letters, HEAD, the embedded cluster's YAML."""
        wrong = []
        body = b'{"pod":{"metadata":{"name":"p"}},"nodenames":["web-0"]}'
        answer = self.ask(daemon, "POST", "/gpushare-scheduler/filter", body)
        wrong += answer[3] + ([] if answer[2]["NodeNames"] == ["web-0"] else [str(answer[2])])
        body = b"pod: {metadata: {name: p}}\nreplicas: 2\n"
        answer = self.ask(daemon, "POST", "/gpushare-scheduler/fit", body)
        wrong += answer[3] + ([] if answer[2].get("replicas") == 2 else [str(answer[2])])
        self.say("letters of any case; YAML", wrong)

    def all_seen(self) -> None:
        """Every documented status has occurred in an answer."""
        wrong = []
        for path, method, operation in self.document.operations():
            for status in operation["responses"]:
                pair = (operation["operationId"], status)
                if pair not in self.document.seen | NOT_MADE and status not in COMMON:
                    wrong.append(f"{method} {path}: {status} was never seen")
        statuses = {status for _, status in self.document.seen}
        wrong += [f"{status} was never seen" for status in sorted(COMMON - statuses)]
        self.say("every documented status was seen", wrong)

    def run(self) -> None:
        """Runs all checks."""
        self.say("docs/openapi.yaml is an OpenAPI document", self.document.faults())
        if self.failed:
            return
        daemon = self.start()
        self.routes(daemon)
        self.no_other_routes(daemon)
        self.golden()
        self.questions(daemon)
        self.cards()
        self.costs()
        self.page(daemon)
        self.generated(daemon)
        self.any_case(daemon)
        self.refusals()
        self.all_seen()
        for one in self.daemons:
            one.stop()


def _taken(path: str, status: int, answer: Json, item: Json) -> bool | None:
    """Whether the daemon could read the request; None if the answer does not show it."""
    if path.endswith(("/explain", "/fit")):
        return status != 400
    if path.endswith("/filter"):
        return not answer["Error"].startswith("ExtenderArgs")
    if path.endswith("/bind"):
        return not answer["Error"].startswith("ExtenderBindingArgs")
    return None


def main() -> int:
    """See run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cardpack-openapi-") as workdir:
        check = Check(args.binary.resolve(), Path(workdir), args.seed)
        try:
            check.run()
        finally:
            for daemon in check.daemons:
                daemon.process.kill()
            check.ports.close()
    print(f"{check.passed} passed, {check.failed} failed")
    return int(check.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
