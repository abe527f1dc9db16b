/*
 * The dense view: a tile for each node, with one cell a card, which fills from the bottom as its memory
 * is used. So hundreds of nodes are in view at once, in groups by model or pool if the user wants that.
 */
import {count, el, percent, plural} from "./dom.js";
import {STATES, card_label, pod_name, state_of} from "./draw.js";
import {card_over} from "./model.js";

export const CELL = {pitch: 14, line: 18, gap: 10, pad: 6, head: 30, columns: 16};

const GROUPS = {
    model: (e) => (e.models.length > 0 ? [...e.models].sort().join(" + ") : "no known model"),
    pool: (e) => (e.pool === "" ? "no pool" : `pool ${e.pool}`),
};

/* [{name, first, n, ...sums}] and the entries in their order. Without groups there is one, of no name. */
export function groups_of(view, by) {
    const group_of = GROUPS[by];
    const groups = new Map();
    for (const e of view) {
        const name = group_of ? group_of(e) : "";
        if (!groups.has(name))
            groups.set(name, []);
        groups.get(name).push(e);
    }
    const names = [...groups.keys()].sort();
    const made = [];
    const entries = [];
    for (const name of names) {
        const of_it = groups.get(name);
        made.push({name, first: entries.length, n: of_it.length, entries: of_it});
        entries.push(...of_it);
    }
    return {groups: made, entries};
}

function group_text(group, unit) {
    const s = {cards: 0, used: 0, total: 0, free: 0};
    for (const e of group.entries) {
        s.cards += e.valid;
        s.used += e.used;
        s.total += e.total;
        s.free = Math.max(s.free, e.free);
    }
    return `${plural(group.n, "node")}, ${plural(s.cards, "card")}, ${count(s.used)} of ${count(s.total)} ${
        unit} used (${percent(s.used, s.total)}%), largest free ${count(s.free)}`;
}

export function draw_head(group, unit) {
    return el("div", {class: "group", role: "row"},
        el("div", {role: "rowheader"}, el("b", {}, group.name), " ",
            el("span", {class: "dim"}, group_text(group, unit))));
}

function cell(entry, card, col, verdict, focus) {
    const goes = (verdict?.placement ?? []).some((g) => g.card === card.id);
    const is_subject = focus.pod !== "" && (card.pods ?? []).some((p) => pod_name(p) === focus.pod);
    const why = verdict?.cards?.find((c) => c.card === card.id);
    const label = [entry.name, card_label(entry, card)];
    if (goes)
        label.push("the request would go here");
    else if (why && !why.fits)
        label.push(`refused: ${why.reason}`);
    const state = state_of(card);
    const c = el("div", {
        class: `card cell ${STATES[state] === undefined ? "ok" : state}${card_over(card) ? " over" : ""}${
            goes ? " goes" : ""}${is_subject ? " subject" : ""}`,
        role: "gridcell", tabindex: "-1", "aria-colindex": col + 1, "data-col": col,
        "aria-label": label.join(", "),
    });
    const part = card.id < 0 ? 100 : Math.min(100, percent(card.used, card.total));
    c.style.setProperty("--fill", `${card.used > 0 ? Math.max(8, part) : 0}%`);
    return c;
}

export function draw_tile(entry, verdict, focus) {
    const tile = el("div", {class: "row tile", role: "row", "data-name": entry.name});
    if (verdict)
        tile.classList.add(verdict.fits ? "fits" : "refused");
    if (verdict?.rank === 0)
        tile.classList.add("best");
    entry.cards.forEach((card, col) => tile.append(cell(entry, card, col, verdict, focus)));
    if (entry.cards.length === 0)
        tile.append(el("div", {class: "card cell none", role: "gridcell", tabindex: "-1", "data-col": 0,
                               "aria-label": `${entry.name}, no usable cards`}));
    return tile;
}

/* The lines of tiles and headings: {first, n, height, tile, group}; a heading has n 0. */
export function lines_of(groups, width) {
    const lines = [];
    for (const group of groups) {
        const most = group.entries.reduce((n, e) => Math.max(n, e.cards.length), 1);
        const columns = Math.min(CELL.columns, most, Math.max(1, Math.floor((width - CELL.gap) / CELL.pitch)));
        const tile = columns * CELL.pitch;
        const fit = Math.max(1, Math.floor((width + CELL.gap) / (tile + CELL.gap)));
        const height = CELL.pad + Math.ceil(most / columns) * CELL.line;
        if (group.name !== "")
            lines.push({first: group.first, n: 0, height: CELL.head, tile: 0, group});
        for (let at = 0; at < group.n; at += fit)
            lines.push({first: group.first + at, n: Math.min(fit, group.n - at), height, tile, group});
    }
    return lines;
}
