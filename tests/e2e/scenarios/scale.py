"""A large cluster: memory, not speed."""

from __future__ import annotations

from bench import Lab, Skipped, check, scenario
from component import wait_for
from daemon import is_sanitized
from fake_lab import fake_lab
from scenarios.input import asks

NODES = 5000
CARDS = 8
PODS = 100_000
GPU_PODS = 20_000
MIB = 1 << 20
LIMIT = 64 * MIB


@scenario("fake")
def flat_memory(lab: Lab) -> None:
    """100,000 pods are hundreds of megabytes of JSON; cardpack needs only a few to read them."""
    plain = lab.options.plain
    if not plain.is_file() or is_sanitized(plain):
        raise Skipped(f"{plain} is no build without sanitizers: see --plain")
    with fake_lab(lab) as fake:
        fake.api.world(nodes=NODES, cards=CARDS, card_mem=80, pods=PODS, gpu_pods=GPU_PODS)
        daemon = fake.cardpack(binary=plain)
        sent = fake.api.stats()["bytes_sent"]
        synced = daemon.peak_rss()
        check(sent > 200 * MIB, f"only {sent} bytes were sent")
        check(synced < LIMIT, f"{synced} bytes resident for lists of {sent}")
        shown = daemon.inspect()["nodes"]
        used = sum(node["usedGPU"] for node in shown)
        check(len(shown) == NODES + 1 and used == GPU_PODS * 8, f"{len(shown)} nodes, {used}")
        check(all(len(n["devs"]) == CARDS for n in shown if n["name"] != "n1"), "cards")
        names = [node["name"] for node in shown]
        check(len(daemon.fitting(asks("80"), names)) > 0, "no node for a whole card")
        for i in range(20):
            check(len(daemon.fitting(asks(str(1 + i)), names)) > 0, "no node")
        for i in range(50):
            error = daemon.bind(fake.pod(f"p{i}", 8), f"node-{i % 7:05}")
            check(error == "", error)
        # A relist: its cost on top of the state in memory.
        lists = len(daemon.log("list is in"))
        for resource in ("pods", "nodes"):
            fake.api.fault(kind="error_event", code=410, resource=resource, now=True)
        wait_for(
            lambda: {line["kind"] for line in daemon.log("list is in")[lists:]} >= {"Pod", "Node"},
            "the lists to come again",
            300,
            poll=1,
        )
        peak = daemon.peak_rss()
        print(f"        {sent / MIB:.0f} MiB of lists, peak RSS {synced / MIB:.1f} MiB after the "
              f"first, {peak / MIB:.1f} MiB after all")  # fmt: skip
        check(peak < LIMIT, f"{peak} bytes resident")
