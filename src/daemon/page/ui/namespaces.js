/* The namespaces: what their pods hold, their quotas, and the key to the colours. */
import {count, el, percent, plural} from "./dom.js";
import {hue_of} from "./draw.js";

const LISTED = 300;
const KEYS = 6; /* namespaces in the legend */

const by_memory = (a, b) => b.mem - a.mem || (a.name < b.name ? -1 : 1);

/* Those with pods on cards, waiting pods or quotas; the largest first. */
function all_of(model) {
    const all = new Map();
    const get = (name) => {
        if (!all.has(name))
            all.set(name, {name, mem: 0, pods: 0, cards: 0, cores: 0, waiting: 0, limits: []});
        return all.get(name);
    };
    for (const s of model.spaces.values())
        Object.assign(get(s.name), s);
    for (const p of model.pods)
        get(p.namespace).waiting++;
    for (const q of model.quotas.namespaces)
        get(q.name).limits = q.limits;
    return [...all.values()].sort(by_memory);
}

const swatch = (name) => el("span", {class: "pod swatch", "data-hue": hue_of(name), "aria-hidden": "true"});

function limit_name({kind, pool, model}) {
    if (pool !== undefined)
        return pool === "" ? `${kind} on nodes without a pool` : `${kind} in pool ${pool}`;
    return model === undefined ? kind : `${kind} of model ${model}`;
}

function limit_row(limit) {
    const part = limit.limit > 0 ? percent(limit.used, limit.limit) : 100;
    const meter = el("span", {class: "meter", "aria-hidden": "true"}, el("i"));
    meter.firstChild.style.width = `${Math.min(100, part)}%`;
    const unit = limit.kind === "compute" ? "%" : "";
    return el("li", {class: part >= 100 && "full"},
        el("span", {}, `quota of ${limit_name(limit)}`),
        el("span", {class: "fig"}, `${count(limit.used)} of ${count(limit.limit)}${unit}`), meter);
}

function namespace_row(s, model, filter, on) {
    const figures = [plural(s.pods, "pod"), plural(s.cards, "share")];
    if (s.cores > 0)
        figures.push(`compute ${count(s.cores)}%`);
    if (s.waiting > 0)
        figures.push(`${count(s.waiting)} waiting`);
    const pressed = filter.ns === s.name;
    return el("li", {},
        el("button", {type: "button", "data-key": s.name, "aria-pressed": String(pressed),
                      onclick: () => on.only(pressed ? "" : s.name)},
        swatch(s.name), el("span", {class: "who"}, s.name),
        el("span", {class: "fig"}, `${count(s.mem)} ${model.unit()}`),
        el("span", {class: "figures"}, figures.join(", ")),
        el("span", {class: "rate"}, `${percent(s.mem, model.sums.used)}%`)),
        s.limits.length > 0 && el("ul", {class: "limits"}, ...s.limits.map(limit_row)));
}

/* on.only(name) filters by the namespace, "" by none. */
export function namespaces_draw(model, filter, on) {
    const all = all_of(model);
    const hidden = model.quotas.total - model.quotas.namespaces.length;
    return [
        el("p", {class: "dim"}, all.length === 0 ? "No namespace has pods on cards."
            : `${plural(all.length, "namespace")}, the largest first, with their part of the used memory. There `
                + "are six colours, so some share one. Select one to see only its nodes and pods."),
        el("ul", {class: "spaces"}, ...all.slice(0, LISTED).map((s) => namespace_row(s, model, filter, on))),
        all.length > LISTED && el("p", {class: "dim"}, `and ${count(all.length - LISTED)} more`),
        hidden > 0 && el("p", {class: "dim"}, `The quotas of ${count(hidden)} more are not listed.`)];
}

/* The largest namespaces with their colours, for the legend; it is made anew only if it differs. */
export function key_draw(box, model, filter, on) {
    const names = [...model.spaces.values()].sort(by_memory).slice(0, KEYS).map((s) => s.name);
    const more = model.spaces.size - names.length;
    const state = JSON.stringify([names, more, filter.ns]);
    if (box.dataset.state === state)
        return;
    box.dataset.state = state;
    const had = box.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    box.replaceChildren(...names.map((name) => el("button", {
        type: "button", class: "key", "data-key": name, title: `show only namespace ${name}`,
        "aria-pressed": String(filter.ns === name),
        onclick: () => on.only(filter.ns === name ? "" : name),
    }, swatch(name), el("span", {class: "name"}, name))),
    more > 0 ? el("button", {type: "button", class: "key", "data-key": "", onclick: on.all},
        `and ${plural(more, "more namespace")}`) : "");
    if (had !== null)
        [...box.children].find((e) => e.dataset.key === had)?.focus();
}
