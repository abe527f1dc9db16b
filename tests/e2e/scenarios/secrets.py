"""No line that cardpack prints contains its credentials for the API server."""

from __future__ import annotations

import base64
import http.server
import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import Lab, check, scenario
from component import Component, wait_for
from fake_lab import fake_lab

Json = Any

TOKEN = "token-Zq3vX7pLw9"
PASSWORD = "password-Kd8sTn2BfY"
PROXY_PASSWORD = "proxy-Hm5rJc4GzW"
ENV = "env-Vx6tQb1NkD"
# Frequent mistakes in YAML: an alias, a tag and an anchor.
ODD = ("*alias-Pw7yRf3Lj", "!tag-Gs2hUe9Co", "&anchor-Bd4kMi8Xa")
SECOND = 60.0


class Front(http.server.BaseHTTPRequestHandler):
    """An API server without objects, or one that refuses every request."""

    protocol_version = "HTTP/1.1"
    status = 200
    seen: set[str] = set()

    def do_GET(self) -> None:
        """A list, or a watch that ends at once."""
        Front.seen.add(self.headers.get("Authorization", ""))
        kinds = {"nodes": "NodeList", "pods": "PodList", "configmaps": "ConfigMapList"}
        kind = kinds.get(self.path.partition("?")[0].rpartition("/")[2], "List")
        body = json.dumps({"kind": kind, "metadata": {"resourceVersion": "1"}, "items": []})
        if "watch=" in self.path:
            body = ""
        if self.status != 200:
            body = json.dumps({"kind": "Status", "message": "Unauthorized", "code": self.status})
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


@contextmanager
def front(certificate: Path, key: Path, status: int) -> Iterator[str]:
    """Starts it; yields its URL."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    handler = type("Handler", (Front,), {"status": status})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # ignores clients that disconnect
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, and its key."""
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", key, "-out", certificate],
        check=True, capture_output=True, timeout=SECOND,
    )  # fmt: skip
    return certificate, key


def encoded(path: Path) -> str:
    """The file as a kubeconfig has it inline: base64."""
    return base64.b64encode(path.read_bytes()).decode()


@dataclass
class Case:
    """A kubeconfig, and the log's text after cardpack has tried it."""

    name: str
    cluster: str
    user: str
    said: str
    lives: bool = True  # False: cardpack ends by itself, with status 1
    env: Mapping[str, str] = field(default_factory=dict)


def kubeconfig(path: Path, case: Case) -> Path:
    """Writes the case's kubeconfig."""
    path.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
        f"clusters:\n- name: c\n  cluster:\n{case.cluster}"
        f"users:\n- name: u\n  user:\n{case.user}"
    )
    return path


def block(**fields: str) -> str:
    """Fields of a YAML block, without quotes."""
    return "".join(f"    {key.replace('_', '-')}: {value}\n" for key, value in fields.items())


def good_cases(url: str, denying: str, folder: Path, ca: Path) -> list[Case]:
    """Credentials that cardpack sends, accepted or refused."""
    certificate, key = make_certificate(folder, "client")
    stranger = make_certificate(folder, "stranger")
    here = block(server=url, certificate_authority=str(ca))
    there = block(server=denying, certificate_authority=str(ca))
    token = block(token=TOKEN)
    inline = block(client_certificate_data=encoded(certificate), client_key_data=encoded(key))
    password = block(username="me", password=PASSWORD)
    proxied = f"http://me:{PROXY_PASSWORD}@127.0.0.1:1"
    return [
        Case("taken", here, token + inline, '"list is in","kind":"Pod"'),
        Case("turned-away", there, token + inline, "401"),
        Case("password-taken", here, password, '"list is in","kind":"Pod"'),
        Case("password-turned-away", there, password, "401"),
        Case("stranger", block(server=url, certificate_authority=str(stranger[0])), token + inline,
             "SSL certificate problem"),
        Case("wrong-key", here,
             block(client_certificate_data=encoded(certificate), client_key_data=encoded(stranger[1])),
             "list failed"),
        Case("no-token-file", here, block(tokenFile=str(folder / "none")), "No such file", False),
        Case("token-file-is-a-key", here, block(tokenFile=str(key)), "no token has", False),
        Case("torn-key", here,
             block(client_certificate_data=encoded(certificate),
                   client_key_data=base64.b64encode(key.read_bytes()[:600]).decode()), "list failed"),
        Case("proxy-is-away", here + block(proxy_url=proxied), token, "list failed"),
    ]  # fmt: skip


def bad_cases(url: str, ca: Path, key: Path) -> list[Case]:
    """Invalid kubeconfigs, files and environments."""
    here = block(server=url, certificate_authority=str(ca))
    token = block(token=TOKEN)
    proxy = f"me:{PROXY_PASSWORD}@127.0.0.1"
    bad_key = base64.b64encode(f"-----BEGIN {TOKEN}".encode()).decode()
    cut = encoded(key)[:-7] + "*"
    away = "list failed"
    return [
        *(Case(f"odd-{i}", here, block(token=odd), "line ", False) for i, odd in enumerate(ODD[:2])),
        Case("odd-anchor", here, block(token=ODD[2]), '"list is in","kind":"Pod"'),  # so no token
        Case("not-what-its-tag-says", here, block(token=f"!!int {TOKEN}"), "line ", False),
        Case("open-quote", here, block(token=f'"{TOKEN}'), "line ", False),
        Case("open-list", here, block(token=f"[{TOKEN}"), "line ", False),
        Case("two-tokens", here, token + token, "there already", False),
        Case("token-is-a-list", here, block(token=f"[{TOKEN}]"), "expected a string", False),
        Case("token-with-a-blank", here, block(token=f"{TOKEN} x"), "no token has", False),
        Case("no-base64", here, block(client_certificate_data="x", client_key_data=cut),
             "not base64", False),
        Case("no-pem", here, block(client_certificate="x", client_key_data=encoded(ca)[4:]),
             "not ", False),
        Case("key-alone", here, block(client_key_data=bad_key), "without client-cert", False),
        Case("user-in-url", block(server=f"https://me:{PASSWORD}@h"), token, "a user", False),
        Case("user-without-scheme", block(server=f"me:{PASSWORD}@h:6443"), token, "server", False),
        Case("query-in-url", block(server=f"https://h?token={TOKEN}"), token, "server", False),
        Case("query-in-clear", block(server=f"http://h/?t={TOKEN}"), token, "server", False),
        Case("proxy-scheme", here + block(proxy_url=f"ftp://{proxy}"), token, "proxy-url", False),
        Case("proxy-without-scheme", here + block(proxy_url=proxy), token, "proxy-url", False),
        Case("proxy-port", here + block(proxy_url=f"http://{proxy}:99999"), token, away),
        Case("proxy-blank", here + block(proxy_url=f'"http://{proxy} x"'), token, away),
        Case("proxy-name", here + block(proxy_url=f"http://me:{PROXY_PASSWORD}@none.invalid"), token,
             away),
        Case("proxy-of-the-shell", here, token, away,
             env={"https_proxy": f"http://{proxy}:99999", "HTTPS_PROXY": f"ftp://{proxy}:1"}),
        Case("proxy-of-the-shell-odd", here, token, away, env={"https_proxy": f"nope://{proxy}:1"}),
    ]  # fmt: skip


def spellings(secret: str) -> Iterator[str]:
    """The forms in which a secret might be printed."""
    yield secret
    for text in (secret, f"me:{secret}"):
        for shift in range(3):
            whole = base64.b64encode(b" " * shift + text.encode()).decode()
            yield whole[4:-4]  # the part of base64 that does not depend on neighbouring bytes


def forbidden(folder: Path) -> list[str]:
    """All texts that must not be printed."""
    found = [s for secret in (TOKEN, PASSWORD, PROXY_PASSWORD, ENV) for s in spellings(secret)]
    found += [odd[1:] for odd in ODD]
    for key in folder.glob("*.key"):
        lines = [line for line in key.read_text().splitlines() if "-----" not in line]
        found += lines
        found += [base64.b64encode(line.encode()).decode()[4:60] for line in lines]
    return found


def leaks(output: str, words: list[str]) -> list[str]:
    """The lines that contain one of the texts."""
    return [line for line in output.splitlines() if any(word in line for word in words)]


def attempt(lab: Lab, case: Case, folder: Path) -> str:
    """Runs cardpack with that kubeconfig; returns its output until it has tried, and at its end."""
    file = kubeconfig(folder / f"{case.name}.kubeconfig", case)
    argv = [lab.options.binary, "--kubeconfig", file, "--port", "0", "--start-settle", "0s",
            "--log-level", "debug", "--log-format", "json"]  # fmt: skip
    process = Component(f"secrets-{case.name}", argv, folder, lambda: True, env=case.env)

    def text() -> str:
        return "\n".join(process.tail(10_000).splitlines()[1:])  # without the command line

    said = re.compile(re.escape(case.said).replace(r"\",\"", r'",.*"'))
    process.launch()
    try:
        wait_for(lambda: said.search(text()) or not process.alive, case.name, SECOND)
        check(said.search(text()), f"{case.name}: not {case.said!r}: {text()}")
        if case.lives:
            check(process.alive, f"{case.name}: it ended")
            process.terminate()
        wait_for(lambda: not process.alive, f"{case.name}: its end", SECOND)
    except TimeoutError as error:
        raise AssertionError(f"{error}\n{text()}") from None
    finally:
        process.kill()
    return text()


@scenario("fake")
def secrets_stay_secret(lab: Lab) -> None:
    """
    No log line at level debug has the token, password, key or a proxy's password: not when they work,
    not when they are refused, not when their file is damaged.
    """
    folder = lab.workdir / "secrets"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    ca, key = make_certificate(folder, "server")
    with front(ca, key, 200) as url, front(ca, key, 401) as denying:
        cases = [*good_cases(url, denying, folder, ca), *bad_cases(url, ca, key)]
        outputs = {case.name: attempt(lab, case, folder) for case in cases}
    words = forbidden(folder)
    # The secrets were really sent, and the search can find them.
    check(f"Bearer {TOKEN}" in Front.seen, Front.seen)
    basic = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    check(f"Basic {basic}" in Front.seen, Front.seen)
    for line in (f"x {basic} y", f"a{TOKEN}b", key.read_text()):
        check(any(word in line for word in words), f"would not be found: {line}")
    found = {name: leaks(output, words)[:2] for name, output in outputs.items()}
    check(not any(found.values()), {name: lines for name, lines in found.items() if lines})


@scenario("fake")
def requests_stay_secret(lab: Lab) -> None:
    """The log has no headers, query or pod environment of a request."""
    head = f"Connection: close\r\nAuthorization: Bearer {TOKEN}\r\nCookie: {PASSWORD}\r\n"
    secret = {"name": "n", "value": ENV}
    pod = {"metadata": {"name": "p", "namespace": "d", "uid": "u", "annotations": {"x": ENV}}}
    pod["spec"] = {"containers": [{"name": "c", "env": [secret], "args": [ENV]}]}
    torn = json.dumps({"Pod": pod, "NodeNames": 1})
    with fake_lab(lab) as fake:
        daemon = fake.cardpack()
        starts = [
            f"GET /version?token={TOKEN} HTTP/1.1\r\nHost: a\r\n{head}\r\n",
            f"GET /none?token={TOKEN} HTTP/1.1\r\nHost: a\r\n{head}\r\n",
            f"GET /version HTTP/1.1\r\nHost: a\r\n{head}Bad {TOKEN}\r\n\r\n",
            f"GET /version HTTP/1.1\r\n{head}\r\n",
            f"GET /version HTTP/9.9\r\nHost: a\r\n{head}\r\n",
            f"{TOKEN}\r\n\r\n",
            f"GET /version HTTP/1.1\r\nHost: a\r\n{head}X: {PASSWORD * 20_000}\r\n\r\n",
            f"POST /gpushare-scheduler/bind HTTP/1.1\r\nHost: a\r\nContent-Length: x{TOKEN}\r\n\r\n",
            f"POST /gpushare-scheduler/bind HTTP/1.1\r\nHost: a\r\n{head}"
            f"Transfer-Encoding: chunked\r\n\r\n{TOKEN}\r\n\r\n",
            *(f"POST /gpushare-scheduler/{verb}?t={TOKEN} HTTP/1.1\r\nHost: a\r\n{head}"
              f"Content-Length: {len(body)}\r\n\r\n{body}"
              for verb in ("filter", "bind") for body in (torn, f'{{"PodName":{{"{TOKEN}":1}}}}')),
        ]  # fmt: skip
        for start in starts:
            with socket.create_connection(("127.0.0.1", daemon.port)) as one:
                one.settimeout(SECOND)
                try:
                    one.sendall(start.encode())
                    one.shutdown(socket.SHUT_WR)
                    while one.recv(4096):
                        pass
                except TimeoutError:
                    raise
                except OSError:
                    pass  # closed with unread bytes, or by the shutdown
        api_pod = {**pod, "status": {"phase": "Pending"}}
        api_pod["spec"]["containers"][0]["resources"] = {"limits": {"aliyun.com/gpu-mem": "1"}}
        daemon.filter(api_pod, ["n1"])
        check(daemon.call("GET", "/livez") == (200, "ok\n"), "/livez")
        check(daemon.log("bad filter request") and daemon.log("bad bind request"), "nothing logged")
        words = [s for secret in (TOKEN, PASSWORD, ENV) for s in spellings(secret)]
        found = leaks(daemon.process.log.read_text(), words)
        check(not found, found)
