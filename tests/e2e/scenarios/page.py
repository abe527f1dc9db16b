"""The page's event stream: after any change it ends in the state of inspect."""

from __future__ import annotations

from bench import Bench, Lab, agree, check, dice, scenario
from component import wait_for
from fake_lab import fake_lab
from ui_page import Page


@scenario("fake")
def page_follows(lab: Lab) -> None:
    """Binds, refusals, deletions, changed nodes, relists, an API server that is away."""
    with fake_lab(lab) as fake:
        daemon = fake.cardpack()
        with Page(daemon) as page:
            page.settle()
            for number in range(4):
                pod = fake.pod(f"p{number}", 7)
                wait_for(lambda p=f"p{number}": p in page.waiting(), "it to be shown as waiting")
                check(daemon.bind(pod, "n1") == "", "bind")
            page.settle()
            check(sum(len(card["pods"]) for card in page.nodes["n1"]["cards"]) == 4, page.nodes)
            late = fake.pod("late", 7)
            check(daemon.fitting(late, ["n1"]) == [], "it fits")
            wait_for(
                lambda: page.waiting().get("late", {}).get("because")
                == {
                    "no_card_free": {
                        "nodes": 1,
                        "text": "7 asked, the most that is free on a card: 2",
                    }
                },
                "the page to say why it waits",
            )
            shown = page.waiting()
            check(list(shown) == ["late"] and shown["late"]["mem"] == 7, shown)
            fake.placed_pod("stray", 3, "n1", 9)  # on a card that the node does not have
            fake.resize("n1", 48, 3)
            fake.api.create_node("n2", 8, 1)
            agree(daemon, fake.truth)  # else the page and cardpack may agree on what was before
            page.settle()
            check(-1 in [card["id"] for card in page.nodes["n1"]["cards"]], page.nodes)
            fake.api.delete_pod("p0")
            fake.api.close_watches()
            fake.api.delete_pod("stray")
            fake.api.compact()
            fake.resize("n2", 0, 0)  # it shares no cards any more
            page.settle()
            check(daemon.bind(late, "n1") == "", "bind of the one that waited")
            wait_for(lambda: page.waiting() == {}, "no pod to wait")
            fake.resize("n2", 16, 2)
            fake.outage(500)
            fake.api.delete_pod("p1")
            fake.api.must("DELETE", "/api/v1/nodes/n2")
            page.settle()
            check(page.opened == 1, f"opened {page.opened} times")
            # The stream ends with the daemon and does not delay it.
            daemon.stop()
            check(not daemon.log("shutdown-grace is over: requests or binds are unfinished"), "held up")
        check(not page.broken, page.broken)


@scenario("real")
def page_follows_a_burst(bench: Bench) -> None:
    """The page follows while a scheduler binds, pods end, nodes change, and the API server is killed."""
    luck = dice("page")
    names = [bench.node(f"n{number}", 4, 16) for number in range(4)]
    daemon = bench.cardpack()
    with Page(daemon) as page:
        page.settle()
        bench.pods([f"p{i}" for i in range(20)], [luck.randint(2, 8) for _ in range(20)])
        bench.wait_bound(20)
        page.settle()
        for i in range(0, 20, 3):
            bench.cluster.delete_pod(f"p{i}", bench.namespace)
        bench.resize(names[0], gpu_mem=96)
        bench.unhealthy(names[1], "0,2")
        page.settle()
        bench.cluster.apiserver.kill()
        bench.cluster.apiserver.start()
        bench.cluster.must("DELETE", f"/api/v1/nodes/{names[3]}")
        bench.pods(["late"], [3])
        wait_for(daemon.ready, "cardpack to be ready", 60)
        bench.wait_bound(21, kicking=True)  # kube-scheduler may have asked before cardpack was ready
        page.settle()
        states = [card.get("state") for card in page.nodes[names[1]]["cards"]]
        check(states == ["unhealthy", None, "unhealthy", None], states)
        bench.unhealthy(names[1], None)
        page.settle()
        check(page.opened == 1, f"opened {page.opened} times")
    check(not page.broken, page.broken)
