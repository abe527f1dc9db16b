"""The picture shows exactly inspect's figures."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import world
from lab import Daemon, Lab, check, equal

# Every row in the document, from its accessible names.
ROWS = """
return [...document.querySelectorAll('.row')]
    .sort((a, b) => a.getAttribute('aria-rowindex') - b.getAttribute('aria-rowindex'))
    .map((row) => ({
  name: row.querySelector('.name').textContent,
  fig: row.querySelector('.node .fig').textContent,
  label: row.querySelector('.node').getAttribute('aria-label'),
  cards: [...row.querySelectorAll('.card')].map((card) => ({
    kind: card.className.replace('card ', ''), label: card.getAttribute('aria-label'),
    cap: card.querySelector('.cap').textContent, icon: card.querySelector('.icon') !== null,
    bar: card.querySelector('.bar').clientWidth,
    pods: [...card.querySelectorAll('.pod')].map((p) => ({
      label: p.getAttribute('aria-label'), px: p.getBoundingClientRect().width})),
  })),
}))"""


TOTALS = """
return Object.fromEntries([...document.querySelectorAll('#totals .total')].map(
    (t) => [t.dataset.total, t.textContent.trim()]))"""


def figures(node: dict) -> list[tuple]:
    """A node of inspect: its cards, and the pods on each."""
    return [(d["id"], d["usedGPU"], d["totalGPU"],
             sorted((f"{p['namespace']}/{p['name']}", p["usedGPU"]) for p in d["pods"]))
            for d in node["devs"]]


def drawn(row: dict) -> list[tuple]:
    """The same of a row, from its accessible names."""
    cards = []
    for card in row["cards"]:
        title, *parts = card["label"].split(", ")
        index = -1 if title == "no valid card" else int(title.removeprefix("card "))
        amounts = next(p for p in parts if p.endswith((" used", " held")))
        used, _, total = amounts.rsplit(" ", 1)[0].partition(" of ")
        pods = []
        for pod in card["pods"]:
            name, mem, *_ = pod["label"].split(", ")
            pods.append((name, int(mem.removesuffix(" of memory"))))
        cards.append((index, int(used), int(total or 0), sorted(pods)))
    return cards


def compare(lab: Lab, daemon: Daemon, names: list[str]) -> None:
    nodes = daemon.inspect()
    rows = {r["name"]: r for r in lab.browser.js(ROWS)}
    for name in names:
        equal(drawn(rows[name]), figures(nodes[name]), name)


@check
def figures_of_inspect(lab: Lab) -> None:
    """Rows, bars and blocks have inspect's figures; a block's width is proportional to its memory."""
    daemon = lab.daemon("small")
    b = lab.open(daemon)
    nodes = daemon.inspect()
    rows = b.js(ROWS)
    equal([r["name"] for r in rows], sorted(nodes), "the rows")
    compare(lab, daemon, list(nodes))
    for row in rows:
        equal(row["fig"].split("/")[0], str(nodes[row["name"]]["usedGPU"]), row["name"])
        for card, (_, used, total, _) in zip(row["cards"], figures(nodes[row["name"]])):
            for pod in card["pods"]:
                mem = int(pod["label"].split(", ")[1].split()[0])
                share = mem / max(total, used)
                assert abs(pod["px"] - share * card["bar"]) < 2, (row["name"], pod, card["bar"])
    notebooks = next(r for r in rows if r["name"] == "notebooks-0")
    equal((notebooks["fig"], notebooks["label"].split(", ")[1:4]),
          ("36/44", ["36 of 44 used", "40 allocatable", "largest free 4"]), "what is allocatable is said")
    totals = b.js(TOTALS)
    total = sum(n["totalGPU"] for n in nodes.values())
    used = sum(n["usedGPU"] for n in nodes.values())
    cards = sum(d["id"] >= 0 for n in nodes.values() for d in n["devs"])
    pods = sum(len(d["pods"]) for n in nodes.values() for d in n["devs"])
    free = [(d["freeGPU"], d["usedGPU"], n["freeGPU"]) for n in daemon.json(
        "GET", "/gpushare-scheduler/cards")["nodes"] for d in n["devs"] if d["id"] >= 0]
    sizes = [(min(of_card, of_node), used_there) for of_card, used_there, of_node in free]
    split = sum(size for size, used_there in sizes if used_there > 0)
    equal(totals, {
        "nodes": f"Nodes {len(nodes)}", "cards": f"Cards {cards}", "pods": f"Pods {pods}",
        "memory": f"Memory used {used} of {total} GiB {100 * used // total}%",
        "free": f"Largest free {max(size for size, _ in sizes)} GiB",
        "split": f"Fragmentation {100 * split // sum(size for size, _ in sizes)}%",
        "trouble": "Trouble 2"}, "the totals")


@check
def agrees_with_kubectl(lab: Lab) -> None:
    """The page and kubectl cardpack have the same sums, percentage, unit, largest free and pods."""
    def make() -> list[dict]:
        return [*world.small(), world.pod("both", 10, labels={"aliyun.com/gpu-count": "2"})]

    daemon = lab.daemon("both", make)
    daemon.bind(next(i for i in make() if i["metadata"]["name"] == "both"), "train-0")
    devs = daemon.inspect()["train-0"]["devs"]
    equal(sum(p["name"] == "both" for d in devs for p in d["pods"]), 2, "a pod on two cards")
    plugin = Path(daemon.binary).parent / "kubectl-cardpack"
    said = subprocess.run([plugin, "top", "-o", "wide", "--daemon-url", f"http://127.0.0.1:{daemon.port}"],
                          capture_output=True, text=True, check=True).stdout.splitlines()
    unit = re.search(r"GPU Memory\((\w+)\)", said[0])[1]
    used, total, rate = re.fullmatch(r"(\d+)/(\d+) \((\d+)%\)", said[-1]).groups()
    b = lab.open(daemon)
    totals = b.js(TOTALS)
    equal(totals["memory"], f"Memory used {used} of {total} {unit} {rate}%", "the cluster")
    rows = {r["name"]: r for r in b.js(ROWS)}
    largest, pods = [], 0
    for line in said[1:-3]:
        name, *_ = line.split()
        figure, of_wide = re.search(r"(\d+/\d+) +(\d+%.*)$", line).groups()
        _, _, free, n_pods, *_ = of_wide.split()
        label = rows[name]["label"].split(", ")
        equal((rows[name]["fig"], f"largest free {free}" in label), (figure, True), name)
        assert f"{n_pods} pod{'' if n_pods == '1' else 's'}" in label, (n_pods, label)
        largest.append(int(free))
        pods += int(n_pods)
    equal((totals["free"], totals["pods"]), (f"Largest free {max(largest)} {unit}", f"Pods {pods}"), "sums")
    b.js("document.getElementById('tab-ask').click()")
    assert f"in {unit}." in b.js("return document.querySelector('.ask-help').textContent")


@check
def totals_filter(lab: Lab) -> None:
    """A press on a total shows the nodes that it counts, and a second press all of them again."""
    b = lab.open(lab.daemon("small"))
    wanted = {
        "trouble": (["infer-0", "train-0"], "#only=trouble"),
        "free": (["train-0", "train-1"], "#free=80&sort=free"),
        "split": (["infer-0", "notebooks-0", "train-0", "mixed-0", "train-1"], "#only=split&sort=split"),
        "memory": (["notebooks-0", "infer-0", "train-0", "train-1", "mixed-0"], "#only=busy&sort=full"),
        "pods": (["infer-0", "train-0", "notebooks-0", "train-1", "mixed-0"], "#only=busy&sort=pods"),
        "cards": (sorted(["infer-0", "mixed-0", "notebooks-0", "train-0", "train-1"]), "#only=usable"),
    }
    pressed = ("return [...document.querySelectorAll('#totals [aria-pressed=true]')].map("
               "(t) => t.dataset.total)")
    for total, (names, address) in wanted.items():
        b.js("document.querySelector(`[data-total=${arguments[0]}]`).focus()", total)
        b.press("Enter")
        lab.settle()
        equal(b.js("return document.activeElement.dataset.total"), total, "the focus stays")
        equal([r["name"] for r in b.js(ROWS)], names, total)
        equal(b.js("return location.hash"), address, f"the address after {total}")
        equal(b.js(pressed), [total], "pressed")
        equal(b.js("return document.getElementById('only').value"),
              "" if total == "free" else address.split("=")[1].split("&")[0], "the control")
        b.press("Enter")
        lab.settle()
        equal((len(b.js(ROWS)), b.js("return location.hash"), b.js(pressed)), (5, "", []),
              f"after the second press on {total}")
    b.fill("#q", "train")
    b.js("document.querySelector('[data-total=nodes]').click()")
    lab.settle()
    equal((len(b.js(ROWS)), b.js("return document.getElementById('q').value")), (5, ""), "all nodes")


@check
def filter_reaches_waiting(lab: Lab) -> None:
    """The words of the filter apply to the waiting pods, too, and the tab says how many pass."""
    b = lab.open(lab.daemon("small"), "#waiting=")
    who = "return [...document.querySelectorAll('.waiting .who')].map((w) => w.textContent)"
    tab = "return document.getElementById('n-waiting').textContent"
    equal((b.js(who), b.js(tab)), (["research/big-job", "research/train"], "2"), "without a filter")
    b.fill("#q", "BIG")
    lab.settle()
    equal((b.js(who), b.js(tab)), (["research/big-job"], "1 of 2"), "with one")
    equal(b.js("return document.querySelector('.panel-body p').textContent"),
          "2 pods without a node, oldest first. 1 passes the filter.", "in words")
    b.fill("#q", "big absent")
    lab.settle()
    equal((b.js(who), b.js(tab)), ([], "0 of 2"), "none")
    lab.open(lab.daemon("small"), "#q=research&waiting=")
    equal((len(b.js(who)), b.js(tab)), (2, "2"), "by the namespace")


@check
def states_without_colour(lab: Lab) -> None:
    """Cordoned, unhealthy, set aside and invalid cards differ in more than colour, and have a text."""
    b = lab.open(lab.daemon("small"))
    rows = {r["name"]: r for r in b.js(ROWS)}
    kinds = {("train-0", 3): ("cordoned", "cordoned: nothing new is placed on it"),
             ("train-1", 2): ("exclusive", "set aside for another device plugin"),
             ("infer-0", 2): ("unhealthy", "unhealthy: nothing is placed on it"),
             ("infer-0", 4): ("nowhere", "no valid card")}
    for (name, at), (kind, words) in kinds.items():
        card = rows[name]["cards"][at]
        equal((card["kind"], card["icon"]), (kind, True), f"{name} card {at}")
        assert words in card["label"], card
    looks = b.js("""
        const look = {};
        for (const kind of ['ok', 'cordoned', 'unhealthy', 'exclusive', 'nowhere']) {
            const s = getComputedStyle(document.querySelector(`.row .card.${kind} .bar`));
            const shape = s.backgroundImage.replace(/rgba?\\([^)]*\\)/g, '');
            look[kind] = [s.borderTopStyle, s.borderTopWidth, shape].join(' ');
        }
        return look""")
    equal(len(set(looks.values())), 5, f"looks without colours {looks}")
    models = b.js("return [...document.querySelectorAll('#model option')].map((o) => o.value)")
    assert "NVIDIA-A100" in models and world.MODELS[2] in models, models


@check
def really_used(lab: Lab) -> None:
    """What is really used is in the bar, the names, the tooltip and the panel; a pod over its share has a
    sign; what is unknown is said to be."""
    b = lab.open(lab.daemon("measured"))
    compare(lab, lab.daemon("measured"), ["train-0", "mib-0"])
    rows = {r["name"]: r for r in b.js(ROWS)}
    cards = [c["label"] for c in rows["train-0"]["cards"]]
    assert "30.2 really used, 37% busy" in cards[0] and "share" not in cards[0], cards
    assert "58.5 really used, 3 pods, a pod uses more than its share" in cards[1], cards
    assert "0 really used, 0% busy" in cards[2] and "really" not in cards[3], cards
    assert "88.8 of 240 really used" in rows["train-0"]["label"], rows["train-0"]["label"]
    assert "5000 really used" in rows["mib-0"]["cards"][0]["label"], rows["mib-0"]
    assert not any("really" in c["label"] for c in rows["infer-0"]["cards"]), rows["infer-0"]
    equal([c["icon"] for c in rows["train-0"]["cards"]], [False, True, False, True], "signs")
    pods = {p["label"].split(", ")[0]: p["label"] for c in rows["train-0"]["cards"] for p in c["pods"]}
    assert pods["research/llama-7b-eval"].endswith("29.2 really used, more than its share"), pods
    assert pods["speech/whisper"].endswith(", 12 really used"), pods
    assert "really" not in pods["speech/tts"], pods
    shape = b.js("""
        const row = document.querySelector('.row[data-name="train-0"]');
        const border = (p) => getComputedStyle(p).borderTopStyle;
        const part = (bar) => bar.querySelector('.real')?.getBoundingClientRect().width / bar.clientWidth;
        return {over: border(row.querySelector('.pod.exceeds')), n: row.querySelectorAll('.pod.exceeds').length,
                other: border(row.querySelector('.pod:not(.exceeds)')),
                parts: [...row.querySelectorAll('.bar')].map(part)};""")
    equal((shape["over"], shape["n"], shape["other"]), ("dotted", 1, "none"), "blocks")
    for got, wanted in zip(shape["parts"], (31000 / 81920, 60000 / 81920, 0)):
        assert abs(got - wanted) < 0.03, shape
    equal(shape["parts"][3], None, "a card of which nothing is known")
    for name, wanted in (("train-0", "58.5 really used"), ("infer-0", "Really used: unknown")):
        b.js("location.hash = `node=${arguments[0]}`", name)
        b.until("return document.querySelector('#panel h2')?.textContent === arguments[0]", name)
        text = b.js("return document.getElementById('panel').textContent")
        assert wanted in text, text
    tips = b.js("""
        const tip = (selector) => {
            document.querySelector(selector).dispatchEvent(new PointerEvent('pointerover', {bubbles: true}));
            return document.getElementById('tip').textContent; };
        return ['train-0', 'infer-0'].map((n) => tip(`.row[data-name="${n}"] .card`));""")
    assert "30.2 really used" in tips[0] and "Really used: unknown" in tips[1], tips


TILES = """
return [...document.querySelectorAll('.tile')]
    .sort((a, b) => a.getAttribute('aria-rowindex') - b.getAttribute('aria-rowindex'))
    .map((t) => ({name: t.dataset.name, cells: [...t.querySelectorAll('.cell')].map((c) => ({
        label: c.getAttribute('aria-label'), fill: c.style.getPropertyValue('--fill'),
        kind: c.className.replace('card cell ', '')}))}))"""

HEADS = """
return [...document.querySelectorAll('.group')].map((g) => [g.getBoundingClientRect().top, g.textContent])
    .sort((a, b) => a[0] - b[0]).map((g) => g[1])"""


@check
def dense_view(lab: Lab) -> None:
    """A cell for each card, with inspect's figures in its name; groups by model and by pool; keys."""
    pools = {"train-0": "gold", "train-1": "gold", "mixed-0": "silver"}

    def make() -> list[dict]:
        items = world.small()
        for item in items:
            if item["metadata"]["name"] in pools and item["kind"] == "Node":
                item["metadata"]["labels"]["cardpack.io/pool"] = pools[item["metadata"]["name"]]
        return items

    daemon = lab.daemon("pools", make)
    nodes = daemon.inspect()
    b = lab.open(daemon, "#view=cards")
    tiles = b.js(TILES)
    equal([t["name"] for t in tiles], sorted(nodes), "a tile for each node")
    for tile in tiles:
        for cell, (index, used, total, _) in zip(tile["cells"], figures(nodes[tile["name"]]), strict=True):
            what = f"{used} of {total} used" if index >= 0 else f"{used} held"
            assert cell["label"].startswith(f"{tile['name']}, ") and what in cell["label"], cell
            part = 100 * used // total if total else 100
            equal(cell["fill"], f"{max(8, part) if used else 0}%", cell["label"])
    kinds = {(t["name"], i): c["kind"] for t in tiles for i, c in enumerate(t["cells"])}
    equal([kinds[at] for at in (("train-0", 3), ("train-1", 2), ("infer-0", 2), ("infer-0", 4))],
          ["cordoned", "exclusive", "unhealthy", "nowhere"], "states")
    equal(b.js(HEADS), [], "no groups")
    b.js("const s = document.getElementById('view'); s.value = 'pool'; s.dispatchEvent(new Event('input'))")
    lab.settle()
    equal(b.js(HEADS), [
        "no pool 2 nodes, 6 cards, 68 of 104 GiB used (65%), largest free 12",
        "pool gold 2 nodes, 8 cards, 192 of 640 GiB used (30%), largest free 80",
        "pool silver 1 node, 3 cards, 4 of 61 GiB used (6%), largest free 40"], "the pools")
    equal([t["name"] for t in b.js(TILES)],
          ["infer-0", "notebooks-0", "train-0", "train-1", "mixed-0"], "in their groups")
    equal(b.js("return location.hash"), "#view=pool", "the address")

    where = ("const a = document.activeElement; return [a.closest('.tile').dataset.name,"
             " Number(a.dataset.col)]")
    b.js("document.getElementById('skip').click()")
    for key, wanted in (("ArrowRight", ["infer-0", 1]), ("ArrowLeft", ["infer-0", 0]),
                        ("End", ["infer-0", 4]), ("ArrowRight", ["notebooks-0", 0]),
                        ("ArrowDown", ["train-1", 0]), ("ArrowUp", ["notebooks-0", 0]),
                        ("ArrowLeft", ["infer-0", 4]), ("ArrowDown", ["train-0", 3])):
        b.press(key)
        equal(b.js(where), wanted, f"after {key}")
    assert "Card 3, NVIDIA-A100-SXM4-80GB of train-0" in b.js(
        "return document.getElementById('tip').textContent")
    b.press("Enter")
    equal(b.js("return location.hash"), "#view=pool&node=train-0", "Enter opens the node")
    b.press("Escape")
    lab.open(daemon, "#view=cards&pod=research%2Ftrain")
    b.until("return document.querySelector('.answer') !== null")
    lab.settle()
    fits = {v["node"]: [g["card"] for g in v["placement"]] for v in daemon.json(
        "GET", "/gpushare-scheduler/explain/research/train")["verdicts"] if v["fits"]}
    goes = b.js("return [...document.querySelectorAll('.tile')].filter((t) => t.querySelector('.goes'))"
                ".map((t) => [t.dataset.name, [...t.querySelectorAll('.goes')].map((c) => "
                "Number(c.dataset.col))])")
    equal(sorted(goes), sorted([name, cards] for name, cards in fits.items()), "where a pod would go")


SPACES = """
return [...document.querySelectorAll('.spaces > li')].map((li) => ({
  name: li.querySelector('.who').textContent, mem: li.querySelector('button .fig').textContent,
  figures: li.querySelector('.figures').textContent, rate: li.querySelector('button .rate').textContent,
  hue: li.querySelector('.swatch').dataset.hue,
  limits: [...li.querySelectorAll('.limits li')].map((l) => [...l.children].slice(0, 2).map(
      (c) => c.textContent).join(': '))}))"""


@check
def namespaces(lab: Lab) -> None:
    """Each namespace has its totals, its quotas and its colour; a click shows only its nodes and pods."""
    quota = {"kind": "ConfigMap", "metadata": {"name": "cardpack-quota", "namespace": "kube-system"},
             "data": {"quota.yaml": "namespaces: {search: {limits: {memory: 20}, perPool: {gold: {cards: 3}}}"
                                    ", '*': {limits: {compute: 400}}}"}}
    daemon = lab.daemon("spaces", lambda: [*world.small(), quota])
    b = lab.open(daemon, "#namespaces=")
    b.until("return document.querySelectorAll('.spaces .limits').length > 0")
    held: dict[str, list[int]] = {}
    for n in daemon.inspect().values():
        for d in n["devs"]:
            for p in d["pods"]:
                held.setdefault(p["namespace"], []).append(p["usedGPU"])
    used = sum(n["usedGPU"] for n in daemon.inspect().values())
    got = {s["name"]: s for s in b.js(SPACES)}
    equal(list(got), sorted(held, key=lambda name: (-sum(held[name]), name)), "the largest first")
    for name, sizes in held.items():
        equal((got[name]["mem"], got[name]["rate"], got[name]["figures"].split(",")[0]),
              (f"{sum(sizes)} GiB", f"{100 * sum(sizes) // used}%",
               f"{len(sizes)} pod{'' if len(sizes) == 1 else 's'}"), name)
    equal(got["search"]["limits"], ["quota of memory: 15 of 20", "quota of cards in pool gold: 0 of 3"],
          "its own quotas")
    equal(got["research"]["limits"], ["quota of compute: 120 of 400%"], "those of all others")
    assert "2 waiting" in got["research"]["figures"], got["research"]
    hues = dict(b.js("return [...document.querySelectorAll('.row .pod')].map((p) => ["
                     "p.getAttribute('aria-label').split('/')[0], p.dataset.hue])"))
    equal({name: s["hue"] for name, s in got.items()}, hues, "the colours of the blocks")
    key = b.js("return [...document.querySelectorAll('#key .key')].map((k) => [k.dataset.key,"
               " k.querySelector('.swatch')?.dataset.hue ?? ''])")
    equal(key, [*([name, hues[name]] for name in got)], "the key in the legend")

    b.js("document.querySelector('.spaces [data-key=search]').focus()")
    b.press("Enter")
    lab.settle()
    equal(b.js("return [...document.querySelectorAll('.row')].map((r) => r.dataset.name)"), ["infer-0"],
          "its nodes")
    equal(b.js("return [document.activeElement.dataset.key, location.hash]"),
          ["search", "#ns=search&namespaces="], "the focus stays")
    equal(b.js("return [...document.querySelectorAll('.row .pod.other')].every((p) => "
               "!p.getAttribute('aria-label').startsWith('search/'))"
               " && document.querySelectorAll('.row .pod.other').length === 2"), True, "pods of others")
    equal(b.js("return document.getElementById('n-waiting').textContent"), "0 of 2", "its waiting pods")
    b.click("#ns")
    lab.settle()
    equal(b.js("return [document.querySelectorAll('.row').length, document.activeElement.id]"), [5, "q"],
          "all again")
    b.click("#key .key")
    lab.settle()
    equal(b.js("return location.hash"), f"#ns={next(iter(got))}&namespaces=", "by the key")


@check
def filters(lab: Lab) -> None:
    """By name, pod, model and free room on one card; the URL keeps the filter."""
    daemon = lab.daemon("small")
    b = lab.open(daemon)

    def shown() -> list[str]:
        lab.settle()
        return [r["name"] for r in b.js(ROWS)]

    b.fill("#q", "TRAIN")
    equal(shown(), ["train-0", "train-1"], "by a part of the name")
    equal(b.js("return document.getElementById('count').textContent"), "2 of 5 nodes", "count")
    equal(b.js(TOTALS)["nodes"], "Nodes 2 of 5", "the same among the totals")
    b.fill("#q", "search/ranker")
    equal(shown(), ["infer-0"], "by a pod")
    b.fill("#q", "infer-0 no-such")
    equal(shown(), [], "every word must match")
    assert "No node matches" in b.js("return document.getElementById('empty').textContent")
    b.click("#empty button")
    b.fill("#free", "29")
    equal(shown(), ["mixed-0", "train-0", "train-1"], "by what is free on one card")
    b.fill("#free", "80")
    equal(shown(), ["train-0", "train-1"], "neither cordoned nor set aside count")
    b.js("const s = document.getElementById('model'); s.value = 'NVIDIA-A100';"
         "s.dispatchEvent(new Event('input'))")
    b.fill("#free", "30")
    equal(shown(), ["mixed-0"], "a card of this model with that much memory free")
    equal(b.js("return location.hash"), "#model=NVIDIA-A100&free=30", "the address")
    place = b.js("return location.hash")
    lab.open(daemon, place)
    equal(shown(), ["mixed-0"], "after it was opened again")
    equal(b.js("return document.getElementById('free').value"), "30", "the field")
    lab.open(daemon, "#only=trouble")
    equal(shown(), ["infer-0", "train-0"], "those in trouble")


@check
def orders(lab: Lab) -> None:
    """Sorted by name with numbers as numbers, and by inspect's used or free memory."""
    daemon = lab.daemon("numbered", lambda: [world.node(f"n{i}", 32, 2) for i in (1, 2, 10, 9)] + [
        world.pod("a", 12, node="n2", card=0), world.pod("b", 5, node="n10", card=0),
        world.pod("c", 4, node="n10", card=1), world.pod("d", 3, node="n10", card=1)])
    b = lab.open(daemon)
    wanted = {"": ["n1", "n2", "n9", "n10"], "full": ["n2", "n10", "n1", "n9"],
              "room": ["n1", "n9", "n2", "n10"], "free": ["n1", "n2", "n9", "n10"],
              "pods": ["n10", "n2", "n1", "n9"], "split": ["n10", "n2", "n1", "n9"]}
    for order, names in wanted.items():
        b.js("const s = document.getElementById('sort'); s.value = arguments[0];"
             "s.dispatchEvent(new Event('input'))", order)
        lab.settle()
        equal([r["name"] for r in b.js(ROWS)], names, f"sorted by {order or 'name'}")


@check
def hostile_names(lab: Lab) -> None:
    """Names of nodes, pods and models that look like HTML are shown as text everywhere."""
    daemon = lab.daemon("hostile")
    b = lab.open(daemon, "#waiting=")
    b.until("return document.querySelector('.waiting .who') !== null")
    name = world.HOSTILE
    equal(b.js("return document.querySelector('.name').textContent"), name, "the node's name")
    b.hover(".row .pod")
    assert name in b.js("return document.getElementById('tip').textContent")
    b.click(".waiting button")
    b.until("return document.querySelector('.answer') !== null")
    b.click(".reason summary")
    b.click(".row .node")
    b.until("return document.querySelector('.card-part') !== null")
    drawn_pod = b.wait_js("""
        import(new URL('draw.js', location.href)).then(({draw_row}) => {
            const pod = {namespace: arguments[0], name: arguments[0], mem: 9};
            const row = draw_row({name: arguments[0], cards: [{id: 0, total: 9, used: 9, pods: [pod]}]},
                                 {columns: 1, bar: 900}, undefined, {pod: '', namespace: ''});
            document.getElementById('rows').append(row);
            done(row.querySelector('.pod').textContent);
        })""", name)
    equal(drawn_pod, name, "a pod's name")
    listed = b.wait_js("""
        Promise.all([import(new URL('namespaces.js', location.href)), import(new URL('model.js', location.href))])
            .then(([{key_draw, namespaces_draw}, {Model}]) => {
                const model = new Model();
                const name = arguments[0];
                const pods = [{namespace: name, name: 'p', mem: 9}];
                model.apply({nodes: [{name: 'n', total: 9, used: 9, cards: [{id: 0, total: 9, used: 9, pods}]}]});
                model.quotas = {total: 1, namespaces: [{name, limits: [
                    {kind: 'memory', pool: name, used: 9, limit: 9}]}]};
                const box = document.createElement('div');
                document.querySelector('aside').append(...namespaces_draw(model, {ns: ''}, {}).filter(Boolean), box);
                key_draw(box, model, {ns: ''}, {});
                done([...document.querySelectorAll('.spaces .who, .limits span:first-child, aside .key .name')].map(
                    (e) => e.textContent));
            })""", name)
    equal(listed, [name, f"quota of memory in pool {name}", name], "a namespace, its quota and its key")
    b.js("const s = document.getElementById('view'); s.value = 'model'; s.dispatchEvent(new Event('input'))")
    lab.settle()
    assert b.js(HEADS)[0].startswith(name), "a group's name"
    alive = b.js("return [document.title, document.querySelectorAll('main img, main script,"
                 " #tip img, #model img, aside img').length, document.scripts.length]")
    equal(alive, ["cardpack", 0, 1], "title, images and scripts")
