"""kubectl cardpack pods: it chooses the pods that kubectl chooses, with a user's right to list them."""

from __future__ import annotations

import signal
import subprocess

from bench import PATIENCE, Bench, check, scenario
from component import wait_for

from .kubectl import Plugin, default_signals, plugin_of, with_kubectl_of


def rows(plugin: Plugin, *args: str) -> list[str]:
    """The names of the pods that `pods` prints, with their namespaces."""
    found = plugin.json("pods", *args, says=None)["pods"]
    return [f"{pod['namespace']}/{pod['name']}" for pod in found]


SELECTORS = (
    "app=a", "app==a", "app!=a", "app", "!app", "app in (a, b)", "app notin (a)", "app,size=2",
    "app in (a,b),size!=2", "size in (1)", "none=x",
)  # fmt: skip


@scenario("real")
def kubectl_cardpack_pods(bench: Bench) -> None:
    """
    The pods that use cards: each selector chooses those that kubectl's chooses, and a
    pending pod has the scheduler's message. The daemon does not run, and the user may only list pods.
    """
    bench.node("n1", 2, 8)
    names = {"a1": ("a", "1"), "a2": ("a", "2"), "b1": ("b", "1"), "none": None}
    for name, labels in names.items():
        given = {} if labels is None else {"app": labels[0], "size": labels[1]}
        bench.pod(name, 1, node_name="n1", labels=given,
                  annotations={"ALIYUN_COM_GPU_MEM_IDX": "1"})  # fmt: skip
    bench.own_pod("waits", 9)
    bench.own_pod("web", None)
    bench.patch_pod("web", {"metadata": {"labels": {"app": "a"}}})
    bench.cluster.must("PATCH", f"/api/v1/namespaces/{bench.namespace}/pods/waits/status", {
        "status": {"conditions": [{"type": "PodScheduled", "status": "False",
                                   "reason": "Unschedulable", "message": "0/1 nodes: \x1b[1mno"}]}},
        content_type="application/merge-patch+json")  # fmt: skip
    bench.cluster.kubectl("create", "role", "e2e-pods", "-n", bench.namespace, "--verb=list",
                          "--resource=pods")  # fmt: skip
    bench.cluster.kubectl("create", "rolebinding", "e2e-pods", "-n", bench.namespace,
                          "--role=e2e-pods", "--serviceaccount=kube-system:e2e-pods")  # fmt: skip
    plugin = plugin_of(bench, "e2e-pods")
    own = ("-n", bench.namespace)
    wait_for(lambda: plugin.run("pods", *own).returncode == 0, "the right to list pods", PATIENCE / 9)
    everything = [f"{bench.namespace}/{name}" for name in (*names, "waits")]
    check(rows(plugin, *own) == everything, rows(plugin, *own))
    for selector in SELECTORS:
        listed = bench.cluster.kubectl("get", "pods", *own, "-l", selector, "-o", "name").stdout
        wanted = [line.replace("pod/", f"{bench.namespace}/") for line in listed.split()]
        found = rows(plugin, *own, "-l", selector)
        check(found == [name for name in wanted if not name.endswith("/web")], f"{selector}: {found}")
    text = plugin.run("pods", *own).stdout
    check("0/1 nodes: \\x1b[1mno\n" in text and "\x1b" not in text, text)
    held = plugin.json("pods", *own, "-l", "size=2")["pods"][0]
    check((held["node"], held["placement"]) == ("n1", [{"card": 1, "memory": 1}]), held)
    none = plugin.run("pods", *own, "-l", "none=x")
    check(none.returncode == 0 and "no pod in namespace" in none.stderr, none)
    plugin.fails("pods", *own, "-l", "a b", parts=("400",))
    plugin.fails("pods", "-A", parts=("pods is forbidden",))
    admin = with_kubectl_of(bench, bench.cluster.admin_kubeconfig)
    check(set(everything) <= set(rows(admin, "-A")), rows(admin, "-A"))


@scenario("real")
def kubectl_cardpack_watch(bench: Bench) -> None:
    """
    `pods --watch` prints the rows again when a pod is made, says once that there was none, and after SIGINT
    leaves nothing behind.
    """
    bench.node("n1", 2, 8)
    plugin = with_kubectl_of(bench, bench.cluster.admin_kubeconfig)
    sockets = bench.workdir / "sockets"
    sockets.mkdir()
    process = subprocess.Popen(
        [plugin.program, "pods", "-n", bench.namespace, "--no-headers", "--watch", "--interval", "100ms"],
        env=plugin.env | {"XDG_RUNTIME_DIR": str(sockets)}, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=default_signals,
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline
    assert process.stderr is not None
    none = f"kubectl cardpack: no pod in namespace {bench.namespace} uses cards or asks for them\n"
    check(process.stderr.readline() == none, "it does not say that there is no pod")
    bench.own_pod("a", 3)
    check(line() == "\n", "rows follow a blank line, as the first answer had none")
    words = line().split()
    check(words[:5] == [bench.namespace, "a", "-", "-", "3"], words)
    check(any(sockets.iterdir()), "no socket of kubectl proxy")
    bench.placed_pod("b", 2, "n1", 1)
    check(line() == "\n" and line().split()[1] == "a", "again")
    words = line().split()
    check(words[:5] == [bench.namespace, "b", "n1", "1", "2"], words)
    process.send_signal(signal.SIGINT)
    rest, said = process.communicate(timeout=PATIENCE)
    check((process.returncode, rest, said) == (-signal.SIGINT, "", ""), (process, rest, said))
    check(not list(sockets.iterdir()), "the socket's folder is left")
