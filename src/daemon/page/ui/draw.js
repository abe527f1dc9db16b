/*
 * Draws one row: a node, a bar for each of its cards, and a block for each pod, as wide as its memory.
 * Every kind of block and bar differs in a pattern, an outline or a sign, not only in colour, and has
 * an accessible name for a screen reader.
 */
import {verdict_text} from "./ask.js";
import {el, icon, percent, plural} from "./dom.js";
import {card_free, card_over} from "./model.js";
import {real_amount, real_card, real_exceeds, real_node, real_pod} from "./real.js";

const BLOCKS_MAX = 48; /* in one bar; the remaining pods are one block */
const NAME_PX = 46;    /* a narrower block shows no name */
const HUES = 6;

export const STATES = {
    ok: "",
    cordoned: "cordoned: nothing new is placed on it",
    unhealthy: "unhealthy: nothing is placed on it",
    exclusive: "set aside for another device plugin",
    dra: "given out by Dynamic Resource Allocation",
    nowhere: "pods that are bound to no valid card",
};

export const state_of = (card) => (card.id < 0 ? "nowhere" : STATES[card.state] ? card.state : "ok");

/* The colour of a namespace does not depend on the other namespaces. */
export function hue_of(namespace) {
    let h = 2166136261;
    for (let i = 0; i < namespace.length; i++)
        h = Math.imul(h ^ namespace.charCodeAt(i), 16777619) >>> 0;
    return h % HUES;
}

export const pod_name = (p) => `${p.namespace}/${p.name}`;

export function pod_label(p, card) {
    const parts = [pod_name(p), `${p.mem} of memory`];
    if (p.cores)
        parts.push(`${p.cores}% of compute`);
    if (p.reserved)
        parts.push("reserved, its Binding is under way");
    if (real_pod(card, p))
        parts.push(real_pod(card, p));
    return parts.join(", ");
}

export function card_title(card) {
    return card.id < 0 ? "no valid card" : `card ${card.id}${card.model ? `, ${card.model}` : ""}`;
}

export function card_label(entry, card) {
    const n = (card.pods ?? []).length;
    const parts = [card_title(card)];
    if (card.id < 0)
        parts.push(`${card.used} held`);
    else
        parts.push(`${card.used} of ${card.total} used`, `${card_free(entry, card)} free`);
    if (card.cores)
        parts.push(`${card.cores}% of compute`);
    if (real_card(card))
        parts.push(real_card(card));
    parts.push(plural(n, "pod"));
    if (real_exceeds(card))
        parts.push("a pod uses more than its share");
    const state = state_of(card);
    if (STATES[state] && card.id >= 0)
        parts.push(STATES[state]);
    if (card_over(card))
        parts.push("holds more than it has");
    return parts.join(", ");
}

/* The sums of kubectl cardpack and inspect, and what is allocatable if that is less. */
export const used_text = (entry) => `${entry.used} of ${entry.total} used${
    entry.room < entry.total ? `, ${entry.room} allocatable` : ""}`;

export function node_label(entry, verdict) {
    const parts = [`node ${entry.name}`, used_text(entry), `largest free ${entry.free}`, plural(entry.valid, "card"), plural(entry.pods, "pod")];
    if (real_node(entry))
        parts.push(real_node(entry));
    if (entry.trouble > 0)
        parts.push(`${plural(entry.trouble, "card")} in trouble`);
    if (verdict)
        parts.push(verdict.fits ? "the request fits here" : verdict.reason);
    return parts.join(", ");
}

/* The pod in question gets an outline; pods of other namespaces than the chosen one lose their colour. */
function block(card, p, share, px, focus) {
    const is_subject = pod_name(p) === focus.pod;
    const is_other = focus.namespace !== "" && p.namespace !== focus.namespace;
    const b = el("span", {
        class: `pod${p.reserved ? " reserved" : ""}${p.exceeds ? " exceeds" : ""}${is_subject ? " subject" : ""}${
            is_other ? " other" : ""}`, role: "button",
        tabindex: "-1", "data-hue": hue_of(p.namespace),
        "aria-label": is_subject ? `${pod_label(p, card)}, the pod in the panel` : pod_label(p, card),
    });
    b.style.width = `${share}%`;
    if (!p.reserved && (px * share) / 100 >= NAME_PX) {
        b.classList.add("named");
        b.append(p.name);
    }
    return b;
}

/* Marks the place of the pod in question, in the free room after the blocks. */
function ghost(grants, scale, used) {
    const mem = grants.reduce((sum, g) => sum + g.memory, 0);
    const g = el("span", {class: "ghost", "aria-hidden": "true"}, `+${mem}`);
    g.style.left = `${Math.min(100, (used / scale) * 100)}%`;
    g.style.width = `${Math.min(100 - Math.min(100, (used / scale) * 100), (mem / scale) * 100)}%`;
    return g;
}

function bar(card, px, grants, focus) {
    const pods = card.pods ?? [];
    const held = pods.reduce((sum, p) => sum + p.mem, 0);
    const scale = Math.max(card.total, held, card.used, 1);
    const b = el("div", {class: "bar"});
    const shown = pods.length > BLOCKS_MAX ? pods.slice(0, BLOCKS_MAX - 1) : pods;
    let rest = held;
    for (const p of shown) {
        b.append(block(card, p, (p.mem / scale) * 100, px, focus));
        rest -= p.mem;
    }
    if (shown.length < pods.length) {
        const more = el("span", {class: "pod more named", "aria-hidden": "true"},
                        `${pods.length - shown.length} more`);
        more.style.width = `${(rest / scale) * 100}%`;
        b.append(more);
    }
    if (card.cores) {
        const strip = el("span", {class: "cores", "aria-hidden": "true"});
        strip.style.width = `${Math.min(100, card.cores)}%`;
        b.append(strip);
    }
    const real = real_amount(card, card.usedMiB);
    if (real !== null) {
        const line = el("span", {class: "real", "aria-hidden": "true"});
        line.style.width = `${Math.min(100, (real / scale) * 100)}%`;
        b.append(line);
    }
    if (grants.length > 0)
        b.append(ghost(grants, scale, Math.max(held, card.used)));
    return b;
}

function caption(card) {
    const state = state_of(card);
    return el("div", {class: "cap", "aria-hidden": "true"},
        state !== "ok" && icon(state),
        real_exceeds(card) && icon("exceeds"),
        card.id >= 0 && el("b", {}, String(card.id)),
        el("span", {}, card.id < 0 ? `no card: ${card.used}` : `${card.used}/${card.total}`));
}

function draw_card(entry, card, col, px, verdict, focus) {
    const grants = (verdict?.placement ?? []).filter((g) => g.card === card.id);
    const why = verdict?.cards?.find((c) => c.card === card.id);
    const label = [card_label(entry, card)];
    if (grants.length > 0)
        label.push("the request would go here");
    else if (why && !why.fits)
        label.push(`refused: ${why.reason}`);
    return el("div", {
        class: `card ${state_of(card)}${card_over(card) ? " over" : ""}`, role: "gridcell",
        tabindex: "-1", "aria-colindex": col + 2, "data-col": col, "aria-label": label.join(", "),
    }, bar(card, px, grants, focus), caption(card));
}

function draw_head(entry, verdict) {
    const meter = el("span", {class: "meter", "aria-hidden": "true"}, el("i"));
    meter.firstChild.style.width = `${Math.min(100, percent(entry.used, entry.total))}%`;
    return el("div", {
        class: "node", role: "rowheader", tabindex: "-1", "aria-colindex": 1, "data-col": -1,
        "aria-label": node_label(entry, verdict),
    },
    el("span", {class: "name"}, entry.name),
    el("span", {class: "fig"}, `${entry.used}/${entry.total}`),
    verdict
        ? el("span", {class: verdict.fits ? "why fits" : "why"},
             verdict.fits ? (verdict.rank === 0 ? "best" : "fits") : verdict_text(verdict.verdict))
        : meter);
}

/* `geometry` has the place and the widths; `verdict` is this node's verdict in the current answer;
 * `focus` has the name of the pod in question and of the chosen namespace, or "". */
export function draw_row(entry, geometry, verdict, focus) {
    const row = el("div", {class: "row", role: "row", "data-name": entry.name});
    if (verdict)
        row.classList.add(verdict.fits ? "fits" : "refused");
    if (verdict?.rank === 0)
        row.classList.add("best");
    row.append(draw_head(entry, verdict));
    const cards = el("div", {class: "cards", role: "presentation"});
    cards.style.gridTemplateColumns = `repeat(${geometry.columns}, ${geometry.bar}px)`;
    entry.cards.forEach((card, col) =>
        cards.append(draw_card(entry, card, col, geometry.bar, verdict, focus)));
    if (entry.cards.length === 0)
        cards.append(el("span", {class: "dim none"}, "no usable cards"));
    row.append(cards);
    return row;
}
