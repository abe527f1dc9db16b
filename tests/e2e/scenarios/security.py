"""The port: TLS, client certificates, tokens, and settings with which cardpack does not start."""

from __future__ import annotations

import http.client
import os
import ssl
import subprocess
from pathlib import Path
from typing import Any

from bench import CARDPACK_USER, PATIENCE, Bench, Lab, agree, check, scenario
from certificates import Authority, Pair, trust
from component import wait_for
from daemon import VERBS, Daemon
from fake_lab import fake_lab

from .confined import under_profile

Json = Any

PODS = 60
REPLACED = "the server's certificate is replaced"
FIRST, SECOND = "e2e-first-token-of-all", "e2e-second-token-of-all"


class Secure:
    """A CA for servers, one for clients, and cardpack's flags for them."""

    def __init__(self, workdir: Path) -> None:
        self.ca = Authority(workdir, "server-ca")
        self.clients = Authority(workdir, "client-ca")
        self.folder = workdir / f"mounted-{os.urandom(4).hex()}"
        self.served = self.certificate().put(self.folder)
        self.client = self.clients.sign("system:kube-scheduler", "clientAuth")

    def certificate(self) -> Pair:
        """A new certificate for the server."""
        return self.ca.sign("cardpack", "serverAuth", "IP:127.0.0.1,DNS:cardpack.kube-system.svc")

    def flags(self) -> list[str]:
        """The flags for the server's certificate alone."""
        return ["--tls-cert-file", str(self.served.cert), "--tls-key-file", str(self.served.key)]

    def client_flags(self) -> list[str]:
        """The same with the clients' CA."""
        return ["--client-ca-file", str(self.clients.pair.cert)]

    def scheduler_lines(self) -> tuple[str, ...]:
        """The lines for them in kube-scheduler's configuration."""
        return (
            "enableHTTPS: true",
            "tlsConfig:",
            f"  caFile: {self.ca.pair.cert}",
            f"  certFile: {self.client.cert}",
            f"  keyFile: {self.client.key}",
        )


def attempt(daemon: Daemon, context: ssl.SSLContext | None, pod: Json, node: str) -> str:
    """The result of a bind with that context: "bound", "status 401", or "no answer"."""
    was, daemon.tls = daemon.tls, context
    ask = {
        "PodName": pod["metadata"]["name"],
        "PodNamespace": pod["metadata"]["namespace"],
        "PodUID": pod["metadata"]["uid"],
        "Node": node,
    }
    try:
        status, answer = daemon.call("POST", f"{VERBS}/bind", ask)
    except (OSError, http.client.HTTPException):
        return "no answer"
    finally:
        daemon.tls = was
    if status != 200:
        return f"status {status}"
    return "bound" if answer["Error"] == "" else answer["Error"]


def serial_of(daemon: Daemon) -> str:
    """The serial number of the certificate on a new connection."""
    connection = daemon.connection()
    try:
        connection.connect()
        assert isinstance(connection.sock, ssl.SSLSocket)
        shown = connection.sock.getpeercert()
        assert shown is not None
        return str(shown["serialNumber"])
    finally:
        connection.close()


@scenario("real")
def tls_through_the_scheduler(bench: Bench) -> None:
    """
    kube-scheduler binds over TLS with a client certificate while the server's certificate is replaced:
    no call fails.
    """
    secure = Secure(bench.workdir)
    for i in range(4):
        bench.node(f"n{i}", 4, 16)
    daemon = bench.cardpack(
        *secure.flags(), *secure.client_flags(), "--client-names", "system:kube-scheduler",
        tls=trust(secure.ca, secure.client),
    )  # fmt: skip
    agree(daemon, bench.truth)
    bench.start_scheduler("https", extender_lines=secure.scheduler_lines())
    try:
        assert bench.cluster.scheduler is not None
        log = bench.cluster.scheduler.log
        begin = log.stat().st_size
        first = serial_of(daemon)
        bench.pods([f"a{i:02}" for i in range(PODS)], [2] * PODS)
        secure.certificate().put(secure.folder)
        bench.wait_bound(PODS)
        # Before and after it, some on existing connections and some on new ones.
        wait_for(lambda: daemon.log(REPLACED), REPLACED, PATIENCE)
        check(serial_of(daemon) != first, "a new connection is shown the old certificate")
        bench.pods([f"b{i:02}" for i in range(PODS)], [2] * PODS)
        bench.wait_bound(2 * PODS)
        bench.verify(daemon)
        check(not daemon.log("refused"), daemon.log("refused"))
        said = log.read_bytes()[begin:].decode(errors="replace")
        for word in ("x509", "tls:", "EOF", "connection reset", "connection refused"):
            lines = [line for line in said.splitlines() if word in line and "gpushare" in line]
            check(not lines, lines[:3])
    finally:
        bench.start_scheduler()


@scenario("real")
def bind_without_the_right_certificate(bench: Bench) -> None:
    """A bind with no, a wrong or an expired certificate is refused, and no Binding is written."""
    secure = Secure(bench.workdir)
    other = Authority(bench.workdir, "other-ca")
    bench.node("n1", 2, 16)
    daemon = bench.cardpack(
        *secure.flags(), *secure.client_flags(), "--client-names", "system:kube-scheduler",
        tls=trust(secure.ca, secure.client),
    )  # fmt: skip
    agree(daemon, bench.truth)
    pod = bench.own_pod("wanted", 2)
    wrong = {
        "none": None,
        "another CA's": other.sign("system:kube-scheduler", "clientAuth"),
        "the server CA's": secure.ca.sign("system:kube-scheduler", "clientAuth"),
        "expired": secure.clients.sign("system:kube-scheduler", "clientAuth", days=-1),
        "a server's": secure.clients.sign("system:kube-scheduler", "serverAuth"),
        "another name's": secure.clients.sign("system:node:n1", "clientAuth"),
    }
    for name, pair in wrong.items():
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = trust(secure.ca, pair, version)
            what = attempt(daemon, context, pod, "n1")
            check(what == "no answer", f"with {name} certificate, {version.name}: {what}")
    check(attempt(daemon, None, pod, "n1") == "no answer", "in plain HTTP")
    old = trust(secure.ca, secure.client)
    old.set_ciphers("DEFAULT:@SECLEVEL=0")
    old.minimum_version = ssl.TLSVersion.TLSv1
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    check(attempt(daemon, old, pod, "n1") == "no answer", "with TLS 1.1")
    check(not bench.get("wanted")["spec"].get("nodeName"), "it is bound")
    written = bench.cluster.bindings_in_audit(CARDPACK_USER)
    check(f"{bench.namespace}/wanted" not in written, written)
    told = sum(entry["count"] for entry in daemon.log("refused"))
    check(told >= 1, "no log line about it")
    check(attempt(daemon, daemon.tls, pod, "n1") == "bound", "with the right certificate")
    bench.verify(daemon)


@scenario("real")
def bind_without_the_right_token(bench: Bench) -> None:
    """A bind needs the file's token, also after a replacement; no log contains it."""
    secure = Secure(bench.workdir)
    bench.node("n1", 2, 16)
    file = bench.workdir / f"{bench.scenario}.token"
    file.write_text(FIRST + "\n")
    daemon = bench.cardpack(
        *secure.flags(), *secure.client_flags(), "--token-file", str(file),
        tls=trust(secure.ca), token=FIRST,
    )  # fmt: skip
    agree(daemon, bench.truth)
    pods = [bench.own_pod(f"p{i}", 2) for i in range(4)]

    def bind(token: str | None, pod: Json, client: Pair | None = None) -> str:
        daemon.token = token
        return attempt(daemon, trust(secure.ca, client), pod, "n1")

    for token in (None, SECOND, FIRST[:-1], FIRST + "x", ""):
        check(bind(token, pods[0]) == "status 401", f"with token {token}")
    status, _, headers = daemon.exchange("POST", f"{VERBS}/bind", b"{}")
    check((status, headers["WWW-Authenticate"]) == (401, "Bearer"), f"{status} {headers}")
    written = bench.cluster.bindings_in_audit(CARDPACK_USER)
    check(f"{bench.namespace}/p0" not in written, written)
    check(bind(FIRST, pods[0]) == "bound", "with the token")
    # During the replacement both tokens are valid, and then only the second.
    for text, good, bad in ((f"{FIRST}\n{SECOND}\n", SECOND, None), (SECOND, SECOND, FIRST)):
        file.with_suffix(".new").write_text(text)
        os.replace(file.with_suffix(".new"), file)
        check(bind(good, pods[1] if bad is None else pods[2]) == "bound", f"after {text!r}")
    daemon.token = FIRST
    inspect = ("GET", f"{VERBS}/inspect")
    wait_for(lambda: daemon.call(*inspect)[0] == 401, "the first token to be turned away", PATIENCE)
    check(bind(FIRST, pods[3]) == "status 401", "with the first token")
    # A client with a certificate needs no token.
    check(bind(None, pods[3], secure.client) == "bound", "with a certificate and no token")
    daemon.token = SECOND
    bench.verify(daemon)
    log = daemon.process.log.read_text()
    check(FIRST not in log and SECOND not in log, "a token is in the log")


@scenario("fake")
def broken_certificates(lab: Lab) -> None:
    """A certificate and key that do not match leave the old pair in use, and are logged once."""
    with fake_lab(lab) as fake:
        secure = Secure(lab.workdir)
        daemon = fake.cardpack(
            *secure.flags(), *secure.client_flags(), tls=trust(secure.ca, secure.client)
        )
        agree(daemon, fake.truth)
        first = serial_of(daemon)
        good, strange = secure.certificate(), secure.certificate()
        Pair(good.cert, strange.key).put(secure.folder)
        message = "the port's new certificates cannot be used: the old ones stay"
        wait_for(lambda: daemon.log(message), message, PATIENCE)
        check(serial_of(daemon) == first, "another certificate than before")
        good.put(secure.folder)
        wait_for(lambda: daemon.log(REPLACED), REPLACED, PATIENCE)
        check(serial_of(daemon) != first, "the same certificate as before")
        check(len(daemon.log(message)) == 1, daemon.log(message))
        fake.verify(daemon)


@scenario("fake")
def tls_under_the_profile(lab: Lab) -> None:
    """The seccomp profile is sufficient for TLS: handshakes, refusals, replaced files."""
    binary = under_profile(lab)
    with fake_lab(lab) as fake:
        secure = Secure(lab.workdir)
        daemon = fake.cardpack(
            *secure.flags(), *secure.client_flags(), tls=trust(secure.ca, secure.client),
            binary=binary,
        )  # fmt: skip
        pod = fake.pod("wanted", 2)
        check(attempt(daemon, trust(secure.ca), pod, "n1") == "no answer", "without a certificate")
        check(attempt(daemon, None, pod, "n1") == "no answer", "in plain HTTP")
        secure.certificate().put(secure.folder)
        wait_for(lambda: daemon.log(REPLACED), REPLACED, PATIENCE)
        check(attempt(daemon, daemon.tls, pod, "n1") == "bound", "with the certificate")
        fake.verify(daemon)


@scenario("fake")
def probes_beside_tls(lab: Lab) -> None:
    """The kubelet needs no certificate: the port for probes answers it, and serves nothing else."""
    with fake_lab(lab) as fake:
        secure = Secure(lab.workdir)
        port = lab.ports.take()
        daemon = fake.cardpack(
            *secure.flags(), *secure.client_flags(), "--probe-port", str(port),
            tls=trust(secure.ca, secure.client),
        )  # fmt: skip
        agree(daemon, fake.truth)
        pod = fake.pod("wanted", 2)
        check(attempt(daemon, trust(secure.ca), pod, "n1") == "no answer", "without a certificate")
        for path in ("/healthz", "/livez", "/readyz"):
            check(daemon.call("GET", path) == (200, "ok\n"), f"{path} on the main port")
        main, daemon.tls = (daemon.port, daemon.tls), None
        daemon.port = port
        for path in ("/healthz", "/livez", "/readyz"):
            check(daemon.call("GET", path) == (200, "ok\n"), path)
        check(daemon.call("GET", "/version")[0] == 200, "/version")
        check(attempt(daemon, None, pod, "n1") == "status 404", "a bind on the port for probes")
        for method, path in (("POST", f"{VERBS}/filter"), ("GET", f"{VERBS}/inspect")):
            check(daemon.call(method, path)[0] == 404, f"{method} {path}")
        daemon.port, daemon.tls = main
        check(fake.node_of("wanted") == "", "it is bound")
        check(attempt(daemon, daemon.tls, pod, "n1") == "bound", "with the certificate")
        fake.verify(daemon)


@scenario("fake")
def what_is_not_started(lab: Lab) -> None:
    """Plain HTTP on an address other than loopback, and invalid settings, end cardpack at once."""
    with fake_lab(lab) as fake:
        secure = Secure(lab.workdir)
        token = lab.workdir / "short.token"
        token.write_text("short")
        start = [lab.options.binary, "--kubeconfig", fake.kubeconfig, "--port", str(lab.port)]
        refused = [
            (["--listen-address", "0.0.0.0"], ["listen-address", "allow-plain-http"]),
            (["--listen-address", "::"], ["listen-address", "tls-cert-file"]),
            (["--tls-cert-file", "x"], ["tls-cert-file", "tls-key-file"]),
            (secure.client_flags(), ["client-ca-file", "tls-cert-file"]),
            (["--client-names", "x"], ["client-names", "client-ca-file"]),
            (["--listen-address", "0.0.0.0", "--allow-plain-http=true", "--token-file", str(token)],
             ["token-file", "tls-cert-file"]),
            (["--token-file", str(token)], ["can be guessed", str(token)]),
            ([*secure.flags()[:2], "--tls-key-file", str(secure.client.key)],
             ["tls-key-file", "do not match"]),
            ([*secure.flags(), "--client-ca-file", str(secure.client.key)],
             ["client-ca-file", str(secure.client.key)]),
        ]  # fmt: skip
        for flags, words in refused:
            done = subprocess.run([*start, *flags], capture_output=True, text=True, timeout=60)
            check(done.returncode in (1, 2), f"{flags}: {done.returncode} {done.stderr}")
            last = [line for line in done.stderr.splitlines() if words[0] in line]
            check(last and all(word in last[0] for word in words), f"{flags}: {done.stderr}")
            check("short" not in done.stderr.replace(str(token), ""), "a token is in the log")
        daemon = fake.cardpack("--listen-address", "0.0.0.0", "--allow-plain-http=true")
        warned = daemon.log("plain HTTP, and not on loopback: every client that reaches the port can bind pods")
        check(len(warned) == 1 and warned[0]["level"] == "warn", warned)
        fake.verify(daemon)
