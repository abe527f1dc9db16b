/* An answer in words: where the pod is or would go, how many replicas would fit, and why other nodes
 * are not feasible. */
import {verdict_text} from "./ask.js";
import {clock, count, el, plural} from "./dom.js";

const NODES_MAX = 20; /* node names shown below one reason */
const LIMITS = "Cards only: taints, CPU and affinity are kube-scheduler's.";

function grants_text(placement) {
    const parts = (placement ?? []).map((g) => `${g.card < 0 ? "no valid card" : `card ${g.card}`} (${
        g.memory}${g.compute ? `, ${g.compute}% of compute` : ""})`);
    return parts.join(", ");
}

function node_link(name, on) {
    return el("button", {type: "button", class: "link-button", onclick: () => on.show(name)}, name);
}

function best_part(answer, on) {
    if (!answer.best)
        return null;
    return el("p", {class: "best-line"}, "It would go to ", node_link(answer.best.node, on),
        answer.best.placement?.length ? `, ${grants_text(answer.best.placement)}` : "");
}

/* Where a pod is. `place` has the node's name, the state and the grants; see Model.place_of. */
export function place_draw(place, on) {
    const where = place.placement.length > 0 ? `, ${grants_text(place.placement)}` : "";
    return el("div", {class: "answer"},
        el("p", {class: "head-line"}, "It is on ", node_link(place.node, on), where),
        el("p", {class: "dim"}, place.state === "bound" ? "Bound." : place.state === "ended"
            ? "It has ended and holds no card." : "Reserved: its Binding is under way."));
}

function headline(answer) {
    if (answer.error)
        return el("p", {class: "head-line bad", role: "alert"}, answer.error);
    if (answer.fits === 0)
        return el("p", {class: "head-line bad"},
            answer.nodes === 0 ? "There are no nodes." : `It fits on none of ${plural(answer.nodes, "node")}.`);
    return el("p", {class: "head-line good"},
        `It fits on ${count(answer.fits)} of ${plural(answer.nodes, "node")}.`);
}

function fit_part(fit, on) {
    if (!fit)
        return null;
    if (fit.error)
        return el("p", {class: "stop", role: "alert"}, fit.error);
    const list = el("ul", {class: "plain"}, ...fit.nodes.slice(0, NODES_MAX).map((n) =>
        el("li", {}, node_link(n.node, on), ` ${count(n.replicas)}`)));
    return el("section", {},
        el("h3", {}, `${count(fit.fit)} of ${plural(fit.replicas, "replica")} would fit`), list,
        fit.nodes.length > NODES_MAX
            && el("p", {class: "dim"}, `and on ${plural(fit.nodes.length - NODES_MAX, "more node")}`),
        fit.stopped && el("p", {class: "stop"}, `The next one is stopped by: ${fit.stopped.message}`));
}

function refused_node(v, on) {
    const cards = (v.cards ?? []).filter((c) => !c.fits);
    return el("li", {}, node_link(v.node, on), v.kept?.length > 0
        && el("span", {class: "dim"}, ` room is kept for ${v.kept.join(", ")}`),
    cards.length > 0 && el("ul", {}, ...cards.slice(0, 16).map((c) =>
        el("li", {}, `card ${c.card}: ${c.reason}`)),
    cards.length > 16 && el("li", {class: "dim"}, `and ${cards.length - 16} more cards`)));
}

function reason_part(answer, verdict, n, on) {
    const of_it = [];
    for (const v of answer.by_node.values()) {
        if (v.verdict === verdict && of_it.length < NODES_MAX)
            of_it.push(v);
    }
    const share = el("span", {class: "share", "aria-hidden": "true"}, el("i"));
    share.firstChild.style.width = `${Math.max(1, (n / answer.nodes) * 100)}%`;
    const pressed = on.verdict() === verdict;
    const only = el("button", {
        type: "button", class: "small", "aria-pressed": pressed ? "true" : "false",
        onclick: () => on.only(pressed ? "" : verdict),
    }, pressed ? "show all nodes" : "show only these");
    return el("details", {class: "reason", "data-verdict": verdict},
        el("summary", {}, el("span", {class: "n"}, count(n)),
            el("span", {class: "what"}, verdict_text(verdict), share)),
        el("p", {class: "dim quote"}, of_it[0]?.reason ?? ""), only,
        el("ul", {class: "plain nodes"}, ...of_it.map((v) => refused_node(v, on))),
        n > of_it.length && el("p", {class: "dim"}, `and ${plural(n - of_it.length, "more node")}`));
}

/* on.show(node) scrolls to the node, on.only(verdict) filters by the verdict, on.verdict() returns
 * the current filter, on.again() repeats the question. */
export function answer_draw(answer, on) {
    const as_of = el("p", {class: "dim asof"}, `As of ${clock(answer.at)}. `,
        el("button", {type: "button", class: "small", onclick: on.again}, "Ask again"));
    if (answer.place)
        return el("div", {}, place_draw(answer.place, on), as_of);
    const reasons = Object.entries(answer.refused).sort((a, b) => b[1] - a[1]);
    return el("div", {class: "answer"},
        headline(answer),
        !answer.error && best_part(answer, on),
        fit_part(answer.fit, on),
        !answer.error && answer.fits > 0 && el("p", {class: "dim cards-only"}, LIMITS),
        reasons.length > 0 && !answer.error && el("section", {},
            el("h3", {}, answer.fits > 0 ? "Why not elsewhere" : "Why"),
            ...reasons.map(([verdict, n]) => reason_part(answer, verdict, n, on))),
        as_of);
}
