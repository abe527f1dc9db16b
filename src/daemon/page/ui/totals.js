/*
 * The totals of the whole cluster. Each is a button that filters and sorts the nodes by what it counts;
 * a second press takes that back. The buttons are made once: new figures must not take their focus.
 */
import {by_id, count, el, percent} from "./dom.js";
import {Spark} from "./spark.js";

/* The part of the filter that totals set. */
const NEUTRAL = {only: "", free: "", sort: ""};

const TOTALS = [
    {id: "nodes", name: "Nodes", hint: "show all nodes",
     text: (m, shown) => `${shown < m.sums.nodes ? `${count(shown)} of ` : ""}${count(m.sums.nodes)}`},
    {id: "cards", name: "Cards", hint: "show nodes with a usable card", filter: {only: "usable"},
     text: (m) => count(m.sums.cards)},
    {id: "memory", name: "Memory used", hint: "show nodes in use, the fullest first",
     filter: {only: "busy", sort: "full"},
     text: (m) => `${count(m.sums.used)} of ${count(m.sums.total)} ${m.unit()}`,
     more: (m) => percent(m.sums.used, m.sums.total),
     past: (m) => [[...m.history.used, m.sums.used], Math.max(...m.history.total, m.sums.total)]},
    {id: "waste", name: "Of no use", hint: "idle cards that no expected pod can use; show nodes with usable cards, the most free first",
     filter: {only: "usable", sort: "room"}, known: (m) => m.waste !== null,
     text: (m) => `${count(Math.round(10 * (m.waste ?? 0)) / 10)} cards`,
     past: (m) => {
         const values = m.wasted.values(Date.now());
         return [values, Math.max(...values)];
     }},
    {id: "free", name: "Largest free", hint: "show nodes with a card that has as much free",
     filter: {sort: "free"}, text: (m) => `${count(m.most().free)} ${m.unit()}`,
     past: (m) => [[...m.history.free, m.most().free], Math.max(...m.history.free, m.most().largest)]},
    {id: "split", name: "Fragmentation", hint: "show nodes with free memory on cards that hold pods",
     filter: {only: "split", sort: "split"}, text: (m) => `${percent(m.sums.split, m.sums.free)}%`},
    {id: "pods", name: "Pods", hint: "show nodes with pods, most pods first",
     filter: {only: "busy", sort: "pods"}, text: (m) => count(m.sums.pods)},
    {id: "trouble", name: "Trouble", hint: "show nodes in trouble", filter: {only: "trouble"},
     text: (m) => count(m.sums.trouble)},
];

function put(e, text) {
    if (e.textContent !== text)
        e.textContent = text;
}

export class Totals {
    /* set(change) changes the filter; clear() removes it. */
    constructor(model, set, clear) {
        this.model = model;
        this.set = set;
        this.clear = clear;
        this.filter = null;
        this.buttons = TOTALS.map((t) => this.make(t));
        for (const b of this.buttons)
            b.item = el("li", {class: `t-${b.t.id}`}, b.button);
        this.list();
    }

    make(t) {
        const value = el("span", {class: "v"});
        const rate = t.more && el("span", {class: "rate"});
        const meter = t.more && el("span", {class: "meter", "aria-hidden": "true"}, el("i"));
        const spark = t.past && new Spark();
        const button = el("button", {
            type: "button", class: "total", "data-total": t.id, title: t.hint, "aria-pressed": t.filter ? "false" : null,
            onclick: () => this.press(t),
        }, el("span", {class: "k"}, t.name), " ", value, rate && " ", rate, spark && spark.svg, meter);
        return {t, button, value, rate, meter, spark};
    }

    /* Lists the totals that are known. */
    list() {
        const items = this.buttons.filter((b) => b.t.known?.(this.model) ?? true).map((b) => b.item);
        const list = by_id("totals");
        if (items.length === list.children.length)
            return;
        const focus = document.activeElement;
        list.replaceChildren(...items);
        if (list.contains(focus))
            focus.focus();
    }

    /* What the total sets in the filter; null: it removes the filter. */
    change(t) {
        if (!t.filter)
            return null;
        return t.id === "free" ? {...t.filter, free: String(this.model.most().free)} : t.filter;
    }

    is_pressed(t) {
        return Object.entries({...NEUTRAL, ...this.change(t)}).every(([k, v]) => this.filter[k] === v);
    }

    press(t) {
        const change = this.change(t);
        if (!change)
            this.clear();
        else
            this.set(this.is_pressed(t) ? NEUTRAL : {...NEUTRAL, ...change});
    }

    /* `shown` is the number of nodes that pass the filter. */
    draw(filter, shown) {
        this.filter = filter;
        this.list();
        for (const {t, button, value, rate, meter, spark} of this.buttons) {
            put(value, t.text(this.model, shown));
            if (t.filter)
                button.setAttribute("aria-pressed", String(this.is_pressed(t)));
            spark?.draw(...t.past(this.model));
            if (!rate)
                continue;
            put(rate, `${t.more(this.model)}%`);
            meter.firstChild.style.width = `${Math.min(100, t.more(this.model))}%`;
        }
    }
}
