"""Live updates: changes appear without a reload, a lost connection is shown, and the work stays small.
"""

from __future__ import annotations

import world
from checks_picture import HEADS, ROWS, TILES, TOTALS, compare
from lab import Lab, check, equal

# Rows in the document: 900 pixels show twenty, and some are drawn beyond the edges.
ROWS_MAX = 40
ELEMENTS_MAX = 6000
TILES_MAX = 600


@check
def live_changes(lab: Lab) -> None:
    """A pod that other clients create and bind is shown waiting, then on its card, without a reload."""
    daemon = lab.fresh("small", world.small)
    b = lab.open(daemon, "#waiting=")
    b.js("window.here = true")
    pod = world.pod("late", 9, namespace="lab")
    daemon.make_pod(pod)
    b.until("return [...document.querySelectorAll('.who')].some((w) => w.textContent === 'lab/late')")
    equal(b.js("return document.getElementById('n-waiting').textContent"), "3", "waiting")
    daemon.bind(pod, "train-1")
    b.until("return document.querySelector('.row[data-name=train-1] [aria-label^=\"lab/late, 9\"]')"
            " !== null")
    b.until("return document.getElementById('n-waiting').textContent === '2'")
    compare(lab, daemon, list(daemon.inspect()))
    equal(daemon.ask("DELETE", "/api/v1/namespaces/lab/pods/late")[0], 200, "deleted")
    b.until("return document.querySelector('.row[data-name=train-1] [aria-label^=\"lab/late, 9\"]')"
            " === null")
    compare(lab, daemon, list(daemon.inspect()))
    equal(b.js("return window.here"), True, "the same page")


@check
def a_hidden_tip_stays_hidden(lab: Lab) -> None:
    """Escape hides the tooltip of a place. It stays hidden while that row is drawn again."""
    daemon = lab.fresh("tip", world.small)
    b = lab.open(daemon)
    hidden = "return document.getElementById('tip').hidden"
    here = "return document.activeElement.closest('.row')?.dataset.name ?? ''"
    b.js("document.getElementById('skip').click()")
    name = b.js(here)
    equal(b.js(hidden), False, "the tooltip of the place with the focus")
    b.press("Escape")
    equal(b.js(hidden), True, "Escape")
    row = "return document.activeElement.closest('.row')"
    b.js(row + ".classList.add('old')")
    pod = world.pod("a-change", 1)
    daemon.make_pod(pod)
    daemon.bind(pod, name)
    b.until(row + "?.classList.contains('old') === false")
    equal([b.js(here), b.js(hidden)], [name, True], "after the row was drawn again")
    b.press("ArrowRight")
    equal(b.js(hidden), False, "of another place")
    b.press("ArrowLeft")
    equal(b.js(hidden), False, "of the first place again")


@check
def reconnection(lab: Lab) -> None:
    """
    A lost connection is shown and the state marked stale; the page reconnects and reads the state
    again.
    """
    lab.expected = ("events", "readyz", "ERR_")
    daemon = lab.daemon("restarted", world.small)
    b = lab.open(daemon)
    rows = len(b.js(ROWS))
    daemon.stop()
    b.until("return document.getElementById('link').dataset.state === 'lost'")
    equal(b.js("return document.body.classList.contains('stale')"), True, "marked stale")
    notice = b.js("return document.getElementById('notice').textContent")
    assert notice.startswith("What is shown is as of ") and "no connection" in notice, notice
    equal(len(b.js(ROWS)), rows, "what was known is still shown")
    daemon.write(lab.folder / "restarted.json", [
        *[i for i in world.small() if i["metadata"]["name"] != "train-1"], world.node("new-0", 16, 1)])
    daemon.start()
    b.until("return document.getElementById('link').dataset.state === 'live'"
            " && document.querySelector('.row[data-name=new-0]') !== null")
    lab.settle()
    equal([r["name"] for r in b.js(ROWS)], sorted(daemon.inspect()), "the nodes that there are now")
    compare(lab, daemon, list(daemon.inspect()))
    equal(b.js("return [document.body.classList.contains('stale'),"
               " document.getElementById('notice').hidden]"), [False, True], "no longer stale")


@check
def large_cluster(lab: Lab) -> None:
    """
    Of 5,000 nodes only those in view are drawn, at every scroll position; the totals equal inspect's.
    """
    daemon = lab.daemon("large")
    b = lab.open(daemon)
    nodes = daemon.inspect()
    totals = b.js(TOTALS)
    pods = sum(len(d["pods"]) for n in nodes.values() for d in n["devs"])
    used = sum(n["usedGPU"] for n in nodes.values())
    total = sum(n["totalGPU"] for n in nodes.values())
    equal({key: totals[key] for key in ("nodes", "cards", "memory", "pods")},
          {"nodes": "Nodes 5,000", "cards": "Cards 40,000", "pods": f"Pods {pods:,}",
           "memory": f"Memory used {used:,} of {total:,} GiB {100 * used // total}%"}, "the totals")
    for at in (0.0, 0.31, 0.77, 1.0):
        b.js("const s = document.getElementById('scroll');"
             "s.scrollTop = s.scrollHeight * arguments[0]", at)
        lab.settle()
        rows = b.js(ROWS)
        assert 10 < len(rows) <= ROWS_MAX, len(rows)
        compare(lab, daemon, [r["name"] for r in rows])
    equal(rows[-1]["name"], "gpu-4999", "the last row")
    elements = b.js("return document.querySelectorAll('*').length")
    assert elements < ELEMENTS_MAX, elements
    for _ in range(30):
        b.js("document.getElementById('scroll').scrollTop -= 400")
    lab.settle()
    assert lab.stats()["live_max"] <= ROWS_MAX, lab.stats()


@check
def dense_view_of_a_large_cluster(lab: Lab) -> None:
    """Hundreds of nodes are in view, as cells, and only those in view are in the document."""
    daemon = lab.daemon("large")
    b = lab.open(daemon, "#view=model")
    for at in (0.0, 0.5, 1.0):
        b.js("const s = document.getElementById('scroll');"
             "s.scrollTop = s.scrollHeight * arguments[0]", at)
        lab.settle()
        tiles = b.js(TILES)
        assert 250 < len(tiles) <= TILES_MAX, len(tiles)
        assert all(len(t["cells"]) == 8 for t in tiles), "cells"
        elements = b.js("return document.querySelectorAll('*').length")
        assert elements < ELEMENTS_MAX, elements
    equal(tiles[-1]["name"], "gpu-4998", "the last of the last model")
    b.js("document.getElementById('scroll').scrollTop = 0")
    lab.settle()
    heads = b.js(HEADS)
    assert len(heads) == 1 and heads[0].startswith("NVIDIA-A10 1,250 nodes, 10,000 cards, "), heads
    before = lab.stats()
    pod = world.pod("dense", 5)
    daemon.make_pod(pod)
    daemon.bind(pod, "gpu-0001")
    b.until("return document.querySelector('.tile[data-name=gpu-0001]') !== null")
    lab.settle()
    equal(daemon.ask("DELETE", "/api/v1/namespaces/default/pods/dense")[0], 200, "deleted")
    lab.settle()
    assert lab.stats()["drawn"] - before["drawn"] <= 4, "tiles drawn for one node"


@check
def work_of_a_change(lab: Lab) -> None:
    """A change costs only the rows in view: other rows are not drawn, sorted or laid out."""
    daemon = lab.daemon("large")
    b = lab.open(daemon)
    before = lab.stats()
    pods = [world.pod(f"far-{i}", 5) for i in range(200)]
    for i, pod in enumerate(pods):
        daemon.make_pod(pod)
        daemon.bind(pod, f"gpu-{4000 + i}")
    near = world.pod("near", 5)
    daemon.make_pod(near)
    daemon.bind(near, "gpu-0003")
    b.until("return document.querySelector('.row[data-name=gpu-0003] [aria-label^=\"default/near,\"]')"
            " !== null")
    lab.settle()
    after = lab.stats()
    assert after["events"] > before["events"], (before, after)
    equal({k: after[k] - before[k] for k in ("views", "layouts")}, {"views": 0, "layouts": 0},
          "sorted and laid out")
    # Twice if the page got both the reservation and the bind.
    assert 1 <= after["drawn"] - before["drawn"] <= 2, (before, after)
    b.js("const q = document.getElementById('q'); q.value = 'gpu-4007';"
         "q.dispatchEvent(new Event('input'))")
    lab.settle()
    compare(lab, daemon, ["gpu-4007"])


@check
def frames_of_a_flood(lab: Lab) -> None:
    """For any number of events between two frames, a frame draws once, and no row twice."""
    daemon = lab.daemon("large")
    b = lab.open(daemon)
    got = b.wait_js("""
        import(new URL('rows.js', location.href)).then(({stats}) => {
            let frames = 0;
            const before = {...stats};
            const s = document.getElementById('scroll');
            const tick = () => {
                for (let i = 0; i < 20; i++)
                    s.scrollTop += 7;
                if (++frames < 60) {
                    requestAnimationFrame(tick);
                    return;
                }
                requestAnimationFrame(() => requestAnimationFrame(() => done(
                    {frames, renders: stats.renders - before.renders,
                     drawn: stats.drawn - before.drawn, top: s.scrollTop})));
            };
            requestAnimationFrame(tick);
        });""")
    assert got["renders"] <= got["frames"] + 2, got
    new_rows = got["top"] / 46 + 12
    assert got["drawn"] <= new_rows, (got, new_rows)


SPARKS = """
return Object.fromEntries([...document.querySelectorAll('.spark')].filter((s) => s.checkVisibility()).map((s) => [
    s.closest('button').dataset.total ?? s.closest('button').id,
    [s.getAttribute('aria-label'), s.firstChild.getAttribute('points').split(' ').length]]))"""


@check
def the_last_hour(lab: Lab) -> None:
    """Memory, largest free and waiting pods have a line of the last hour, with its range in words."""
    daemon = lab.fresh("small", world.small)  # an older one has samples already
    b = lab.browser
    hook = b.cdp("Page.addScriptToEvaluateOnNewDocument", source="""
        window.EventSource = class extends EventSource {
            constructor(...args) { super(...args); window.stream = this; }
        };""")
    try:
        lab.open(daemon)
        equal(b.js(SPARKS), {}, "before the first minute")
        past = {"total": [800, 805, 805], "used": [300, 200, 264], "free": [80, 40, 80], "pending": [0, 7, 2]}
        b.js("window.stream.dispatchEvent(new MessageEvent('history', {data: JSON.stringify(arguments[0])}))",
             past)
        lab.settle()
        equal(b.js(SPARKS), {"memory": ["in the last 3 minutes 200 to 300", 4],
                             "free": ["in the last 3 minutes 40 to 80", 4],
                             "tab-waiting": ["in the last 3 minutes 0 to 7", 4]}, "the lines")
        tops = b.js("const box = document.querySelector('[data-total=memory] .spark').getBoundingClientRect();"
                    "return [box.width, box.height]")
        equal(tops, [60, 16], "the size")
    finally:
        b.cdp("Page.removeScriptToEvaluateOnNewDocument", identifier=hook["identifier"])


@check
def idle_cards_of_no_use(lab: Lab) -> None:
    """Once the policies have learned, the idle cards of no use are a total, with a line that the page keeps itself."""
    def make() -> list[dict]:
        return [world.node("n", 64, 4), *(world.pod(f"waits-{i}", 24) for i in range(40)),
                world.pod("fits", 8)]

    b = lab.browser
    hook = b.cdp("Page.addScriptToEvaluateOnNewDocument", source="""
        window.EventSource = class extends EventSource {
            constructor(...args) { super(...args); window.stream = this; }
        };""")
    try:
        lab.open(lab.daemon("waste", make))
        b.until("return document.querySelector('[data-total=waste]') !== null")
        b.js("""
            const start = Date.now();
            for (const [minute, waste] of [[1, 3], [2, 4.26], [5, 2]]) {
                Date.now = () => start + minute * 60000;
                const data = JSON.stringify({ready: true, why: "", leader: true, nodes: 1, cards: 4, waste});
                window.stream.dispatchEvent(new MessageEvent("status", {data}));
            }""")
        lab.settle()
        equal(b.js("return document.querySelector('[data-total=waste]').textContent"), "Of no use 2 cards", "the total")
        words, points = b.js(SPARKS)["waste"]
        equal((words.split(" 2 to ")[0], words.rsplit(" ", 1)[1], points), ("in the last 5 minutes", "4.26", 6), "the line")
        order = b.js("return [...document.querySelectorAll('#totals .total')].map((t) => t.dataset.total)")
        equal(order[2:5], ["memory", "waste", "free"], "its place")
        b.js("document.querySelector('[data-total=waste]').click()")
        lab.settle()
        equal(b.js("return location.hash"), "#only=usable&sort=room", "the address")
        data = '{"ready":true,"why":"","leader":true,"nodes":1,"cards":4}'
        b.js("window.stream.dispatchEvent(new MessageEvent('status', {data: arguments[0]}))", data)
        lab.settle()
        equal(b.js("return document.querySelector('[data-total=waste]')"), None, "not known any more")
    finally:
        b.cdp("Page.removeScriptToEvaluateOnNewDocument", identifier=hook["identifier"])


@check
def empty_cluster(lab: Lab) -> None:
    """A cluster without cards, and one that is not ready, show a message."""
    b = lab.open(lab.daemon("bare", lambda: [
        {"kind": "Node", "metadata": {"name": "cpu-only"}, "status": {"capacity": {"cpu": "8"}}}]))
    text = b.js("return document.getElementById('empty').textContent")
    assert text.startswith("No node shares its cards") and "aliyun.com/gpu-mem" in text, text
    b.click("#tab-waiting")
    assert "No pod waits for a card." in b.js("return document.getElementById('panel').textContent")
    kubeconfig = lab.folder / "kubeconfig"
    kubeconfig.write_text(
        '{"kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": '
        '{"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}], "clusters": '
        '[{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}]}')
    alone = lab.daemon("alone", None, "--kubeconfig", str(kubeconfig))
    b.open(alone.url())
    b.until("return document.getElementById('link').dataset.state === 'unready'")
    why = alone.ask("GET", "/readyz")[1].decode().strip()
    notice = b.js("return document.getElementById('notice').textContent")
    assert notice.startswith(f"cardpack is not ready: {why}"), (notice, why)
