"""cardpack with the minimum that manifests/ allows: no rights, no writable file, few system calls."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import MANIFESTS, OBJECTS, ROOT, Bench, Lab, Skipped, agree, check, scenario
from component import wait_for
from daemon import Daemon
from fake_lab import fake_lab

from .tokens import Token, write

sys.path.append(str(ROOT / "tests" / "seccomp"))
import seccomp_profile as profile  # noqa: E402

Json = Any

PROFILE = MANIFESTS / "seccomp" / "cardpack.json"
USER = 65532  # the user of manifests/base/objects/deployment.yaml
# A mount namespace in which all is read-only; then all capabilities are dropped and the user changes.
# $0 is cardpack.
READ_ONLY = """\
set -e
mount --make-rprivate /
findmnt -rno TARGET | while read -r at; do mount -o remount,bind,ro "$at" 2>/dev/null || true; done
exec setpriv --reuid {user} --regid {user} --clear-groups --no-new-privs --inh-caps=-all \
    --bounding-set=-all "$0" "$@"
"""


def process_status(daemon: Daemon) -> dict[str, str]:
    """The fields of /proc/PID/status."""
    text = Path(f"/proc/{daemon.process.pid}/status").read_text()
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def writable_files(daemon: Daemon) -> list[str]:
    """Regular files that it has open for writing, except its log."""
    found = []
    for fd in Path(f"/proc/{daemon.process.pid}/fd").iterdir():
        if not fd.is_file():  # follows the link; a socket may be closed meanwhile
            continue
        target = os.readlink(fd)
        info = (fd.parent.parent / "fdinfo" / fd.name).read_text()
        flags = re.search(r"^flags:\s+(\d+)$", info, re.MULTILINE)
        assert flags is not None
        if int(flags[1], 8) & os.O_ACCMODE != os.O_RDONLY and target != str(daemon.process.log):
            found.append(target)
    return found


def has_no_rights(daemon: Daemon) -> None:
    """
    Checks that it has no capability, can gain none, and has no file open for writing, whatever started
    it.
    """
    status = process_status(daemon)
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        check(int(status[name], 16) == 0, f"{name}: {status[name]}")
    check(status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status)
    check(not writable_files(daemon), writable_files(daemon))


def under_profile(lab: Lab) -> Path:
    """cardpack under the shipped profile; a denied system call ends cardpack."""
    try:
        profile.library()
    except OSError as error:
        raise Skipped(str(error)) from None
    path = lab.workdir / f"{lab.scenario}.sh"
    return profile.wrapper(path, PROFILE, lab.options.plain, fatal=True)


@scenario("fake")
def seccomp_through_faults(lab: Lab) -> None:
    """The profile is sufficient while the API server fails in many ways."""
    binary = under_profile(lab)
    with fake_lab(lab) as fake:
        daemon = fake.cardpack(binary=binary)
        fake.watched()
        has_no_rights(daemon)
        check(daemon.bind(fake.pod("p1", 2), "n1") == "", "bind")
        fake.api.fault(kind="drop_after_commit", verb="bind")
        check(daemon.bind(fake.pod("p2", 2), "n1") == "", "bind with a lost answer")
        fake.api.fault(kind="status", verb="bind", code=503, retry_after=1)
        check(daemon.bind(fake.pod("p3", 2), "n1") == "", "bind after a 503")
        fake.api.close_watches()
        fake.outage(500)
        fake.watched()
        error = daemon.verb("filter", b'{"Pod":' + b"[" * 100)["Error"]
        check(error, "a bad body")
        fake.verify(daemon)


@scenario("real")
def seccomp_through_tls(bench: Bench) -> None:
    """The profile is sufficient with TLS, a rotated token, a restarted API server, a host name to
    resolve (which starts a thread), and at the shutdown.
    address that has to be looked up (which takes a thread), and at the end.
    """
    binary = under_profile(bench)
    lost = bench.workdir / "lost.kubeconfig"
    lost.write_text(bench.kubeconfig.read_text().replace("https://127.0.0.1:", "https://c.invalid:"))
    daemon = bench.daemon(lost, binary=binary, started=False)
    daemon.launch()
    wait_for(lambda: "Could not resolve host" in daemon.process.log.read_text(), "a look-up")
    daemon.stop()
    bench.node("n1", 2, 16)
    tokens = [Token(bench, f"e2e-seccomp-{i}") for i in range(2)]
    path = bench.workdir / "seccomp-token"
    write(path, tokens[0].text)
    text = bench.kubeconfig.read_text().replace(f"token: {bench.token}", f"tokenFile: {path}")
    kubeconfig = bench.workdir / "seccomp.kubeconfig"
    kubeconfig.write_text(text)
    daemon = bench.daemon(kubeconfig, binary=binary)
    agree(daemon, bench.truth)
    has_no_rights(daemon)
    check(daemon.bind(bench.own_pod("p1", 3), "n1") == "", "bind")
    write(path, tokens[1].text)
    tokens[0].revoke()
    check(daemon.bind(bench.own_pod("p2", 3), "n1") == "", "bind after the rotation")
    bench.cluster.apiserver.restart()
    bench.placed_pod("hand", 2, "n1", 1)
    agree(daemon, bench.truth)
    bench.pod("p3", 3)
    bench.wait_bound(4)
    bench.verify(daemon, killed=True)


@contextmanager
def readable_folder() -> Iterator[Path]:
    """A folder for a user that can enter no other folder of the test."""
    folder = Path(tempfile.mkdtemp(prefix="cardpack-e2e-user-"))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder)


@scenario("real")
def unprivileged_and_read_only(bench: Bench) -> None:
    """As in the Deployment: another user, no capability, and no writable path."""
    if os.geteuid() != 0:
        raise Skipped("it takes root to become somebody else")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        raise Skipped("no mount namespaces here")
    with readable_folder() as folder:
        program = shutil.copy(bench.options.plain, folder / "cardpack")
        kubeconfig = folder / "kubeconfig"
        shutil.copy(bench.kubeconfig, kubeconfig)
        os.chown(kubeconfig, USER, USER)
        kubeconfig.chmod(0o400)
        script = folder / "confined"
        command = f"exec unshare --mount sh -c '{READ_ONLY.format(user=USER)}' {program} \"$@\"\n"
        script.write_text(f"#!/bin/sh\n{command}")
        script.chmod(0o755)
        bench.node("n1", 1, 16)
        daemon = bench.daemon(kubeconfig, binary=script)
        agree(daemon, bench.truth)
        has_no_rights(daemon)
        status = process_status(daemon)
        check(status["Uid"].split() == [str(USER)] * 4, status["Uid"])
        check(status["Groups"].strip() == "" and int(status["CapBnd"], 16) == 0, status)
        mounts = Path(f"/proc/{daemon.process.pid}/mountinfo").read_text().splitlines()
        uppermost = {line.split()[4]: line.split()[5] for line in mounts}
        writable = [at for at, how in uppermost.items() if "ro" not in how.split(",")]
        check(uppermost and not writable, writable)
        check(not daemon.log("running as root"), "it takes itself for root")
        pod = bench.own_pod("p1", 3)
        check(daemon.bind(pod, "n1") == "", "bind")
        bench.pod("p2", 3)
        bench.wait_bound(2)
        bench.verify(daemon)
        daemon.stop()


def shipped_pod(bench: Bench) -> Json:
    """The Deployment's pod template, read by kubectl."""
    argv = ("create", "--dry-run=client", "-o", "json", "-f", str(OBJECTS / "deployment.yaml"))
    template: Json = json.loads(bench.cluster.kubectl(*argv).stdout)["spec"]["template"]
    return template


@scenario("real")
def restricted(bench: Bench) -> None:
    """The Deployment requests no right, and is admitted by the Pod Security level "restricted"."""
    template = shipped_pod(bench)
    spec = template["spec"]
    container = spec["containers"][0]
    security = container["securityContext"]
    check(len(spec["containers"]) == 1 and "initContainers" not in spec, spec)
    check(spec["securityContext"]["runAsNonRoot"] is True, spec["securityContext"])
    check(spec["securityContext"]["runAsUser"] == USER, spec["securityContext"])
    check(spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, "seccomp")
    check(security["readOnlyRootFilesystem"] is True, security)
    check(security["allowPrivilegeEscalation"] is False, security)
    check(security["capabilities"] == {"drop": ["ALL"]}, security)
    host = {"hostNetwork", "hostPID", "hostIPC", "hostAliases"} & set(spec)
    check(not host and "hostPort" not in json.dumps(spec), host)
    volumes = [v for v in spec.get("volumes", []) if "hostPath" in v or "emptyDir" in v]
    check(not volumes, volumes)
    if not bench.modern:
        return
    bench.cluster.must(
        "PATCH",
        f"/api/v1/namespaces/{bench.namespace}",
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
        content_type="application/merge-patch+json",
    )
    pods = f"/api/v1/namespaces/{bench.namespace}/pods?dryRun=All"
    pod = {"metadata": {"name": "shipped", **template["metadata"]}, "spec": spec}
    status, answer = bench.cluster.api("POST", pods, pod)
    check(status == 201, f"{status} {answer}")
    # Also with the line that selects the profile of manifests/seccomp/.
    own = {"type": "Localhost", "localhostProfile": PROFILE.name}
    spec["securityContext"]["seccompProfile"] = own
    check(PROFILE.name in (OBJECTS / "deployment.yaml").read_text(), "the profile's name differs")
    status, answer = bench.cluster.api("POST", pods, pod)
    check(status == 201, f"{status} {answer}")
    security["allowPrivilegeEscalation"] = True
    status, answer = bench.cluster.api("POST", pods, pod)
    check(status == 403 and "restricted" in answer["message"], f"{status} {answer}")
