/*
 * The page: the model keeps the state from the events, and each frame draws the rows in view. A frame
 * makes at most one view (the filtered and sorted list), and only if a change may affect the filter or
 * the order.
 */
import {EMPTY_REQUEST} from "./ask.js";
import {by_id, clock, count, el, icon, plural} from "./dom.js";
import {Keys} from "./keys.js";
import {Model} from "./model.js";
import {key_draw} from "./namespaces.js";
import {Panel} from "./panel.js";
import {NO_FILTER, is_filtered, place_read, place_write, without_filter} from "./place.js";
import {Rows, stats} from "./rows.js";
import {Spark} from "./spark.js";
import {Stream} from "./stream.js";
import {Tip} from "./tip.js";
import {Totals} from "./totals.js";

const VIEW_MS = 250; /* least time between two views of a changing cluster */

const model = new Model();
const state = {filter: {...NO_FILTER}, answer: null, link: "connecting", why: "", since: 0};
let view_due = false;
let view_at = 0;
let frame = 0;
let totals_due = false;
let keys;
let panel;

const rows = new Rows({
    verdict_of: (name) => state.answer?.by_node.get(name),
    focus: () => ({pod: panel?.subject() ?? "", namespace: state.filter.ns}),
    unit: () => model.unit(),
    pinned: () => keys?.pinned() ?? null,
    drawn: () => keys?.drawn(),
    redraw: (old, row) => keys.redraw(old, row),
});

panel = new Panel(model, {
    answered: (answer) => {
        const had = state.answer !== null;
        state.answer = answer;
        if (!answer)
            state.filter.verdict = "";
        if (had || answer) {
            rows.forget();
            want_view(true);
        }
        save();
    },
    opened: () => {
        rows.forget();
        save();
    },
    show: (name) => show_node(name),
    only: (verdict) => set_filter({verdict}),
    verdict: () => state.filter.verdict,
    filter: () => state.filter,
    namespace: (ns) => set_filter({ns}),
});

keys = new Keys(rows, {open: (name, col, pod) => open_place(name, col, pod)});
const tip = new Tip(rows, keys);
const totals = new Totals(model, (change) => {
    set_filter(change);
    draw_controls();
}, () => clear_filter());

function save() {
    place_write(state.filter, panel.open);
}

/* Once a frame; in the next frame after user input, else at most every VIEW_MS. */
function want_view(now) {
    view_due = true;
    if (now)
        view_at = 0;
    want_frame();
}

function want_frame() {
    frame ||= requestAnimationFrame(draw);
}

function draw(time) {
    frame = 0;
    if (totals_due)
        draw_totals();
    if (!view_due)
        return;
    if (view_at > 0 && time - view_at < VIEW_MS) {
        setTimeout(want_frame, VIEW_MS - (time - view_at));
        return;
    }
    view_due = false;
    view_at = time;
    const view = model.view(state.filter, state.answer);
    rows.set(view, state.filter.view);
    draw_count(view.length);
    draw_empty(view.length);
}

const waiting_spark = new Spark();

function draw_waiting_count() {
    const past = [...model.history.pending, model.waiting];
    waiting_spark.draw(past, Math.max(...past));
    const n = model.waiting_view(state.filter).length;
    by_id("n-waiting").textContent = n === model.pods.length ? count(model.waiting)
        : `${count(n)} of ${count(model.waiting)}`;
}

function draw_totals() {
    totals_due = false;
    draw_shown();
    draw_waiting_count();
    by_id("unit").textContent = model.unit();
    key_draw(by_id("key"), model, state.filter, {
        only: (ns) => set_filter({ns}),
        all: () => panel.set({kind: "namespaces"}),
    });
    const select = by_id("model");
    const models = [...model.models.keys()].sort();
    const shown = [...select.options].slice(1).map((o) => o.value);
    if (state.filter.model && !models.includes(state.filter.model))
        models.push(state.filter.model);
    if (models.length !== shown.length || models.some((m, i) => m !== shown[i])) {
        select.replaceChildren(el("option", {value: ""}, "any model"),
            ...models.map((m) => el("option", {value: m}, m)));
        select.value = state.filter.model;
    }
}

const draw_shown = () =>
    totals.draw(state.filter, is_filtered(state.filter) ? rows.view.length : model.nodes.size);

function draw_count(n) {
    const text = is_filtered(state.filter) ? `${count(n)} of ${plural(model.nodes.size, "node")}` : "";
    if (by_id("count").textContent !== text)
        by_id("count").textContent = text;
    draw_shown();
}

function draw_empty(n) {
    const box = by_id("empty");
    box.hidden = n > 0;
    if (n > 0)
        return;
    if (is_filtered(state.filter) && model.nodes.size > 0) {
        box.replaceChildren(el("h2", {}, "No node matches"),
            el("p", {}, `None of ${plural(model.nodes.size, "node")} passes the filter.`),
            el("button", {type: "button", onclick: () => {
                clear_filter();
                by_id("q").focus();
            }}, "Clear the filter"));
    } else if (model.is_whole) {
        box.replaceChildren(el("h2", {}, "No node shares its cards"),
            el("p", {}, "cardpack has found no node with aliyun.com/gpu-mem in its capacity. Nodes get it "
                + "from the device plugin: see that it runs on them."));
    } else {
        box.replaceChildren(el("h2", {}, state.link === "lost" ? "No connection" : "Reading the cluster"),
            el("p", {}, state.link === "lost" ? lost_text() : "The nodes are on their way."));
    }
}

function lost_text() {
    const why = state.why ? ` (${state.why})` : "";
    return `There is no connection to cardpack${why}. It is tried again by itself.`;
}

const LINK = {connecting: "Connecting", live: "Live", lost: "Connection lost"};

function draw_link() {
    const s = model.status;
    const notice = by_id("notice");
    const is_stale = state.link !== "live" && model.nodes.size > 0;
    by_id("link").dataset.state = state.link === "live" && s && !s.ready ? "unready" : state.link;
    by_id("link-text").textContent =
        state.link === "live" && s && !s.ready ? "Not ready" : LINK[state.link];
    document.body.classList.toggle("stale", is_stale);
    let text = "";
    if (is_stale)
        text = `What is shown is as of ${clock(state.since)}. ${lost_text()}`;
    else if (state.link === "live" && s && !s.ready)
        text = `cardpack is not ready: ${s.why || "it does not say why"}. What is shown may not be whole.`;
    else if (state.link === "live" && model.next !== null)
        text = "Connected again. The nodes are being read again.";
    if (notice.textContent !== text)
        notice.textContent = text;
    notice.hidden = text === "";
    const h = model.hello;
    by_id("version").textContent = h
        ? `${h.version}${h.leader === false ? ", another replica leads" : ""}` : "";
}

function link(to, why) {
    if (to === "lost" && state.link === "live")
        state.since = Date.now();
    state.link = to;
    state.why = why;
    draw_link();
    if (model.nodes.size === 0)
        want_view(true);
}

/* Whether a change of these nodes may affect the filter or the order of the view. */
function view_hangs_on(names) {
    const f = state.filter;
    return f.q !== "" || f.ns !== "" || f.model !== "" || f.free !== "" || f.only !== "" || f.sort !== ""
        || f.view !== ""
        || names.some((name) => rows.at.has(name) !== model.nodes.has(name));
}

/* Replaces the entries in the view in place, without sorting; the layout changes only if a height
 * does. */
function swap_entries(names) {
    let is_taller = false;
    for (const name of names) {
        const at = rows.at.get(name);
        const entry = model.nodes.get(name);
        is_taller ||= rows.view[at].cards.length !== entry.cards.length;
        rows.view[at] = entry;
    }
    if (is_taller)
        rows.layout();
    else if (names.some((name) => rows.live.has(name)))
        rows.schedule();
}

const stream_events = {
    hello: (data) => {
        model.begin(data);
        totals_due = true;
        draw_link();
        want_view(false);
    },
    nodes: (data) => {
        stats.events++;
        const names = model.apply(data);
        if (names.length === 0)
            return;
        totals_due = true;
        if (view_hangs_on(names))
            want_view(false);
        else
            swap_entries(names);
        want_frame();
        panel.refresh({names: new Set(names)});
    },
    ready: () => {
        model.ready();
        totals_due = true;
        draw_link();
        want_view(true);
        panel.refresh({names: new Set(model.nodes.keys())});
    },
    pods: (data) => {
        model.pods = data.pods ?? [];
        model.waiting = data.total ?? model.pods.length;
        totals_due = true;
        want_frame();
        panel.refresh({pods: true});
    },
    history: (data) => {
        model.history = data;
        totals_due = true;
        want_frame();
    },
    quotas: (data) => {
        model.quotas = data;
        panel.refresh({quotas: true});
    },
    status: (data) => {
        model.note_status(data, Date.now());
        totals_due = true;
        want_frame();
        draw_link();
    },
    link,
};

function show_node(name) {
    if (!rows.at.has(name)) {
        state.filter = without_filter(state.filter);
        draw_controls();
        rows.set(model.view(state.filter, state.answer), state.filter.view);
        draw_count(rows.view.length);
        save();
    }
    if (!rows.at.has(name))
        return;
    if (matchMedia("(max-width: 640px)").matches)
        panel.set(null, false);
    keys.go({name, col: -1, pod: -1});
}

/* A click on a node or a card opens the node; on a pod, asks the daemon about the pod. */
function open_place(name, col, pod) {
    const p = pod >= 0 ? model.nodes.get(name)?.cards[col]?.pods?.[pod] : null;
    panel.set(p ? {kind: "pod", namespace: p.namespace, name: p.name} : {kind: "node", name},
              matchMedia("(max-width: 640px)").matches);
}

function set_filter(change) {
    Object.assign(state.filter, change);
    save();
    totals_due = true;
    panel.refresh({filter: true});
    want_view(true);
    if (change.verdict !== undefined)
        panel.draw_answer();
    if (change.ns !== undefined) {
        draw_chip();
        rows.forget();
    }
}

function clear_filter() {
    set_filter(without_filter(state.filter));
    draw_controls();
}

function draw_chip() {
    const {ns} = state.filter;
    const chip = by_id("ns");
    if (ns === "" && chip === document.activeElement)
        by_id("q").focus();
    chip.hidden = ns === "";
    chip.setAttribute("aria-label", `Only namespace ${ns} is shown: show all`);
    by_id("ns-name").textContent = ns;
}

function draw_controls() {
    draw_chip();
    for (const key of ["q", "free", "only", "sort", "view"])
        by_id(key).value = state.filter[key];
    const select = by_id("model");
    const {model: wanted} = state.filter;
    if (wanted && ![...select.options].some((o) => o.value === wanted))
        select.append(el("option", {value: wanted}, wanted));
    select.value = wanted;
}

function follow_place() {
    const {filter, open} = place_read();
    state.filter = filter;
    totals_due = true;
    draw_controls();
    panel.set(open, false);
    state.filter.verdict = filter.verdict;
    want_view(true);
}

function toggle(kind, open) {
    panel.set(panel.open?.kind === kind ? null : open);
}

function press(event) {
    const typing = event.target.closest("input, select, textarea") !== null;
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        by_id("q").focus();
        by_id("q").select();
    } else if (event.key === "Escape") {
        if (tip.escape())
            return;
        if (event.target.id === "q" && state.filter.q !== "") {
            event.preventDefault();
            by_id("q").value = "";
            set_filter({q: ""});
        } else if (panel.open) {
            panel.set(null);
        }
    }
}

function draw_legend() {
    const item = (state, text, inside) => el("span", {class: "item"},
        el("span", {class: `card ${state}`, "aria-hidden": "true"},
            el("span", {class: "bar"}, inside && el("span", {class: inside, "data-hue": "0"}))),
        state !== "ok" && icon(state), text);
    by_id("legend").append(
        el("span", {class: "item keys"}, "pods by namespace", el("span", {id: "key"})),
        el("span", {class: "item in-dense"}, el("span", {class: "card cell ok half", "aria-hidden": "true"}),
            "a card, filled as its memory is used"),
        item("ok", "reserved", "pod reserved"),
        item("ok", "free"), item("ok", "compute", "cores"), item("ok", "really used", "real"),
        item("ok", "more than its share", "pod exceeds"), item("cordoned", "cordoned"),
        item("unhealthy", "unhealthy"), item("exclusive", "another plugin's"),
        item("dra", "given out by DRA"),
        item("nowhere", "no valid card"),
        el("span", {class: "item"}, "memory in", el("span", {id: "unit"}, "GiB")));
}

function listen() {
    for (const key of ["q", "free", "only", "sort", "view", "model"])
        by_id(key).addEventListener("input", (event) => set_filter({[key]: event.target.value.trim()}));
    by_id("tab-waiting").addEventListener("click", () => toggle("waiting", {kind: "waiting"}));
    by_id("tab-namespaces").addEventListener("click", () => toggle("namespaces", {kind: "namespaces"}));
    by_id("ns").addEventListener("click", () => set_filter({ns: ""}));
    by_id("tab-ask").addEventListener("click",
        () => toggle("ask", {kind: "ask", request: {...EMPTY_REQUEST}}));
    by_id("tab-legend").addEventListener("click", (event) => {
        const shown = by_id("legend").classList.toggle("shown");
        event.currentTarget.setAttribute("aria-expanded", String(shown));
    });
    by_id("skip").addEventListener("click", () => keys.element()?.focus());
    addEventListener("keydown", press);
    addEventListener("hashchange", follow_place);
}

by_id("tab-waiting").append(waiting_spark.svg);
draw_legend();
listen();
follow_place();
draw_totals();
new Stream("events", stream_events);
