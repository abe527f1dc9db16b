"""kubectl cardpack: the daemon and the API server alone give the same answers; and its errors."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import MANIFESTS, OBJECTS, PATIENCE, Bench, Lab, Skipped, agree, check, scenario
from certificates import trust
from cluster import available_versions, find_programs
from component import wait_for
from daemon import _SANITIZERS, VERBS, Daemon
from fake_lab import fake_lab

from .security import FIRST, Secure

Json = Any

SYSTEM = "/api/v1/namespaces/kube-system"
ALONE = "reading the API server alone"
OPEN = ("--listen-address", "0.0.0.0", "--allow-plain-http=true")


def some_programs() -> Path:
    """The folder of a release's kubectl, for the fake API server."""
    here = available_versions()
    if not here:
        raise Skipped("no kubectl here: see scripts/control-plane")
    return find_programs(here[-1])


class Plugin:
    """kubectl-cardpack of the tested build, with one kubeconfig, one kubectl and no other setting."""

    def __init__(
        self, binary: Path, kubeconfig: str | Path | None, workdir: Path, programs: Path | None = None
    ) -> None:
        self.program = binary.parent / "kubectl-cardpack"
        folders = (str(programs or some_programs()), str(self.program.parent), os.defpath)
        self.env = {"PATH": ":".join(folders), "HOME": str(workdir)}
        self.env |= _SANITIZERS
        if kubeconfig is not None:
            self.env["KUBECONFIG"] = str(kubeconfig)

    def run(
        self, *args: str, stdin: str = "", by: str | Path = "", **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs it, with any result; `by` is a kubectl that must find the plugin."""
        argv = [str(by), "cardpack"] if by else [str(self.program)]
        done = subprocess.run(
            [*argv, *args], input=stdin, capture_output=True, text=True, timeout=PATIENCE,
            env=self.env | env,
        )  # fmt: skip
        check(done.returncode in (0, 1, 2, 3), f"{args}: {done.returncode} {done.stderr}")
        return done

    def json(self, *args: str, status: int = 0, says: str | None = "", **options: Any) -> Json:
        """
        The output of -o json. `says` must be on standard error; "": nothing may be there; None:
        anything may.
        """
        done = self.run(*args, "-o", "json", **options)
        check(done.returncode == status, f"{args}: {done.returncode} {done.stderr}")
        if says is not None:
            good = says in done.stderr if says else not done.stderr
            check(good, f"{args}: {done.stderr!r}, not {says!r}")
        return json.loads(done.stdout)

    def comes_to_answer(self) -> None:
        """Waits until it gets an answer: the API server learns of rights and endpoints with a delay."""
        try:
            wait_for(lambda: not self.run("top").stderr, "an answer", PATIENCE / 9)
        except TimeoutError as error:
            raise AssertionError(f"{error}: {self.run('top').stderr}") from None

    def offers(self, *words: str) -> list[str]:
        """The shell completions for the last word; standard error stays empty in any case."""
        done = self.run("__complete", *words)
        lines = done.stdout.splitlines()
        good = done.returncode == 0 and not done.stderr and lines[-1:] == [":4"]
        check(good, f"{words}: {done}")
        return [line.split("\t")[0] for line in lines[:-1]]

    def comes_to_offer(self, wanted: list[str], *words: str, more: bool = False) -> None:
        """
        Waits until the completions are these, in this order; more: contain these. On a busy machine a
        completion may be cut short.
        """

        def offered() -> bool:
            found = self.offers(*words)
            return set(wanted) <= set(found) if more else found == wanted

        wait_for(offered, f"{wanted} at TAB after {words}", PATIENCE)

    def fails(self, *args: str, parts: tuple[str, ...], status: int = 1, **options: Any) -> None:
        """Checks that it ends with that status, prints nothing, and reports all parts."""
        done = self.run(*args, **options)
        check(done.returncode == status, f"{args}: {done.returncode} {done.stderr}")
        check(not done.stdout, f"{args}: it printed {done.stdout!r}")
        check(all(part in done.stderr for part in parts), f"{args}: {done.stderr!r}, not {parts}")


def figures(answer: Json) -> Json:
    """The figures that inspect also has, with pods in a fixed order."""
    return {
        node["name"]: {
            "total": node["totalGPU"],
            "used": node["usedGPU"],
            "cards": {
                dev["id"]: (
                    dev["totalGPU"],
                    dev["usedGPU"],
                    sorted((p["namespace"], p["name"], p["usedGPU"]) for p in dev["pods"]),
                )
                for dev in node["devs"]
            },
        }
        for node in answer["nodes"]
    }


def address() -> str:
    """An address of this machine other than loopback: the API server proxies to no loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
            own: str = probe.getsockname()[0]
        except OSError:
            raise Skipped("this machine has no address but loopback") from None
    if own.startswith("127."):
        raise Skipped("this machine has no address but loopback")
    return own


def pod_of_daemon(bench: Bench, ip: str) -> Json:
    """
    Makes a pod with that address, as the API server's proxy requires. No kubelet runs it; cardpack
    listens on the address.
    """
    spec = {"containers": [{"name": "cardpack", "image": "example.invalid/none"}],
            "nodeName": "n1"}  # fmt: skip
    path = f"{SYSTEM}/pods"
    if bench.cluster.api("GET", f"{path}/cardpack-0")[0] == 404:
        bench.cluster.must("POST", path, {"metadata": {"name": "cardpack-0"}, "spec": spec})
        bench.cluster.must(
            "PATCH", f"{path}/cardpack-0/status", {"status": {"podIP": ip, "podIPs": [{"ip": ip}]}},
            content_type="application/merge-patch+json",
        )  # fmt: skip
    return {"kind": "Pod", "namespace": "kube-system", "name": "cardpack-0"}


def point_service(bench: Bench, port: int | None) -> None:
    """Makes the Service of manifests/ lead to that port; None: it has no endpoints."""
    ip = address()
    target = pod_of_daemon(bench, ip)
    bench.cluster.kubectl("apply", "-f", str(OBJECTS / "service.yaml"))
    ports = [{"name": "http", "port": port}]
    subsets = [] if port is None else [
        {"addresses": [{"ip": ip, "targetRef": target}], "ports": ports}]
    named = {"metadata": {"name": "cardpack"}}
    for path, item in (
        (f"{SYSTEM}/endpoints", {**named, "subsets": subsets}),
        *([("/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices", {
            "metadata": {"name": "cardpack", "labels": {"kubernetes.io/service-name": "cardpack"}},
            "addressType": "IPv4",
            "endpoints": [] if port is None else [
                {"addresses": [ip], "conditions": {"ready": True}, "targetRef": target}],
            "ports": ports if port is not None else [],
        })] if bench.modern else []),
    ):  # fmt: skip
        bench.cluster.api("DELETE", f"{path}/cardpack")
        bench.cluster.must("POST", path, item)


@contextmanager
def service(bench: Bench, port: int | None) -> Iterator[None]:
    """The same, inside the `with`."""
    point_service(bench, port)
    try:
        yield
    finally:
        bench.cluster.must("DELETE", f"{SYSTEM}/pods/cardpack-0?gracePeriodSeconds=0")
        for kind in ("service/cardpack", "endpoints/cardpack"):
            bench.cluster.kubectl("delete", "-n", "kube-system", kind, "--ignore-not-found")
        if bench.modern:
            bench.cluster.kubectl("delete", "-n", "kube-system", "endpointslice/cardpack",
                                  "--ignore-not-found")  # fmt: skip


def plugin_of(bench: Bench, account: str, *bindings: tuple[str, str]) -> Plugin:
    """The plugin for a user with these roles: (clusterrolebinding or rolebinding, its role)."""
    user = f"kube-system:{account}"
    token = bench.cluster.service_account_token("kube-system", account)
    for kind, role in bindings:
        flag = "--clusterrole" if kind == "clusterrolebinding" else "--role"
        bench.cluster.kubectl("delete", kind, "-n", "kube-system", account, "--ignore-not-found")
        bench.cluster.kubectl("create", kind, "-n", "kube-system", account, f"{flag}={role}",
                              f"--serviceaccount={user}")  # fmt: skip
    path = bench.workdir / f"{account}.kubeconfig"
    return with_kubectl_of(bench, bench.cluster.write_kubeconfig(path, token))


def with_kubectl_of(bench: Bench, kubeconfig: str | Path | None) -> Plugin:
    """The plugin with the kubectl of the release under test."""
    return Plugin(bench.options.binary, kubeconfig, bench.workdir, bench.cluster.programs)


def viewer(bench: Bench) -> Plugin:
    """The plugin for a user with the rights of manifests/kubectl-cardpack-rbac.yaml."""
    bench.cluster.kubectl("apply", "-f", str(MANIFESTS / "kubectl-cardpack-rbac.yaml"))
    return plugin_of(bench, "e2e-viewer", ("clusterrolebinding", "cardpack-viewer"),
                     ("rolebinding", "cardpack-viewer"))  # fmt: skip


def populate(bench: Bench) -> Json:
    """
    Makes two nodes with pods, an unhealthy card, one pending pod; returns a pod that is not created.
    """
    bench.node("n1", 2, 16)
    bench.node("n2", 4, 8)
    bench.cordon("n1")
    bench.placed_pod("a", 9, "n1", 0)
    bench.placed_pod("b", 3, "n2", 3)
    bench.placed_pod("c", 2, "n2", None)
    bench.unhealthy("n2", "1")
    bench.own_pod("waits", 12)
    return bench.own_pod("asked", 5)


def same_answers(bench: Bench, daemon: Daemon, plugin: Plugin, says: str, *flags: str) -> None:
    """Every command gives the daemon's own answers."""
    check(figures(plugin.json("top", *flags, says=says)) == figures(daemon.inspect()), "top")
    status, cards = daemon.call("GET", f"{VERBS}/cards/n2")
    check(status == 200 and plugin.json("cards", "n2", *flags, says=says) == cards, cards)
    explained = daemon.call("GET", f"{VERBS}/explain/{bench.namespace}/waits")[1]
    found = plugin.json("explain", "waits", "-n", bench.namespace, *flags, says=says)
    check(found == explained and found["fit"] == 1, f"{found}, not {explained}")


@scenario("real")
def kubectl_cardpack(bench: Bench) -> None:
    """
    The real kubectl finds the plugin. With a viewer's rights the daemon answers through the API
    server's proxy, and the API server alone gives the same answers.
    """
    pod = populate(bench)
    daemon = bench.cardpack(*OPEN)
    agree(daemon, bench.truth)
    plugin = viewer(bench)
    with service(bench, daemon.port):
        plugin.comes_to_answer()
        same_answers(bench, daemon, plugin, "")
        same_answers(bench, daemon, plugin, "", "--direct")
        kubectl = bench.cluster.programs / "kubectl"
        listed = subprocess.run(
            [kubectl, "plugin", "list"], capture_output=True, text=True, env=plugin.env
        )
        check("kubectl-cardpack" in listed.stdout, listed)
        table = plugin.run("top", by=kubectl)
        check(table.returncode == 0 and "GPU0   GPU1   GPU2   GPU3" in table.stdout, table)
        check("14/64 (21%)" in table.stdout and not table.stderr, table)
        check(plugin.run("top", "--direct").stdout == table.stdout, "the tables differ")

        # The daemon's nodes, and the API server's pods; namespaces that a viewer may not list.
        own = bench.namespace
        plugin.comes_to_offer(["n1", "n2"], "cards", "")
        plugin.comes_to_offer(["n2"], "cards", "--direct", "n2")
        plugin.comes_to_offer(["a", "asked", "b", "c", "waits"], "explain", "-n", own, "")
        plugin.comes_to_offer(["waits"], "explain", "-n", own, "wa")
        plugin.comes_to_offer([f"--namespace={own}"], "explain", f"--namespace={own[:-1]}")

        if bench.modern:  # kubectl completes plugins since 1.26
            link = bench.workdir / "bin" / "kubectl_complete-cardpack"
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(plugin.program)
            told = subprocess.run(
                [kubectl, "__complete", "cardpack", "explain", "-n", own, "wai"], text=True,
                capture_output=True, env=plugin.env | {"PATH": f"{link.parent}:{plugin.env['PATH']}"},
            )  # fmt: skip
            check(told.stdout.startswith("waits\tpod\n:4\n"), told)

        # A viewer may not POST through the proxy, as a POST could bind: the plugin computes the
        # figures itself.
        text = json.dumps(pod)
        direct = plugin.json("fit", "-f", "-", "--replicas", "20", stdin=text, status=3, says=ALONE)
        answer = daemon.call("POST", f"{VERBS}/fit", {"replicas": 20, "pod": pod})[1]
        check(direct == answer and 0 < answer["fit"] < 20, f"{direct}, not {answer}")
        admin = with_kubectl_of(bench, bench.cluster.admin_kubeconfig)
        admin.comes_to_offer(["default", "kube-system", own], "explain", "-n", "", more=True)
        check(admin.json("fit", "-f", "-", "--replicas", "20", stdin=text, status=3) == answer, "")
        check(admin.json("explain", "-f", "-", stdin=text)["fit"] == 2, "explain -f")
        check(admin.json("version")["daemon"] == admin.json("version", "--direct")["client"], "")
    bench.verify(daemon)


@scenario("real")
def kubectl_cardpack_without_daemon(bench: Bench) -> None:
    """No Service, no endpoint, a required token or TLS, no rights: the messages."""
    populate(bench)
    plugin = viewer(bench)
    path = bench.workdir / "daemon-token"
    path.write_text(FIRST + "\n")
    secure = Secure(bench.workdir)
    tls = ("--listen-address", "0.0.0.0", *secure.flags())
    daemon = bench.cardpack(*tls, "--token-file", str(path), tls=trust(secure.ca), token=FIRST)
    wait_for(lambda: plugin.run("top").returncode == 0, "the viewer's rights", PATIENCE)
    expected = figures(plugin.json("top", "--direct"))
    check(expected["n1"]["used"] == 9, expected)

    def comes_to_say(*parts: str) -> None:
        def said() -> bool:
            done = plugin.run("top", "-o", "json")
            good = done.returncode == 0 and figures(json.loads(done.stdout)) == expected
            return good and all(part in done.stderr for part in (*parts, ALONE))

        try:
            wait_for(said, f"{parts}", PATIENCE / 6)
        except TimeoutError:
            raise AssertionError(f"not {parts}: {plugin.run('top').stderr}") from None
        plugin.fails("top", "--direct=false", parts=("--direct=false", *parts))

    comes_to_say('services "cardpack" not found')
    with service(bench, None):
        comes_to_say("no endpoints available")
    with service(bench, daemon.port):
        comes_to_say("401")
        daemon.stop()
        bench.daemons.remove(daemon)
        daemon = bench.cardpack(*tls, tls=trust(secure.ca))
        plugin.comes_to_answer()
        check(figures(plugin.json("top")) == expected, "figures over TLS")
        nobody = plugin_of(bench, "e2e-nobody")
        nobody.fails("top", parts=("403", "cardpack:http", "nodes is forbidden"))
        nobody.fails("explain", "waits", "-n", bench.namespace, parts=("pods", "forbidden"))
        plugin.fails("top", "--context", "absent", parts=('context "absent" does not exist',))
        lister = plugin_of(bench, "e2e-lister", ("clusterrolebinding", "cardpack-viewer"))
        lister.json("top", "--direct", says="unhealthy cards and quotas are not known")


# ---- kubectl's credentials, contexts and processes --------------------------------------------

LOGIN = """#!/bin/sh
cd "$(dirname "$0")" || exit 9
echo run >>runs
printf 'a word\\n\\nto the \\033user\\n' >&2
cat answer.json
"""


def write_login(bench: Bench, folder: Path) -> tuple[Path, Path]:
    """
    Two kubeconfig files: one with the cluster and a context with a namespace, which is not the
    current one; one with the user, who has only a credential plugin.
    """
    folder.mkdir(exist_ok=True)
    version = f"client.authentication.k8s.io/{'v1' if bench.modern else 'v1beta1'}"
    token = bench.cluster.service_account_token("kube-system", "e2e-viewer")
    script = folder / "login.sh"
    script.write_text(LOGIN)
    script.chmod(0o700)
    answer = {"kind": "ExecCredential", "apiVersion": version, "status": {"token": token}}
    (folder / "answer.json").write_text(json.dumps(answer))
    program = {"apiVersion": version, "command": "./login.sh", "interactiveMode": "IfAvailable",
               "installHint": "a hint"}  # fmt: skip
    head = {"apiVersion": "v1", "kind": "Config"}
    context = {"cluster": "c", "user": "u", "namespace": bench.namespace}
    first, second = folder / "first.json", folder / "second.json"
    ca = str(bench.cluster.ca_file)
    first.write_text(json.dumps(head | {
        "clusters": [{"name": "c", "cluster": {
            "server": bench.cluster.url, "certificate-authority": ca}}],
        "contexts": [{"name": "mine", "context": context}]}))  # fmt: skip
    second.write_text(json.dumps(head | {"users": [{"name": "u", "user": {"exec": program}}]}))
    return first, second


@contextmanager
def kubectl_proxy(bench: Bench, kubeconfig: Path) -> Iterator[str]:
    """Runs the real kubectl proxy; yields its address."""
    argv = [bench.cluster.programs / "kubectl", "--kubeconfig", kubeconfig, "proxy", "--port", "0"]
    proxy = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert proxy.stdout is not None
        line = proxy.stdout.readline()
        check("Starting to serve on 127.0.0.1:" in line, line)
        yield f"http://127.0.0.1:{line.split(':')[-1].strip()}"
    finally:
        proxy.terminate()
        proxy.communicate(timeout=PATIENCE)


@scenario("real")
def kubectl_cardpack_logs_in(bench: Bench) -> None:
    """
    Through kubectl: a context of several files, its namespace, a credential plugin and its errors,
    impersonation. And through a kubectl proxy that the user runs.
    """
    populate(bench)
    daemon = bench.cardpack(*OPEN)
    agree(daemon, bench.truth)
    viewer(bench)
    folder = bench.workdir / "login"
    first, second = write_login(bench, folder)
    plugin = with_kubectl_of(bench, f"/absent:{first}:{second}")
    mine = ("--direct", "--context", "mine")
    wait_for(lambda: plugin.run("top", *mine).returncode == 0, "the user's rights", PATIENCE / 3)
    (folder / "runs").unlink()
    found = plugin.json("top", *mine, says=None)
    check(figures(found) == figures(daemon.inspect()), found)
    check((folder / "runs").read_text() == "run\n", "the credential plugin ran more than once")
    done = plugin.run("top", *mine)
    word = "kubectl cardpack: a word\nkubectl cardpack: to the \\x1buser\n"
    check(word in done.stderr, f"{done.stderr!r}")
    found = plugin.json("explain", "waits", *mine, says=None)
    check(found["fit"] == 1, f"the pod in the context's namespace: {found}")
    plugin.comes_to_offer(["waits"], "explain", *mine, "", more=True)
    (folder / "login.sh").write_text("#!/bin/sh\nexit 7\n")
    plugin.fails("top", *mine, parts=("kubectl proxy: ", "exit code 7"))
    second.write_text(second.read_text().replace("./login.sh", "e2e-absent"))
    plugin.fails("top", *mine, parts=("kubectl proxy: ", "e2e-absent", "cardpack: a hint\n"))

    admin = with_kubectl_of(bench, bench.cluster.admin_kubeconfig)
    viewing = ("--as", "system:serviceaccount:kube-system:e2e-viewer")
    check(figures(admin.json("top", "--direct", *viewing)) == figures(daemon.inspect()), "--as")
    admin.fails("top", "--as", "e2e-nobody", parts=("nodes is forbidden", "e2e-nobody"))
    plain = Plugin(bench.options.binary, None, bench.workdir, bench.workdir)
    with service(bench, daemon.port), kubectl_proxy(bench, bench.cluster.admin_kubeconfig) as url:
        wait_for(lambda: not plain.run("top", "--server", url).stderr, "an answer", PATIENCE / 9)
        same_answers(bench, daemon, plain, "", "--server", url)
    bench.verify(daemon)


# ---- the fake API server: what the real one will not do on demand ---------------------------


def plugin_for(lab: Any) -> Plugin:
    """The plugin with the fake API server's kubeconfig."""
    return Plugin(lab.lab.options.binary, lab.kubeconfig, lab.lab.workdir)


@scenario("fake")
def kubectl_direct_lists(outer: Lab) -> None:
    """
    Lists come in pages; after an expired page the list starts again; an incomplete list is an error.
    """
    with fake_lab(outer) as lab:
        plugin = plugin_for(lab)
        for i in range(1100):
            lab.api.create_node(f"m{i:04}", 32, 2)
        lab.placed_pod("a", 5, "n1", 1)
        daemon = lab.cardpack()
        agree(daemon, lab.truth)
        lab.api.reset_stats()
        found = plugin.json("top", "--direct")
        check(figures(found) == figures(daemon.inspect()), "figures")
        check(lab.count("list nodes") == 3, lab.api.stats()["requests"])
        # A completion ends after LIMIT_NAMES_MS: on a machine that is too busy, with nothing.
        wait_for(lambda: len(plugin.offers("cards", "--direct", "m")) == 1100, "names of every page", PATIENCE)
        lab.api.fault(kind="status", code=410, reason="Expired", verb="list", resource="nodes",
                      continued=True)  # fmt: skip
        check(plugin.json("top", "--direct") == found, "after an expired page")
        lab.api.fault(kind="truncate", bytes=3000, verb="list", resource="nodes")
        plugin.fails("top", "--direct", parts=("/api/v1/nodes",))
        lab.api.fault(kind="status", code=403, reason="Forbidden", message="no", verb="list",
                      resource="configmaps")  # fmt: skip
        plugin.json("top", "--direct", says="quotas are not known")
        lab.api.fault(kind="hang", verb="list", resource="pods")
        plugin.fails("top", "--direct", "--request-timeout", "500ms", parts=("/api/v1/pods",))
        lab.api.fault(kind="hang", verb="list", resource="nodes")
        began = time.monotonic()
        check(plugin.offers("cards", "--direct", "m") == [], "names of a list that never ends")
        check(time.monotonic() - began < 10, "a shell waits no longer than that")
        lab.api.clear_faults()
        plugin.fails("explain", "nobody", parts=("pod default/nobody", "no such pod"))
        plugin.fails("cards", "nowhere", "--direct", parts=('node "nowhere" not found',))


@scenario("fake")
def kubectl_mistakes(outer: Lab) -> None:
    """A dead API server, invalid files, contradictory flags."""
    with fake_lab(outer) as lab:
        plugin = plugin_for(lab)
        pod = "metadata: {name: p}\nspec: {containers: [{resources: {limits: {aliyun.com/gpu-mem: %s}}}]}"
        done = plugin.run("fit", "-f", "-", stdin=pod % 8)
        check(done.returncode == 0 and "1 of 1 replica fits" in done.stdout, done)
        check(done.stderr.count("\n") == 1 and ALONE in done.stderr, done.stderr)
        done = plugin.run("fit", "-f", "-", stdin=pod % 99)
        check(done.returncode == 3 and "Insufficient GPU Memory" in done.stdout, done)
        done = plugin.run("explain", "-f", "-", "--direct", stdin=pod % '"x"')
        check(done.returncode == 3 and '"x"' in done.stdout, done)
        plugin.fails("fit", "-f", "-", stdin="a: [", parts=("standard input: line 2",))
        plugin.fails("fit", "-f", "-", stdin="kind: Service\nmetadata: {name: s}",
                     parts=("makes pods", 'Service "s"'))  # fmt: skip
        plugin.fails("fit", "-f", "/nowhere/pod.yaml", parts=("/nowhere/pod.yaml",))
        plugin.fails("fit", status=2, parts=("-f",))
        plugin.fails("top", "--replicas", "3", status=2, parts=("top takes no --replicas",))
        plugin.fails("top", "-o", "xml", status=2, parts=("--output", '"xml"', "yaml"))
        for kubeconfig in (outer.workdir / "absent", None):  # kubectl's default: port 8080
            none = Plugin(outer.options.binary, kubeconfig, outer.workdir / "absent")
            none.fails("top", parts=("kubectl proxy: ", "connection refused"))
        plugin.fails("top", "--kubeconfig", "/absent", parts=("/absent", "kubectl proxy: ended"))
        plugin.fails("top", PATH=f"{plugin.program.parent}:.",
                     parts=("kubectl: there is no such program", "--server", "--daemon-url"))  # fmt: skip
        both = plugin.run("top", "--direct", KUBECONFIG=f"/absent:{lab.kubeconfig}")
        check(both.returncode == 0 and "n1" in both.stdout, both)
        check("\033[" not in both.stdout, "colours in a pipe")
        painted = plugin.run("top", "--direct", "--color", "always", NO_COLOR="1").stdout
        check("\033[1mNAME\033[0m" in painted, painted)
        lab.api.process.kill()
        plugin.fails("top", parts=("kubectl proxy: ", "connection refused"))
        plugin.fails("top", "--server", lab.api.url, parts=("Failed to connect",))
        lab.api.process.start()


def child_of(process: subprocess.Popen[str]) -> int:
    """The kubectl that a plugin has started; 0: none."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            name = Path(os.readlink(stat.parent / "exe")).name
        except OSError:
            continue
        if int(fields[1]) == process.pid and name == "kubectl":
            return int(stat.parent.name)
    return 0


def is_running(pid: int) -> bool:
    """Whether the process exists, and is no zombie that its new parent has not reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def default_signals() -> None:
    """A shell starts its background jobs, such as these tests, with ignored signals."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


@scenario("fake")
def kubectl_ends_with_the_plugin(outer: Lab) -> None:
    """However the plugin ends, no kubectl is left; only SIGKILL leaves the socket's folder behind."""
    with fake_lab(outer) as lab:
        plugin = plugin_for(lab)
        sockets = outer.workdir / "sockets"
        sockets.mkdir()
        plugin.env["XDG_RUNTIME_DIR"] = str(sockets)
        check(plugin.run("top", "--direct").returncode == 0 and not list(sockets.iterdir()), "top")
        lab.api.fault(kind="hang", verb="list", resource="nodes", count=-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            lab.api.reset_stats()
            process = subprocess.Popen(
                [plugin.program, "top", "--direct"], env=plugin.env, text=True,
                stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                preexec_fn=default_signals,
            )  # fmt: skip
            wait_for(lambda: lab.count("list nodes") > 0, "a request", PATIENCE)
            kubectl = child_of(process)
            check(is_running(kubectl), f"no kubectl under {process.pid}")
            process.send_signal(number)
            check(process.wait(PATIENCE) == -number, f"{number!r}: {process.returncode}")
            wait_for(lambda pid=kubectl: not is_running(pid), f"the end of kubectl, {number!r}",
                     PATIENCE / 9)  # fmt: skip
            left = len(list(sockets.iterdir()))
            check(left == (number == signal.SIGKILL), f"{number!r}: {left} folders")
        lab.api.clear_faults()
