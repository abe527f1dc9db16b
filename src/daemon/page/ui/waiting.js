/* The list of waiting pods: what each asks for, and why the last filter refused it. */
import {verdict_text} from "./ask.js";
import {ago, count, el, plural} from "./dom.js";
import {pod_name} from "./draw.js";

/* "no card free on 3 nodes: 60 asked, the most that is free on a card: 28" */
function reason_text([verdict, {nodes, text}]) {
    return `${verdict_text(verdict)} on ${plural(nodes, "node")}${text ? `: ${text}` : ""}`;
}

function waiting_row(p, now, on) {
    const reasons = Object.entries(p.because ?? {}).sort((a, b) => b[1].nodes - a[1].nodes);
    return el("li", {},
        el("button", {type: "button", "data-key": pod_name(p), onclick: () => on.pod(p)},
            el("span", {class: "who"}, pod_name(p)),
            el("span", {class: "since"}, p.since ? ago(p.since, now) : ""),
            el("span", {class: "wants"}, `asks for ${p.wants ?? "?"}`),
            ...reasons.map((r) => el("span", {class: "because"}, reason_text(r)))));
}

function told_of(model, n) {
    const {pods, waiting} = model;
    if (waiting === 0)
        return "No pod waits for a card.";
    const parts = [`${plural(waiting, "pod")} without a node, oldest first.`];
    if (waiting > pods.length)
        parts.push(`The first ${count(pods.length)} are listed.`);
    if (n < pods.length)
        parts.push(n === 0 ? "None passes the filter." : `${count(n)} ${n === 1 ? "passes" : "pass"} the filter.`);
    return parts.join(" ");
}

/* on.pod(p) opens the pod. */
export function waiting_draw(model, filter, on) {
    const now = Date.now();
    const shown = model.waiting_view(filter);
    return [el("p", {class: "dim"}, told_of(model, shown.length)),
            el("ul", {class: "waiting"}, ...shown.map((p) => waiting_row(p, now, on)))];
}
