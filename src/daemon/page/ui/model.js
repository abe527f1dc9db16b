/*
 * The state that the daemon sent, and the filtered and sorted list of nodes. A changed node gets a new
 * entry, and entries are never modified: identity shows whether an entry is the latest one. Each
 * change updates the sums, so its cost depends only on the changed nodes.
 */
import {Past} from "./spark.js";

const NO_SUMS = {nodes: 0, cards: 0, total: 0, used: 0, free: 0, split: 0, pods: 0, trouble: 0,
                 reserved: 0};
const GIB_MAX = 1024; /* no card has more GiB: kubectl cardpack guesses the unit by it, too */

/* A sort key that puts "n2" before "n10": it pads numbers, so that strings compare right. */
const order_key = (name) => name.replace(/\d+/g, (d) => d.padStart(12, "0"));

const is_usable = (c) => c.id >= 0 && (c.state ?? "ok") === "ok";

/* The free memory of a card, at most what the node's sums leave. */
export function card_free(entry, card) {
    if (!is_usable(card))
        return 0;
    return Math.max(0, Math.min(card.total - card.used, entry.left));
}

export const card_over = (card) => card.id >= 0 && card.used > card.total;

export function entry_make(node) {
    const cards = node.cards ?? [];
    const e = {
        name: node.name, key: order_key(node.name), cards, policy: node.policy ?? "", pool: node.pool ?? "",
        isolation: node.isolation ?? "",
        total: node.total ?? 0, used: node.used ?? 0, room: 0, left: 0,
        valid: 0, usable: 0, pods: 0, reserved: 0, trouble: 0, models: [], text: null,
        free: 0, /* the most that a card has free */
        sum: 0, /* what all cards have free */
        split: 0, /* of that, on cards that hold pods already */
        largest: 0,
    };
    e.room = Math.min(e.total, node.limit ?? e.total);
    e.left = node.left ?? e.total - e.used;
    const names = new Set(); /* a pod on several cards counts once */
    for (const c of cards) {
        const free = card_free(e, c);
        e.valid += c.id >= 0 ? 1 : 0;
        e.usable += is_usable(c) ? 1 : 0;
        e.largest = Math.max(e.largest, c.total);
        e.sum += free;
        e.split += c.used > 0 ? free : 0;
        for (const p of c.pods ?? []) {
            const name = `${p.namespace}/${p.name}`;
            p.again = names.has(name);
            e.reserved += p.reserved && !p.again ? 1 : 0;
            names.add(name);
        }
        if (c.id < 0 || card_over(c) || c.state === "cordoned" || c.state === "unhealthy")
            e.trouble++;
        if (c.model && !e.models.includes(c.model))
            e.models.push(c.model);
        e.free = Math.max(e.free, free);
    }
    e.pods = names.size;
    return e;
}

/* The text that filters search; made at the first search. */
function text_of(e) {
    if (e.text === null) {
        const parts = [e.name, ...e.models];
        for (const c of e.cards) {
            for (const p of c.pods ?? [])
                parts.push(`${p.namespace}/${p.name}`);
        }
        e.text = parts.join("\n").toLowerCase();
    }
    return e.text;
}

/* What a pod holds on this node, as Model.place_of; or null. */
export function entry_place(e, namespace, name) {
    const placement = [];
    let is_reserved = false;
    for (const c of e.cards) {
        for (const p of c.pods ?? []) {
            if (p.name !== name || p.namespace !== namespace)
                continue;
            placement.push({card: c.id, memory: p.mem, compute: p.cores ?? 0});
            is_reserved ||= p.reserved === true;
        }
    }
    return placement.length === 0 ? null
        : {node: e.name, state: is_reserved ? "reserved" : "bound", placement};
}

/* Fragmentation: the part of the free memory that is on cards which hold pods, 0 to 1. */
export const entry_split = (e) => (e.sum > 0 ? e.split / e.sum : 0);

const ORDERS = {
    free: (a, b) => b.free - a.free,
    full: (a, b) => b.used / (b.total || 1) - a.used / (a.total || 1),
    room: (a, b) => Math.min(b.sum, b.left) - Math.min(a.sum, a.left),
    split: (a, b) => entry_split(b) - entry_split(a) || b.split - a.split,
    pods: (a, b) => b.pods - a.pods,
    trouble: (a, b) => b.trouble - a.trouble,
};

const ONLY = {
    trouble: (e) => e.trouble > 0,
    reserved: (e) => e.reserved > 0,
    empty: (e) => e.used === 0,
    busy: (e) => e.used > 0,
    usable: (e) => e.usable > 0,
    split: (e) => e.split > 0,
};

const by_key = (a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);

function has_card(e, model, free) {
    for (const c of e.cards) {
        if ((model === "" || c.model === model) && (free <= 0 || card_free(e, c) >= free))
            return true;
    }
    return false;
}

const words_of = (filter) => filter.q.toLowerCase().split(/\s+/).filter((w) => w !== "");

const has_words = (text, words) => words.every((w) => text.includes(w));

const has_space = (e, name) =>
    e.cards.some((c) => (c.pods ?? []).some((p) => p.namespace === name));

export class Model {
    constructor() {
        this.most_rev = -1;
        this.nodes = new Map();
        this.next = null; /* the new state after a reconnection, until it has all nodes */
        this.sums = {...NO_SUMS};
        this.models = new Map();
        this.spaces = new Map(); /* name of a namespace -> what its pods hold */
        this.quotas = {namespaces: [], total: 0};
        this.history = {total: [], used: [], free: [], pending: []}; /* of each minute */
        this.waste = null; /* idle cards that no expected pod can use; null: not known */
        this.wasted = new Past();
        this.pods = [];
        this.waiting = 0;
        this.status = null;
        this.hello = null;
        this.is_whole = false;
        this.rev = 0;
    }

    /* The daemon's state, and the figure in it of which the page keeps the last hour. */
    note_status(status, now) {
        this.status = status;
        this.waste = status.waste ?? null;
        if (this.waste !== null)
            this.wasted.add(this.waste, now);
    }

    /* A new stream begins. The page shows the old state until the new one is complete. */
    begin(hello) {
        this.hello = hello;
        this.next = this.is_whole ? new Map() : null;
        if (!this.is_whole)
            this.replace(new Map());
    }

    /* All nodes have arrived; returns whether the shown state was replaced. */
    ready() {
        const swapped = this.next !== null;
        if (swapped)
            this.replace(this.next);
        this.next = null;
        this.is_whole = true;
        return swapped;
    }

    replace(nodes) {
        this.nodes = nodes;
        this.sums = {...NO_SUMS};
        this.models = new Map();
        this.spaces = new Map();
        for (const e of nodes.values())
            this.add(e, 1);
        this.rev++;
    }

    add(e, sign) {
        const s = this.sums;
        s.nodes += sign;
        s.cards += sign * e.valid;
        s.total += sign * e.total;
        s.used += sign * e.used;
        s.free += sign * e.sum;
        s.split += sign * e.split;
        s.pods += sign * e.pods;
        s.trouble += sign * (e.trouble > 0 ? 1 : 0);
        s.reserved += sign * e.reserved;
        for (const c of e.cards) {
            for (const p of c.pods ?? [])
                this.add_pod(c, p, sign);
        }
        for (const m of e.models) {
            const n = (this.models.get(m) ?? 0) + sign;
            if (n > 0)
                this.models.set(m, n);
            else
                this.models.delete(m);
        }
    }

    /* `cards` counts shares, as quotas do. */
    add_pod(card, p, sign) {
        const {namespace: name} = p;
        const s = this.spaces.get(name) ?? {name, mem: 0, pods: 0, cards: 0, cores: 0};
        s.mem += sign * p.mem;
        s.pods += p.again ? 0 : sign;
        s.cards += card.id >= 0 ? sign : 0;
        s.cores += sign * (p.cores ?? 0);
        if (s.pods > 0)
            this.spaces.set(name, s);
        else
            this.spaces.delete(name);
    }

    /* Returns the names of the changed nodes, which may need drawing. */
    apply({nodes = [], gone = []}) {
        const into = this.next ?? this.nodes;
        const changed = [];
        for (const node of nodes) {
            const e = entry_make(node);
            if (into === this.nodes) {
                const old = into.get(e.name);
                if (old)
                    this.add(old, -1);
                this.add(e, 1);
                changed.push(e.name);
            }
            into.set(e.name, e);
        }
        for (const name of gone) {
            const old = into.get(name);
            if (!old)
                continue;
            into.delete(name);
            if (into === this.nodes) {
                this.add(old, -1);
                changed.push(name);
            }
        }
        this.rev++;
        return changed;
    }

    /* The most that a card has free, and the size of the largest card. */
    most() {
        if (this.most_rev !== this.rev) {
            this.most_rev = this.rev;
            this.found = {free: 0, largest: 0};
            for (const e of this.nodes.values()) {
                this.found.free = Math.max(this.found.free, e.free);
                this.found.largest = Math.max(this.found.largest, e.largest);
            }
        }
        return this.found;
    }

    /* No object says what the device plugin counts in: as kubectl cardpack guesses it. */
    unit() {
        return this.most().largest > GIB_MAX ? "MiB" : "GiB";
    }

    /* The waiting pods that pass the filter's words and namespace. */
    waiting_view(filter) {
        const words = words_of(filter);
        return this.pods.filter((p) => (filter.ns === "" || p.namespace === filter.ns)
            && has_words(`${p.namespace}/${p.name}`.toLowerCase(), words));
    }

    /* Where the pod is: {node, state, placement: [{card, memory, compute}]}; or null. */
    place_of(namespace, name) {
        for (const e of this.nodes.values()) {
            const place = entry_place(e, namespace, name);
            if (place)
                return place;
        }
        return null;
    }

    /* The entries that pass the filter, in order. `answer` puts feasible nodes first. */
    view(filter, answer) {
        const words = words_of(filter);
        const free = Number(filter.free) || 0;
        const only = ONLY[filter.only];
        const verdict = answer ? filter.verdict : "";
        const shown = [];
        for (const e of this.nodes.values()) {
            if (only && !only(e))
                continue;
            if (filter.ns !== "" && !has_space(e, filter.ns))
                continue;
            if ((filter.model !== "" || free > 0) && !has_card(e, filter.model, free))
                continue;
            if (words.length > 0 && !has_words(text_of(e), words))
                continue;
            if (verdict && answer.by_node.get(e.name)?.verdict !== verdict)
                continue;
            shown.push(e);
        }
        const order = ORDERS[filter.sort];
        shown.sort(order ? (a, b) => order(a, b) || by_key(a, b) : by_key);
        if (answer) {
            const last = answer.by_node.size + 1;
            const rank = (e) => answer.by_node.get(e.name)?.rank ?? last;
            shown.sort((a, b) => rank(a) - rank(b));
        }
        return shown;
    }
}
