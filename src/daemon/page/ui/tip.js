/* A tooltip for the element under the pointer or with the focus. Escape hides it. */
import {by_id, el, percent} from "./dom.js";
import {STATES, card_title, pod_name, state_of, used_text} from "./draw.js";
import {card_free, card_over} from "./model.js";
import {real_card, real_exceeds, real_node, real_pod} from "./real.js";

function card_lines(entry, card) {
    const lines = [];
    const state = state_of(card);
    const place = `${card_title(card)} of ${entry.name}`;
    lines.push(el("b", {}, place[0].toUpperCase() + place.slice(1)));
    if (card.id < 0)
        lines.push(`${card.used} of memory held by pods whose card does not exist`);
    else
        lines.push(`${card.used} of ${card.total} used, ${card_free(entry, card)} free`);
    if (card.id >= 0)
        lines.push(real_card(card) || el("span", {class: "dim"}, "Really used: unknown"));
    if (card.cores)
        lines.push(`${card.cores}% of compute given out`);
    if (card.numa !== undefined)
        lines.push(`NUMA node ${card.numa}`);
    if (card.uuid)
        lines.push(el("span", {class: "dim"}, card.uuid));
    if (state !== "ok" && card.id >= 0)
        lines.push(el("span", {class: "warn"}, STATES[state]));
    if (real_exceeds(card))
        lines.push(el("span", {class: "warn"}, "A pod uses more than its share."));
    if (card_over(card))
        lines.push(el("span", {class: "warn"}, "It holds more than it has."));
    return lines;
}

function node_lines(entry, verdict) {
    const lines = [el("b", {}, entry.name)];
    lines.push(`${used_text(entry)}, largest free ${entry.free}`);
    lines.push(real_node(entry) || el("span", {class: "dim"}, "Really used: unknown"));
    lines.push(`Fragmentation ${percent(entry.split, entry.sum)}% of ${entry.sum} free`);
    if (verdict && !verdict.fits)
        lines.push(el("hr"), `For the request: ${verdict.reason}`);
    return lines;
}

function pod_lines(entry, card, p) {
    const lines = [el("b", {}, pod_name(p))];
    lines.push(`${p.mem} of memory${p.cores ? `, ${p.cores}% of compute` : ""}`);
    if (card.id >= 0)
        lines.push(el("span", {class: p.exceeds ? "warn" : "dim"}, real_pod(card, p) || "Really used: unknown"));
    if (p.reserved)
        lines.push(el("span", {class: "warn"}, "Reserved: its Binding is under way."));
    lines.push(el("hr"), ...card_lines(entry, card));
    return lines;
}

function same(a, b) {
    return a?.name === b?.name && a?.col === b?.col && a?.pod === b?.pod;
}

export class Tip {
    constructor(rows, keys) {
        this.box = by_id("tip");
        this.rows = rows;
        this.keys = keys;
        this.refused = null; /* the place whose tooltip Escape hid, until the user goes elsewhere */
        this.place = null;   /* the place that the tooltip describes */
        const space = rows.space;
        space.addEventListener("pointerover", (event) => this.show(event.target));
        space.addEventListener("pointerleave", () => this.leave());
        space.addEventListener("focusin", (event) => this.show(event.target));
        /* A row that is drawn again loses the focus to no element and gets it back. */
        space.addEventListener("focusout", (event) => (event.relatedTarget ? this.leave() : this.hide()));
        rows.scroller.addEventListener("scroll", () => this.hide(), {passive: true});
    }

    lines(place) {
        const entry = this.rows.view[this.rows.at.get(place.name)];
        if (entry && place.col < 0)
            return node_lines(entry, this.rows.hooks.verdict_of(entry.name));
        const card = entry?.cards[place.col];
        if (!card)
            return null;
        const pod = place.pod >= 0 ? (card.pods ?? [])[place.pod] : null;
        const why = this.rows.hooks.verdict_of(entry.name)?.cards?.find((c) => c.card === card.id);
        const lines = pod ? pod_lines(entry, card, pod) : card_lines(entry, card);
        if (why)
            lines.push(el("hr"), `For the request: ${why.reason}`);
        return lines;
    }

    show(target) {
        const place = this.keys.place_of(target);
        const lines = place && this.lines(place);
        if (!lines) {
            this.leave();
            return;
        }
        if (same(place, this.refused))
            return;
        this.refused = null;
        this.place = place;
        this.box.replaceChildren(
            ...lines.map((l) => (l instanceof HTMLHRElement ? l : el("p", {}, l))));
        this.box.hidden = false;
        this.beside((target.closest(".pod") ?? target.closest("[data-col]")).getBoundingClientRect());
    }

    beside(at) {
        const {offsetWidth: w, offsetHeight: h} = this.box;
        const x = Math.max(6, Math.min(innerWidth - w - 6, at.left));
        const below = at.bottom + 6;
        const y = below + h < innerHeight ? below : Math.max(6, at.top - h - 6);
        this.box.style.left = `${x}px`;
        this.box.style.top = `${y}px`;
    }

    hide() {
        this.box.hidden = true;
    }

    leave() {
        this.refused = null;
        this.hide();
    }

    escape() {
        const shown = !this.box.hidden;
        if (shown)
            this.refused = this.place;
        this.hide();
        return shown;
    }
}
