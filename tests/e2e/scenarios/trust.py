"""With a given CA only that CA counts: a server of another CA that the system trusts gets no token."""

from __future__ import annotations

import base64
import http.server
import json
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import PATIENCE, Lab, Skipped, check, scenario
from certificates import Authority, Pair
from component import Component, wait_for
from daemon import _SANITIZERS

TOKEN = "token-of-nobody-else"
HERE = "IP:127.0.0.1"
SYSTEM = "/etc/ssl/certs"  # Debian's folder; the test checks that cardpack uses it
REFUSED = "certificate problem"
# $1 is a CA, which becomes the system's only one; $2 and following are the program.
TRUSTING = f"""\
#!/bin/sh
exec unshare --mount sh -ec '
mount --make-rprivate /
mount -t tmpfs none {SYSTEM}
cp "$0" {SYSTEM}/ca.pem
cp "$0" {SYSTEM}/ca-certificates.crt
openssl rehash {SYSTEM} 2> /dev/null
exec "$@"' "$@"
"""


class Impostor(http.server.BaseHTTPRequestHandler):
    """An API server without objects that records requests; a proxy that forwards nothing."""

    protocol_version = "HTTP/1.1"
    seen: list[str]

    def do_GET(self) -> None:
        """A list, or a watch that ends at once."""
        self.seen.append(f"GET {self.headers.get('Authorization', '')}")
        body = json.dumps({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []})
        self._answer(200, "" if "watch=" in self.path else body)

    def do_CONNECT(self) -> None:
        """Records the request; nothing else matters."""
        self.seen.append("CONNECT")
        self._answer(502, "")

    def _answer(self, status: int, body: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


@contextmanager
def impostor(pair: Pair) -> Iterator[tuple[str, list[str]]]:
    """Starts it; yields its URL and the recorded requests."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    seen: list[str] = []
    handler = type("Handler", (Impostor,), {"seen": seen})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # ignores clients that do not trust it
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://127.0.0.1:{server.server_port}", seen
        server.shutdown()


class World:
    """Two CAs, of which the system trusts one, and programs that run on that system."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.folder = lab.workdir / lab.scenario
        self.folder.mkdir()
        self.cluster = Authority(self.folder, "cluster")
        self.system = Authority(self.folder, "system")
        self.script = self.folder / "trusting"
        self.script.write_text(TRUSTING)
        self.script.chmod(0o755)
        self.token = self.folder / "token"
        self.token.write_text(TOKEN)
        # Variables from which the libraries or their tools might read more CAs.
        bundle = str(self.system.pair.cert)
        self.env = {"SSL_CERT_FILE": bundle, "CURL_CA_BUNDLE": bundle, "SSL_CERT_DIR": SYSTEM}

    def argv(self, program: Path, *args: str | Path) -> list[str]:
        """The program on a system that trusts the CA `system` alone."""
        return [str(a) for a in (self.script, self.system.pair.cert, program, *args)]

    def kubeconfig(self, server: str, **cluster: str) -> Path:
        """Writes a kubeconfig with a token and further fields of the cluster."""
        path = self.folder / "kubeconfig"
        fields = {"server": server} | {k.replace("_", "-"): v for k, v in cluster.items()}
        config = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": fields}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
        }
        path.write_text(json.dumps(config))
        return path

    def daemon_says(self, kubeconfig: Path, *words: str) -> str:
        """Runs cardpack until its log contains one of the words."""
        argv = self.argv(self.lab.options.binary, "--kubeconfig", kubeconfig, "--port", "0",
                         "--log-level", "debug", "--log-format", "json")  # fmt: skip
        name = f"cardpack-{self.lab.scenario}"
        process = Component(name, argv, self.folder, lambda: True, env=_SANITIZERS | self.env)
        process.log.unlink(missing_ok=True)
        process.launch()
        try:
            wait_for(lambda: any(w in process.tail(1000) for w in words), f"{words}", PATIENCE)
            process.terminate()
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{process.tail(1000)}") from None
        finally:
            process.kill()
        check(process.status == 0, f"its end: {process.status}")
        return process.tail(1000)

    def plugin_says(self, *args: str | Path) -> str:
        """Runs kubectl-cardpack to its end."""
        program = self.lab.options.binary.parent / "kubectl-cardpack"
        env = {"PATH": os.defpath, "HOME": str(self.folder)} | _SANITIZERS | self.env
        done = subprocess.run(
            self.argv(program, *args), capture_output=True, text=True, timeout=PATIENCE, env=env,
            check=False,
        )  # fmt: skip
        check(done.returncode in (0, 1), f"{args}: {done.returncode} {done.stderr}")
        return done.stderr

    def authorities(self) -> list[dict[str, str]]:
        """The ways in which a kubeconfig gives the cluster's CA."""
        cert = self.cluster.pair.cert
        text = base64.b64encode(cert.read_bytes()).decode()
        return [{"certificate_authority": str(cert)}, {"certificate_authority_data": text}]


def needs_mounts() -> None:
    """Skips the scenario if a process can't have its own mounts."""
    if os.geteuid() != 0:
        raise Skipped("it takes root to mount")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        raise Skipped("no mount namespaces here")


@scenario("fake")
def the_given_ca_alone(lab: Lab) -> None:
    """A false API server, and a false daemon, have a certificate of a CA that the system trusts."""
    needs_mounts()
    world = World(lab)
    with impostor(world.system.sign("false", "serverAuth", HERE)) as (url, seen):
        # The system trusts it: a kubeconfig without a CA leads to it, as in client-go.
        bare = world.kubeconfig(url)
        world.daemon_says(bare, "list failed", "list is in")
        check(f"GET Bearer {TOKEN}" in seen, f"the daemon, without a CA: {seen}")
        seen.clear()
        for given in world.authorities():
            config = world.kubeconfig(url, **given)
            said = world.daemon_says(config, "list failed", "list is in")
            check(not seen and REFUSED in said, f"the daemon, {list(given)}: {seen}")
        for flag in ("--server", "--daemon-url"):
            flags = (flag, url, "--token-file", world.token)
            world.plugin_says("top", *flags)
            check(f"GET Bearer {TOKEN}" in seen, f"the plugin, {flag}, without a CA: {seen}")
            seen.clear()
            said = world.plugin_says("top", *flags, "--certificate-authority", world.cluster.pair.cert)
            check(not seen and REFUSED in said, f"the plugin, {flag}: {seen} {said}")
    with impostor(world.cluster.sign("true", "serverAuth", HERE)) as (url, seen):
        for given in world.authorities():
            config = world.kubeconfig(url, **given)
            world.daemon_says(config, "list failed", "list is in")
            check(f"GET Bearer {TOKEN}" in seen, f"the daemon, {list(given)}: {seen}")
            seen.clear()
        world.plugin_says("top", "--server", url, "--token-file", world.token,
                          "--certificate-authority", world.cluster.pair.cert)  # fmt: skip
        check(f"GET Bearer {TOKEN}" in seen, f"the plugin: {seen}")


@scenario("fake")
def the_given_ca_alone_for_a_proxy(lab: Lab) -> None:
    """A proxy reached by TLS is verified with the cluster's CA, as in client-go."""
    needs_mounts()
    world = World(lab)
    server = "https://127.0.0.1:1"
    with impostor(world.system.sign("false", "serverAuth", HERE)) as (proxy, seen):
        world.daemon_says(world.kubeconfig(server, proxy_url=proxy), "list failed", "list is in")
        check("CONNECT" in seen, f"without a CA: {seen}")
        seen.clear()
        for given in world.authorities():
            config = world.kubeconfig(server, proxy_url=proxy, **given)
            said = world.daemon_says(config, "list failed", "list is in")
            check(not seen and REFUSED in said, f"{list(given)}: {seen} {said}")
    with impostor(world.cluster.sign("true", "serverAuth", HERE)) as (proxy, seen):
        for given in world.authorities():
            config = world.kubeconfig(server, proxy_url=proxy, **given)
            world.daemon_says(config, "list failed", "list is in")
            check("CONNECT" in seen, f"{list(given)}: {seen}")
            seen.clear()
