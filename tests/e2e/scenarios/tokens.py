"""The token of cardpack's ServiceAccount is replaced and revoked while it runs."""

from __future__ import annotations

import os
from pathlib import Path

from bench import LEADS_ON, Bench, agree, check, scenario
from component import wait_for

SYSTEM = "/api/v1/namespaces/kube-system"
SECOND = 60.0


class Token:
    """A token that is valid until its Secret is deleted."""

    def __init__(self, bench: Bench, name: str) -> None:
        self._cluster = bench.cluster
        self.name = name
        secret = self._cluster.must("POST", f"{SYSTEM}/secrets", {"metadata": {"name": name}})
        reference = {"kind": "Secret", "apiVersion": "v1", "name": name}
        spec = {
            "expirationSeconds": 3600,
            "boundObjectRef": {**reference, "uid": secret["metadata"]["uid"]},
        }
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        path = f"{SYSTEM}/serviceaccounts/cardpack/token"
        self.text: str = self._cluster.must("POST", path, request)["status"]["token"]

    def works(self) -> bool:
        """Whether the API server accepts it."""
        return self._cluster.api("GET", "/api/v1/nodes?limit=1", token=self.text)[0] == 200

    def revoke(self) -> None:
        """Revokes it; returns once the API server, which caches results for ten seconds, refuses it."""
        self._cluster.must("DELETE", f"{SYSTEM}/secrets/{self.name}")
        wait_for(lambda: not self.works(), "the token to be turned away", SECOND, poll=0.2)


def write(path: Path, text: str) -> None:
    """Replaces the file atomically, as the kubelet does."""
    new = path.with_suffix(".new")
    new.write_text(text + "\n")
    os.replace(new, path)


@scenario("real")
def token_rotated(bench: Bench) -> None:
    """
    A token is revoked before its file is replaced, and replaced before it is revoked: in both orders,
    and over a restart of the API server, cardpack keeps working.
    """
    bench.node("n1", 4, 16)
    path = bench.workdir / "token"
    first, second, third = (Token(bench, f"e2e-token-{i}") for i in range(3))
    write(path, first.text)
    original = bench.kubeconfig.read_text()
    kubeconfig = bench.workdir / "token-file.kubeconfig"
    check(bench.token in original, "no token to replace")
    # Relative to the kubeconfig's folder, as in kubectl.
    kubeconfig.write_text(original.replace(f"token: {bench.token}", "tokenFile: token"))
    daemon = bench.daemon(kubeconfig, "--bind-timeout", "5s", *LEADS_ON)
    agree(daemon, bench.truth)
    pods = [bench.own_pod(f"p{i}", 3) for i in range(6)]
    check(daemon.bind(pods[0], "n1") == "", "bind with the first token")

    write(path, second.text)
    first.revoke()
    check(daemon.bind(pods[1], "n1") == "", "bind after the rotation")

    second.revoke()
    error = daemon.bind(pods[2], "n1")
    check("401" in error or "Unauthorized" in error, f"with a revoked token: {error!r}")
    check(daemon.ready() and daemon.inspect()["nodes"], "gone with its token")
    write(path, third.text)
    # The first call after that may only bring the result of the read that releases the card.
    wait_for(lambda: daemon.bind(pods[2], "n1") == "", "bind once the file has a good token")

    bench.cluster.apiserver.restart()
    wait_for(lambda: daemon.bind(pods[3], "n1") == "", "bind after the restart", SECOND, poll=0.5)
    # Its watches use the new token as well.
    bench.placed_pod("hand", 2, "n1", 3)
    agree(daemon, bench.truth)
    bench.verify(daemon, killed=True)
    check(bench.token not in daemon.process.log.read_text(), "a token is in the log")
    for token in (first, second, third):
        check(token.text not in daemon.process.log.read_text(), "a token is in the log")


@scenario("real")
def token_file_bad(bench: Bench) -> None:
    """While a token file is empty or missing, cardpack uses the last token."""
    bench.node("n1", 1, 16)
    path = bench.workdir / "token"
    token = Token(bench, "e2e-token-bad")
    write(path, token.text)
    kubeconfig = bench.workdir / "token-file.kubeconfig"
    original = bench.kubeconfig.read_text()
    kubeconfig.write_text(original.replace(f"token: {bench.token}", f"tokenFile: {path}"))
    daemon = bench.daemon(kubeconfig)
    agree(daemon, bench.truth)
    for i, spoil in enumerate((lambda: write(path, ""), path.unlink)):
        spoil()
        check(daemon.bind(bench.own_pod(f"p{i}", 3), "n1") == "", "bind with a spoiled file")
    write(path, token.text)
    bench.verify(daemon)
