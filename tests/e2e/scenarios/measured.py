"""What cards and pods really use, from the ConfigMaps of cardpack-node, in everything that shows it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

from bench import PATIENCE, Lab, agree, check, scenario
from component import wait_for
from daemon import VERBS, Daemon
from fake_lab import FakeLab, fake_lab
from scenarios.kubectl import Plugin, plugin_for

Json = Any

NAME = "cardpack-usage-n1"
PATH = f"/api/v1/namespaces/kube-system/configmaps/{NAME}"
SIZE = 16384  # MiB of each card of n1, whose gpu-mem is in GiB


def usage(fake: FakeLab, used: dict[str, int], ago: int = 0) -> str:
    """The text for pods on card 0 of n1, as cardpack-node writes it."""
    seen = datetime.now(timezone.utc) - timedelta(seconds=ago)
    pods = [{"uid": fake.api.pod(name)["metadata"]["uid"], "namespace": "default", "name": name, "card": 0,
             "usedMiB": mib} for name, mib in used.items()]  # fmt: skip
    cards = [{"index": 0, "usedMiB": sum(used.values()) + 300, "totalMiB": SIZE, "busyPercent": 37}]
    return json.dumps({"seen": seen.strftime("%Y-%m-%dT%H:%M:%SZ"), "cards": cards, "pods": pods})


def cards_of(daemon: Daemon) -> list[Json]:
    """The cards of n1."""
    status, answer = daemon.call("GET", f"{VERBS}/cards/n1")
    check(status == 200, answer)
    devs: list[Json] = answer["nodes"][0]["devs"]
    return devs


def series(daemon: Daemon, name: str) -> dict[str, str]:
    """The series of a metric: labels and value."""
    rows = [row.rsplit(" ", 1) for row in daemon.exchange("GET", "/metrics")[1].decode().splitlines()]
    return {row[0].removeprefix(name): row[1] for row in rows
            if row[0] == name or row[0].startswith(f"{name}{{")}  # fmt: skip


def is_known(daemon: Daemon) -> bool:
    return "usedMiB" in cards_of(daemon)[0]


@scenario("fake")
def really_used(lab: Lab) -> None:
    """
    A node's ConfigMap: the cards' answer, the metrics and kubectl cardpack show it, inspect and filter do
    not change. It becomes unknown when the text can't be read, when it is old, and without it.
    """
    with fake_lab(lab) as fake:
        for name in ("a", "b"):
            fake.placed_pod(name, 4, "n1", 0)
        daemon = fake.cardpack()
        fake.watched()
        agree(daemon, fake.truth)
        before = daemon.inspect()
        plain = cards_of(daemon)
        check(series(daemon, "cardpack_nodes_measured") == {"": "0"}, "no figures yet")
        fake.api.put_configmap(NAME, {"usage": usage(fake, {"a": 4096, "b": 4097})})
        wait_for(lambda: is_known(daemon), "the figures", PATIENCE)
        dev, other = cards_of(daemon)
        check((dev["usedMiB"], dev["sizeMiB"], dev["busyPercent"]) == (8493, SIZE, 37), dev)
        pods = {p["name"]: (p["usedMiB"], p.get("exceeds", False)) for p in dev["pods"]}
        check(pods == {"a": (4096, False), "b": (4097, True)}, pods)
        check(other == plain[1], f"card 1 has no figures: {other}")
        check(daemon.inspect() == before, "gpushare's form has no other fields")
        status, asked = daemon.call("GET", f"{VERBS}/inspect/n1?used=true")
        check(status == 200, asked)
        beside = asked["nodes"][0]["devs"][0]
        check((beside["usedMiB"], beside["sizeMiB"], beside["busyPercent"]) == (8493, SIZE, 37), beside)
        check({p["name"]: (p["usedMiB"], p.get("exceeds", False)) for p in beside["pods"]} == pods, beside)
        check("freeGPU" not in beside, f"only that is added: {beside}")
        card = '{node="n1",card="0"}'
        for name, value in (("memory_used_bytes", str(8493 << 20)), ("memory_bytes", str(SIZE << 20)),
                            ("busy_ratio", "0.37"), ("pods_exceeding", "1")):  # fmt: skip
            got = series(daemon, f"cardpack_card_{name}")
            check(got == {card: value}, f"{name}: {got}")
        plugin = Plugin(lab.options.binary, None, lab.workdir, lab.options.binary.parent)
        url = ("--daemon-url", f"http://127.0.0.1:{daemon.port}")
        for command, parts in (("top", ("REALLY(MiB)", "8493/16384", "37%")),
                               ("cards", ("8493/16384", "default/a (4, really 4096 MiB)",
                                          "default/b (4, really 4097 MiB, more than its share)"))):  # fmt: skip
            text = plugin.run(command, "-o", "wide", *url).stdout
            check(all(part in text for part in parts), f"{command}: {text}")
        check(daemon.bind(fake.pod("p", 8), "n1") == "", "a bind goes by what pods hold")
        fake.verify(daemon)

        fake.api.put_configmap(NAME, {"usage": '{"seen": "today"}'})
        wait_for(lambda: not is_known(daemon), "unknown figures", PATIENCE)
        fake.api.put_configmap(NAME, {"usage": '{"seen": "yesterday"}'})
        fake.api.put_configmap(NAME, {"usage": usage(fake, {"a": 1})})
        wait_for(lambda: is_known(daemon), "figures again", PATIENCE)
        told = daemon.log("what a node's cards and pods use can't be read")
        check([(t["node"], t["error"]) for t in told] == [("n1", 'seen: "today" is no time')], told)
        fake.api.put_configmap(NAME, {"usage": usage(fake, {"a": 2}, ago=7200)})
        wait_for(lambda: not is_known(daemon), "old figures", PATIENCE)
        fake.api.put_configmap(NAME, {"usage": usage(fake, {"a": 3})})
        wait_for(lambda: is_known(daemon), "figures again", PATIENCE)
        fake.api.must("DELETE", PATH)
        wait_for(lambda: not is_known(daemon), "no figures", PATIENCE)
        check(series(daemon, "cardpack_card_memory_used_bytes") == {}, "series without figures")


@scenario("fake")
def really_used_without_daemon(outer: Lab) -> None:
    """kubectl cardpack computes the same without the daemon."""
    with fake_lab(outer) as lab:
        plugin = plugin_for(lab)
        for name in ("a", "b"):
            lab.placed_pod(name, 4, "n1", 0)
        lab.api.put_configmap(NAME, {"usage": usage(lab, {"a": 4096, "b": 4097})})
        daemon = lab.cardpack()
        agree(daemon, lab.truth)
        wait_for(lambda: is_known(daemon), "the figures", PATIENCE)
        found = plugin.json("cards", "--direct")["nodes"][0]["devs"]
        check(found == cards_of(daemon), found)
        text = plugin.run("pods", "-n", "default", "-o", "wide").stdout
        rows = {line.split()[1]: line.split()[-2] for line in text.splitlines()}
        check(rows == {"NAME": "REALLY(MiB)", "a": "4096", "b": "4097"}, text)
