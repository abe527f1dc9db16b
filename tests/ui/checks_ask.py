"""Questions about a pending pod or a typed request; the answers are the daemon's own."""

from __future__ import annotations

import json
from urllib.parse import quote

import world
from lab import Lab, check, equal

ANSWER = """
const t = (css) => document.querySelector(css)?.textContent ?? null;
return {head: t('.head-line'), best: t('.best-line'), stop: t('.stop'), note: t('.cards-only'),
  reasons: Object.fromEntries([...document.querySelectorAll('.reason')].map(
      (r) => [r.dataset.verdict, Number(r.querySelector('.n').textContent.replaceAll(',', ''))])),
  fit: t('.answer h3'),
  ghosts: [...document.querySelectorAll('.row')].filter((r) => r.querySelector('.ghost')).map(
      (r) => [r.dataset.name, [...r.querySelectorAll('.ghost')].map(
          (g) => [Number(g.closest('.card').dataset.col), g.textContent])]),
  whys: Object.fromEntries([...document.querySelectorAll('.row.refused')].map(
      (r) => [r.dataset.name, r.querySelector('.why').textContent]))}"""

WAITING = """
return [...document.querySelectorAll('.waiting button')].map((b) => ({
  who: b.querySelector('.who').textContent, wants: b.querySelector('.wants').textContent,
  because: [...b.querySelectorAll('.because')].map((r) => r.textContent)}))"""


def answered(lab: Lab) -> dict:
    lab.browser.until("return document.querySelector('.answer, .result .bad') !== null")
    lab.settle()
    return lab.browser.js(ANSWER)


def compare(got: dict, told: dict) -> None:
    """Compares the page's answer with the daemon's."""
    equal(got["reasons"], told["refused"], f"reasons; {got['head']}")
    whys = {v["node"]: v["verdict"].replace("_", " ") for v in told["verdicts"] if not v["fits"]}
    equal(got["whys"], whys, "why not, in the rows")
    fitting = [v for v in told["verdicts"] if v["fits"]]
    equal([name for name, _ in got["ghosts"]], [v["node"] for v in fitting], "where it fits")
    if fitting:
        best = fitting[0]
        words = ", ".join(
            f"card {g['card']} ({g['memory']}"
            + (f", {g['compute']}% of compute)" if "compute" in g else ")")
            for g in best["placement"])
        equal(got["best"], f"It would go to {best['node']}, {words}", "the best")
    equal(got["note"], "Cards only: taints, CPU and affinity are kube-scheduler's." if fitting else None,
          "what a named node does not promise")


@check
def waiting_pods(lab: Lab) -> None:
    """The waiting pods are listed, oldest first, with what they want and why they wait."""
    daemon = lab.daemon("small")
    big = next(i for i in world.small() if i["metadata"]["name"] == "big-job")
    daemon.refuse(big, list(daemon.inspect()))
    b = lab.open(daemon)
    equal(b.js("return document.getElementById('n-waiting').textContent"), "2", "how many")
    b.click("#tab-waiting")
    b.until("return [...document.querySelectorAll('.because')].length > 0")
    got = b.js(WAITING)
    equal([p["who"] for p in got], ["research/big-job", "research/train"], "who")
    equal([p["wants"] for p in got], ["asks for 96", "asks for 60"], "what")
    equal((got[0]["because"], got[1]["because"]),
          (["too large on 5 nodes: 96 asked, the largest card has 80"], []), "why")


@check
def reasons_have_their_value(lab: Lab) -> None:
    """Each reason says on how many nodes it holds, and how much was asked and is there."""
    quota = {"kind": "ConfigMap", "metadata": {"name": "cardpack-quota", "namespace": "kube-system"},
             "data": {"quota.yaml": "namespaces: {team: {limits: {memory: 10}}}"}}
    daemon = lab.daemon("reasons", lambda: [
        world.node("a", 32, 2), world.node("b", 32, 2), world.node("c", 8, 1), quota,
        world.pod("a0", 9, node="a", card=0, cores=70), world.pod("a1", 12, node="a", card=1, cores=50),
        world.pod("b0", 10, node="b", card=0, cores=60), world.pod("b1", 11, node="b", card=1, cores=80),
        world.pod("held", 4, node="c", card=0, namespace="team", cores=90)])
    wanted = {
        "full": (world.pod("full", 9), ["no card free on 2 nodes: 9 asked, the most that is free on a "
                                        "card: 7", "too large on 1 node: 9 asked, the largest card has 8"]),
        "slow": (world.pod("slow", 1, cores=60), ["no cores on 3 nodes: 60% of compute asked, the most "
                                                  "that is free on a card: 50%"]),
        "over": (world.pod("over", 7, namespace="team"), [
            "quota on 3 nodes: quota of namespace team: memory: 4 of 10 used, 7 asked"]),
        "model": (world.pod("model", 1, annotations={"cardpack.io/card-model": "A100*"}),
                  ["model on 3 nodes: A100*"]),
    }
    for pod, _ in wanted.values():
        daemon.make_pod(pod)
        daemon.refuse(pod, ["a", "b", "c"])
    b = lab.open(daemon, "#waiting=")
    b.until("return document.querySelectorAll('.because').length >= 5")
    got = {p["who"].split("/")[1]: p["because"] for p in b.js(WAITING)}
    equal(got, {name: words for name, (_, words) in wanted.items()}, "why they wait")


@check
def explain_of_a_waiting_pod(lab: Lab) -> None:
    """A click on a waiting pod shows its node, and for each other node the reason against it."""
    daemon = lab.daemon("small")
    b = lab.open(daemon, "#waiting=")
    b.until("return document.querySelectorAll('.waiting button').length === 2")
    b.click(".waiting li:nth-child(2) button")
    told = daemon.json("GET", "/gpushare-scheduler/explain/research/train")
    got = answered(lab)
    compare(got, told)
    equal(got["head"], f"It fits on {told['fit']} of 5 nodes.", "the head")
    equal(b.js("return location.hash"), "#pod=research%2Ftrain", "the address")
    b.click(".reason summary")
    cards = b.js("return [...document.querySelectorAll('.reason .nodes > li')].map((li) => "
                 "[...li.querySelectorAll('ul li')].map((c) => c.textContent))")
    verdict = b.js("return document.querySelector('.reason').dataset.verdict")
    wanted = [[f"card {c['card']}: {c['reason']}" for c in v["cards"] if not c["fits"]]
              for v in told["verdicts"] if v["verdict"] == verdict]
    equal(cards, wanted, "why each card does not")
    b.click(".reason button.small")
    lab.settle()
    rows = b.js("return [...document.querySelectorAll('.row')].map((r) => r.dataset.name)")
    equal(sorted(rows), sorted(v["node"] for v in told["verdicts"] if v["verdict"] == verdict),
          "only the nodes of this reason")
    b.click(".panel .close")
    lab.settle()
    equal(len(b.js("return [...document.querySelectorAll('.row')].map((r) => r.dataset.name)")), 5,
          "closed, all are there")
    equal(b.js("return document.querySelectorAll('.ghost, .refused, .best').length"), 0, "marks")


PLACE = """
return {head: document.querySelector('.panel .head-line')?.textContent ?? '',
  marks: document.querySelectorAll('.ghost, .refused, .best, .reason, .fits').length,
  subjects: [...document.querySelectorAll('.row .pod.subject')].map((p) => [
      p.closest('.row').dataset.name, p.getAttribute('aria-label')]),
  cards: [...document.querySelectorAll('.card-part h3')].map((h) => h.firstChild.textContent)}"""


@check
def where_a_bound_pod_is(lab: Lab) -> None:
    """A bound pod is shown where it is: no verdict of another node, no outline of free room."""
    daemon = lab.fresh("small", world.small)
    b = lab.open(daemon)
    b.click(".row[data-name=train-0] .pod[aria-label^='speech/whisper']")
    lab.settle()
    equal(b.js(PLACE), {"head": "It is on train-0, card 1 (12)", "marks": 0, "cards": ["Card 1"],
                        "subjects": [["train-0", "speech/whisper, 12 of memory, the pod in the panel"]]},
          "by a click")
    equal([url for url in b.requests() if "/explain/" in url], [], "questions to the daemon")
    for pod, head, card in (
            ("research/llama-70b-0", "It is on train-0, card 0 (80, 90% of compute)", "Card 0"),
            ("ghosts/lost", "It is on infer-0, no valid card (7)", "No valid card")):
        lab.open(daemon, f"#pod={quote(pod, safe='')}")
        b.until("return document.querySelector('.card-part') !== null")
        lab.settle()
        got = b.js(PLACE)
        equal((got["head"], got["marks"], got["cards"]), (head, 0, [card]), pod)
    pod = world.pod("late", 9, namespace="lab")
    daemon.make_pod(pod)
    lab.open(daemon, "#pod=lab%2Flate")
    assert answered(lab)["head"].startswith("It fits on "), "it waits"
    daemon.bind(pod, "train-1")
    b.until("return document.querySelector('.panel .head-line')?.textContent.startsWith('It is on train-1')")
    lab.settle()
    got = b.js(PLACE)
    equal((got["marks"], [name for name, _ in got["subjects"]]), (0, ["train-1"]), "bound since")
    lab.expected = ("404 (Not Found)",)
    daemon.ask("DELETE", "/api/v1/namespaces/lab/pods/late")
    b.until("return document.querySelector('.result .bad')?.textContent.startsWith('404')")


@check
def typed_request(lab: Lab) -> None:
    """The form can request what a Pod can: memory, cards, compute, share, whole, model, policy."""
    daemon = lab.daemon("small")
    b = lab.open(daemon)
    cases = [
        ({"memory": "20"}, world.pod("w", 20)),
        ({"memory": "20", "policy": "spread"},
         world.pod("w", 20, annotations={"cardpack.io/policy": "spread"})),
        ({"memory": "60", "cards": "2"}, world.pod("w", 60, labels={"aliyun.com/gpu-count": "2"})),
        ({"memory": "10", "compute": "75"}, world.pod("w", 10, cores=75)),
        ({"whole": "1", "cards": "2"}, world.pod("w", 2, labels={
            "ack.gpushare.placement": "require-whole-device", "aliyun.com/gpu-count": "2"})),
        ({"percent": "50", "model": "*A100*"}, world.pod("w", 1, annotations={
            "cardpack.io/gpu-mem-percent": "50", "cardpack.io/card-model": "*A100*"})),
        ({"whole": "1", "memory": "30", "namespace": "lab"},
         world.pod("w", 30, namespace="lab",
                   labels={"ack.gpushare.placement": "require-whole-device"})),
    ]
    for fields, pod in cases:
        b.open("about:blank")
        lab.open(daemon)
        b.js("AbortSignal.any = AbortSignal.timeout = undefined")  # as in a browser of 2022
        b.click("#tab-ask")
        for name, value in fields.items():
            if name == "whole":
                b.click("[name=whole]")
            elif name == "policy":
                b.js("document.querySelector('[name=policy]').value = arguments[0]", value)
            else:
                b.fill(f"[name={name}]", value)
        b.press("Tab")
        b.click(".go")
        compare(answered(lab), daemon.json("POST", "/gpushare-scheduler/explain", pod))


@check
def replicas(lab: Lab) -> None:
    """With replicas it says how many fit, where, and why the next one does not."""
    daemon = lab.daemon("small")
    b = lab.open(daemon, f"#ask={quote('memory=40&replicas=50')}")
    got = answered(lab)
    told = daemon.json("POST", "/gpushare-scheduler/fit", {"replicas": 50,
                                                           "pod": world.pod("w", 40)})
    equal(got["fit"], f"{told['fit']} of 50 replicas would fit", "how many")
    equal(got["stop"], "The next one is stopped by: " + told["stopped"]["message"], "what stops the next")
    where = b.js("return [...document.querySelectorAll('.answer .plain:not(.nodes) li')].map("
                 "(li) => li.textContent)")
    equal(where, [f"{n['node']} {n['replicas']}" for n in told["nodes"]], "where")
    assert got["note"].startswith("Cards only: "), got["note"]


@check
def wrong_requests(lab: Lab) -> None:
    """For a wrong request, or a pod that is gone, the page shows the daemon's own words."""
    daemon = lab.daemon("small")
    b = lab.open(daemon, f"#ask={quote('memory=eight')}")
    told = daemon.json("POST", "/gpushare-scheduler/explain", {
        "metadata": {"name": "what-if", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "resources": {
            "limits": {"aliyun.com/gpu-mem": "eight"}}}]}})
    got = answered(lab)
    assert "eight" in told["error"], told
    equal(got["head"], told["error"], "a quantity that is none")
    lab.expected = ("404 (Not Found)",)
    lab.open(daemon, "#pod=research/gone")
    got = answered(lab)
    status, text, _ = daemon.ask("GET", "/gpushare-scheduler/explain/research/gone")
    equal(got["head"], f"{status}: {json.loads(text)['error']}", "a pod that is gone")
    equal(b.js("return document.querySelector('.facts').textContent"),
          "Not among the waiting pods.", "facts")
    equal(got["note"], None, "no node is named")
