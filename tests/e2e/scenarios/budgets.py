"""PodDisruptionBudgets: cardpack reads either version of the API, and becomes ready without them."""

from __future__ import annotations

from typing import Any

from bench import PATIENCE, Bench, budgets_path, check, scenario
from component import wait_for
from daemon import Daemon

Json = Any

KNOWN = "a disruption budget"
GONE = "a disruption budget is gone"
NONE = "can't read PodDisruptionBudgets: victims are chosen without them"


def _served(bench: Bench) -> str:
    return "/".join(budgets_path(bench).split("/")[2:4])


def put(bench: Bench, name: str, allowed: int) -> None:
    """
    Writes a budget for app=NAME with `allowed` disruptions left; no controller changes its status
    here.
    """
    path = budgets_path(bench, bench.namespace)
    budget = {
        "apiVersion": _served(bench),
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}},
    }
    status, answer = bench.cluster.api("POST", path, budget)
    check(status in (201, 409), f"create {name}: {status} {answer}")
    figures = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    patch = {"status": {"disruptionsAllowed": allowed, "observedGeneration": 1, **figures}}
    status, answer = bench.cluster.api(
        "PATCH", f"{path}/{name}/status", patch, content_type="application/merge-patch+json"
    )
    check(status == 200, f"status of {name}: {status} {answer}")


def _delete(bench: Bench, name: str) -> None:
    path = f"{budgets_path(bench, bench.namespace)}/{name}"
    status, answer = bench.cluster.api("DELETE", path)
    check(status == 200, f"delete {name}: {status} {answer}")


def knows(daemon: Daemon, name: str, allowed: int) -> bool:
    """Whether the last log line about the budget says this."""
    lines = [line for line in daemon.log(KNOWN) if line["name"] == name]
    last = lines[-1] if lines else {}
    return last.get("allowed") == allowed and last["selects"] and last["requirements"] == 1


def _lists(daemon: Daemon) -> list[Json]:
    """The log lines about whole lists of budgets."""
    return [e for e in daemon.log("list is in") if e["kind"] == "PodDisruptionBudget"]


@scenario("real")
def budgets_are_known(bench: Bench) -> None:
    """Budgets from before and after the start, changed and deleted, in the version that is served."""
    bench.node("n1", 1, 8)
    put(bench, "before", 2)
    daemon = bench.cardpack()
    wait_for(lambda: knows(daemon, "before", 2), "the budget of before", PATIENCE)
    listed = wait_for(lambda: _lists(daemon), "the list of budgets")
    check([e["version"] for e in listed] == [_served(bench)], f"{listed}")
    put(bench, "after", 1)
    wait_for(lambda: knows(daemon, "after", 1), "the budget of after", PATIENCE)
    put(bench, "before", 0)
    wait_for(lambda: knows(daemon, "before", 0), "what is left of it", PATIENCE)
    for name in ("before", "after"):
        _delete(bench, name)
        wait_for(
            lambda n=name: [e for e in daemon.log(GONE) if e["name"] == n], f"{name} gone", PATIENCE
        )
    check(not daemon.log(NONE), "it says that it can't read them")
    bench.verify(daemon)


@scenario("real")
def no_right_to_budgets(bench: Bench) -> None:
    """
    With the rights of a release without budgets, cardpack logs the missing right once, and works as
    before.
    """
    bench.node("n1", 1, 8)
    put(bench, "web", 2)
    name = "cardpack-no-budgets"
    token = bench.cluster.service_account_token("kube-system", name, 6 * 3600)
    subject = f"--serviceaccount=kube-system:{name}"
    for argv in (
        ("clusterrole", f"{name}-read", "--verb=get,list,watch", "--resource=nodes,pods"),
        ("clusterrole", f"{name}-bind", "--verb=create", "--resource=pods/binding"),
        ("clusterrolebinding", f"{name}-read", f"--clusterrole={name}-read", subject),
        ("clusterrolebinding", f"{name}-bind", f"--clusterrole={name}-bind", subject),
        ("rolebinding", name, "--role=cardpack", subject, "--namespace=kube-system"),
    ):
        bench.cluster.kubectl("create", *argv)
    bench.users = [*bench.users, f"system:serviceaccount:kube-system:{name}"]
    kubeconfig = bench.workdir / f"{name}.kubeconfig"
    bench.cluster.write_kubeconfig(kubeconfig, token)
    daemon = bench.daemon(kubeconfig)
    wait_for(lambda: daemon.log(NONE), "it to say that there are none", PATIENCE)
    check(daemon.ready(), "unready")
    check(daemon.bind(bench.own_pod("p", 3), "n1") == "", "bind")
    # Refused several times by now, and logged once. Now the test grants the right.
    refused = [e for e in daemon.log("list failed") if e["of"] == "poddisruptionbudgets"]
    wait_for(
        lambda: len(
            [e for e in daemon.log("list failed") if e["of"] == "poddisruptionbudgets"]
        ) > len(refused),
        "another refusal", PATIENCE,
    )  # fmt: skip
    check(len(daemon.log(NONE)) == 1, "it says it more than once")
    bench.cluster.kubectl(
        "create", "clusterrolebinding", name, "--clusterrole=cardpack", subject
    )
    wait_for(lambda: knows(daemon, "web", 2), "the budget, with the right to it", 90)
    _delete(bench, "web")
    bench.verify(daemon)
