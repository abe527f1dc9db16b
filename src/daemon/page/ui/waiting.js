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

/* on.pod(p) opens the pod. */
export function waiting_draw(model, on) {
    const {pods, waiting} = model;
    const now = Date.now();
    const told = waiting === 0 ? "No pod waits for a card."
        : `${plural(waiting, "pod")} without a node, oldest first.${
            waiting > pods.length ? ` The first ${count(pods.length)} are listed.` : ""}`;
    return [el("p", {class: "dim"}, told),
            el("ul", {class: "waiting"}, ...pods.map((p) => waiting_row(p, now, on)))];
}
