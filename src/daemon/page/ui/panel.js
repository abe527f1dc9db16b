/*
 * The side panel: the waiting pods, a question with its answer, or one node. On a phone it covers the
 * picture.
 */
import {answer_draw, place_draw} from "./answer.js";
import {EMPTY_REQUEST, explain_pod, explain_request} from "./ask.js";
import {ago, by_id, el, icon, percent, plural} from "./dom.js";
import {STATES, pod_name, state_of, used_text} from "./draw.js";
import {card_free, entry_place} from "./model.js";
import {namespaces_draw} from "./namespaces.js";
import {real_card, real_node, real_pod} from "./real.js";
import {waiting_draw} from "./waiting.js";

const FIELDS = [
    ["memory", "Memory", "8"],
    ["cards", "Cards", "1"],
    ["compute", "Compute %", "none"],
    ["percent", "Memory %", "none"],
    ["model", "Model", "any"],
    ["namespace", "Namespace", "default"],
    ["replicas", "Replicas", "1"],
];

const PHONE = matchMedia("(max-width: 640px)"); /* as the style sheet asks */

export class Panel {
    constructor(model, hooks) {
        this.box = by_id("panel");
        this.model = model;
        this.hooks = hooks; /* answered(answer), opened(open), show(name), only(verdict), verdict(), filter(),
         * namespace(name) */
        this.open = null;
        this.answer = null;
        this.place = null; /* where the pod in question is; null: on no card, or not known yet */
        this.waits = false; /* whether it is among the waiting pods */
        this.body = null;
        this.asking = null;
        this.opener = null;
        PHONE.addEventListener("change", () => this.cover());
    }

    /* On a phone, the covered elements can not get the focus. */
    cover() {
        for (const e of document.querySelectorAll(".skip, .top, .tools, .picture"))
            e.inert = this.open !== null && PHONE.matches;
    }

    /* Shows other content; null closes the panel. Takes the focus if `take` is set. */
    set(open, take = true) {
        this.asking?.abort();
        if (this.open === null && open !== null)
            this.opener = document.activeElement;
        this.open = open;
        this.place = null;
        this.told(null);
        this.box.hidden = open === null;
        this.cover();
        document.body.classList.toggle("with-panel", open !== null);
        for (const kind of ["waiting", "ask", "namespaces"])
            by_id(`tab-${kind}`).setAttribute("aria-expanded", String(open?.kind === kind));
        this.hooks.opened(open);
        if (open === null) {
            this.box.replaceChildren();
            if (take && this.opener?.isConnected)
                this.opener.focus();
            return;
        }
        this.draw();
        if (take)
            (this.box.querySelector("[data-first]") ?? this.box.querySelector("h2")).focus();
        if (open.kind === "ask" && Object.values(open.request).some(Boolean))
            this.question();
    }

    /*
     * Shows where the pod is. The events say it, if the pod holds memory on a card; otherwise the
     * daemon is asked. A waiting pod comes first: it is newer than a pod of the same name on a card.
     */
    locate() {
        const {namespace, name} = this.open;
        this.waits = this.waiting_pod() !== undefined;
        this.place = this.waits ? null : this.model.place_of(namespace, name);
        this.draw_pod();
    }

    /* Follows the pod after a change of these nodes. */
    follow(names) {
        const place = this.waits ? this.place : this.moved(names);
        if (place === this.place)
            return;
        this.place = place;
        this.keep_focus(() => this.draw_pod());
    }

    /* The place after a change of these nodes. */
    moved(names) {
        const {namespace, name} = this.open;
        let place = names.has(this.place?.node) ? null : this.place;
        for (const n of names) {
            const entry = this.model.nodes.get(n);
            place = (entry && entry_place(entry, namespace, name)) ?? place;
        }
        return place;
    }

    /* The name of the pod in question, or "". */
    subject() {
        return this.open?.kind === "pod" ? pod_name(this.open) : "";
    }

    told(answer) {
        this.answer = answer;
        this.hooks.answered(answer);
    }

    frame(title, ...parts) {
        this.body = el("div", {class: "panel-body"}, ...parts);
        this.box.replaceChildren(
            el("header", {class: "panel-head"}, el("h2", {tabindex: "-1"}, title),
                el("button", {type: "button", class: "close", "aria-label": "Close (Escape)",
                              onclick: () => this.set(null)}, "Close")),
            this.body);
    }

    draw() {
        const kinds = {
            waiting: () => this.draw_waiting(),
            namespaces: () => this.draw_namespaces(),
            ask: () => this.draw_ask(),
            node: () => this.draw_node(),
            pod: () => this.locate(),
        };
        kinds[this.open.kind]();
    }

    /* Updates the shown content after a change; text that the user is editing stays. */
    refresh(changed) {
        if (this.open?.kind === "waiting" && (changed.pods || changed.filter))
            this.keep_focus(() => this.draw_waiting());
        else if (this.open?.kind === "namespaces")
            this.keep_focus(() => this.draw_namespaces());
        else if (this.open?.kind === "node" && changed.names?.has(this.open.name))
            this.keep_focus(() => this.draw_node());
        else if (this.open?.kind === "pod" && changed.names)
            this.follow(changed.names);
        else if (this.open?.kind === "pod" && changed.pods)
            this.follow_waiting();
    }

    follow_waiting() {
        if (this.waits === (this.waiting_pod() !== undefined))
            this.draw_facts();
        else
            this.keep_focus(() => this.locate());
    }

    keep_focus(draw) {
        const key = this.box.contains(document.activeElement)
            ? document.activeElement.dataset.key ?? "" : null;
        const top = this.body?.scrollTop ?? 0;
        draw();
        this.body.scrollTop = top;
        if (key !== null)
            ([...this.box.querySelectorAll("[data-key]")].find((e) => e.dataset.key === key)
                ?? this.box.querySelector("h2")).focus({preventScroll: true});
    }

    draw_waiting() {
        this.frame("Waiting pods", ...waiting_draw(this.model, this.hooks.filter(), {
            pod: (p) => this.set({kind: "pod", namespace: p.namespace, name: p.name}),
        }));
    }

    draw_namespaces() {
        this.frame("Namespaces", ...namespaces_draw(this.model, this.hooks.filter(), {
            only: (name) => this.hooks.namespace(name),
        }));
    }

    draw_ask() {
        const {request} = this.open;
        const field = ([key, label, hint], i) => el("label", {class: "ask-field"},
            el("span", {}, label),
            el("input", {name: key, value: request[key], placeholder: hint, autocomplete: "off",
                         spellcheck: "false", "data-first": i === 0,
                         inputmode: ["model", "namespace"].includes(key) ? null : "numeric"}));
        const policy = el("select", {name: "policy"},
            el("option", {value: ""}, "as configured"), el("option", {value: "binpack"}, "binpack"),
            el("option", {value: "spread"}, "spread"), el("option", {value: "fgd"}, "fgd"),
            el("option", {value: "bid-price"}, "bid-price"));
        policy.value = request.policy;
        const whole = el("input", {type: "checkbox", name: "whole"});
        whole.checked = request.whole !== "";
        const form = el("form", {class: "ask", onsubmit: (event) => this.submit(event)},
            ...FIELDS.map(field),
            el("label", {class: "ask-field"}, el("span", {}, "Policy"), policy),
            el("label", {class: "ask-check"}, whole, "Whole cards"),
            el("p", {class: "dim small-text ask-help"}, `Memory is that of each pod, in ${
                this.model.unit()}. Memory % is of a card, instead of an amount. A model may be a `
                + "pattern: *A100*, !*40GB."),
            el("button", {type: "submit", class: "go"}, "Where would it go?"));
        this.frame("What if", form, el("div", {class: "result", "aria-live": "polite"}));
    }

    submit(event) {
        event.preventDefault();
        const data = new FormData(event.target);
        const request = {...EMPTY_REQUEST};
        for (const key of Object.keys(request))
            request[key] = String(data.get(key) ?? "").trim();
        request.whole = data.has("whole") ? "1" : "";
        this.open = {kind: "ask", request};
        this.hooks.opened(this.open);
        this.question();
    }

    waiting_pod() {
        return this.model.pods.find(
            (p) => p.namespace === this.open.namespace && p.name === this.open.name);
    }

    draw_pod() {
        if (this.place) {
            this.draw_place();
            return;
        }
        this.frame(pod_name(this.open), el("div", {class: "facts"}),
            el("div", {class: "result", "aria-live": "polite"}));
        this.draw_facts();
        this.question();
    }

    draw_place() {
        const {place} = this;
        const entry = this.model.nodes.get(place.node);
        const cards = new Set(place.placement.map((g) => g.card));
        this.asking?.abort();
        if (this.answer)
            this.told(null);
        this.frame(pod_name(this.open), place_draw(place, {show: (name) => this.hooks.show(name)}),
            ...(entry?.cards ?? []).filter((c) => cards.has(c.id)).map((c) => this.card_part(entry, c)));
    }

    draw_facts() {
        const p = this.waiting_pod();
        const facts = this.body.querySelector(".facts");
        if (!facts)
            return;
        const text = p
            ? `Waits${p.since ? ` for ${ago(p.since, Date.now())}` : ""}; asks for ${p.wants ?? "?"}.`
            : this.answer?.place ? "" : "Not among the waiting pods.";
        facts.replaceChildren(el("p", {class: "dim"}, text));
    }

    async question() {
        const {open} = this;
        const result = this.body.querySelector(".result");
        this.asking?.abort();
        const asking = new AbortController();
        this.asking = asking;
        result.replaceChildren(el("p", {class: "dim"}, "Asking ..."));
        let answer = null;
        try {
            answer = open.kind === "pod"
                ? await explain_pod(open.namespace, open.name, asking.signal)
                : await explain_request(open.request, asking.signal);
        } catch (error) {
            if (asking.signal.aborted)
                return;
            result.replaceChildren(el("p", {class: "head-line bad", role: "alert"},
                error.message),
            el("button", {type: "button", class: "small", onclick: () => this.question()}, "Ask again"));
            this.told(null);
            return;
        }
        if (asking.signal.aborted)
            return;
        this.told(answer);
        this.draw_answer();
        if (open.kind === "pod")
            this.draw_facts();
    }

    draw_answer() {
        const result = this.body?.querySelector(".result");
        if (!this.answer || !result)
            return;
        const opened = [...result.querySelectorAll("details[open]")].map((d) => d.dataset.verdict);
        result.replaceChildren(answer_draw(this.answer, {
            show: (name) => this.hooks.show(name),
            only: (verdict) => this.hooks.only(verdict),
            verdict: () => this.hooks.verdict(),
            again: () => this.question(),
        }));
        for (const d of result.querySelectorAll("details"))
            d.open = opened.includes(d.dataset.verdict);
    }

    draw_node() {
        const entry = this.model.nodes.get(this.open.name);
        if (!entry) {
            this.frame(this.open.name, el("p", {class: "dim"}, this.model.is_whole
                ? "There is no such node, or it shares no cards." : "Not told yet."));
            return;
        }
        this.frame(entry.name,
            el("p", {class: "dim"}, `${used_text(entry)}; ${
                plural(entry.valid, "card")}, ${plural(entry.pods, "pod")}.${
                entry.policy ? ` Its cards: ${entry.policy}.` : ""}${
                entry.isolation ? ` Isolation: ${entry.isolation}.` : ""}`),
            el("p", {class: "dim"}, `Largest free ${entry.free} ${this.model.unit()}, fragmentation ${
                percent(entry.split, entry.sum)}%.`),
            el("p", {class: "dim"}, `${real_node(entry) || "Really used: unknown"}.`),
            ...entry.cards.map((c) => this.card_part(entry, c)));
    }

    card_part(entry, card) {
        const state = state_of(card);
        const head = card.id < 0 ? "No valid card" : `Card ${card.id}`;
        const figures = card.id < 0 ? `${card.used} held`
            : `${card.used} of ${card.total}, ${card_free(entry, card)} free`;
        return el("section", {class: "card-part"},
            el("h3", {}, head, el("span", {class: "dim"}, ` ${figures}${
                card.cores ? `, ${card.cores}% of compute` : ""}`)),
            (card.model || card.uuid || card.numa !== undefined) && el("p", {class: "dim small-text"},
                [card.model, card.numa !== undefined && `NUMA ${card.numa}`, card.uuid]
                    .filter(Boolean).join(" · ")),
            card.id >= 0 && el("p", {class: "dim small-text"}, real_card(card) || "Really used: unknown"),
            STATES[state] && el("p", {class: "warn"}, icon(state), ` ${STATES[state]}`),
            el("ul", {class: "pods"}, ...(card.pods ?? []).map((p) => el("li",
                {class: pod_name(p) === this.subject() && "subject"},
                el("button", {type: "button", class: "link-button", "data-key": pod_name(p),
                              onclick: () => this.set({kind: "pod", namespace: p.namespace, name: p.name})},
                pod_name(p)),
                el("span", {class: "fig"}, `${p.mem}${p.cores ? `, ${p.cores}%` : ""}${
                    p.reserved ? " reserved" : ""}`),
                real_pod(card, p) && el("span", {class: `real-fig${p.exceeds ? " warn" : " dim"}`},
                    p.exceeds && icon("exceeds"), real_pod(card, p))))));
    }
}
