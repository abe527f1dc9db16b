/* Keeps the user's choices in the URL after the #, for bookmarks and links. */
const FILTER = ["q", "ns", "model", "free", "only", "sort", "view", "verdict"];

export const REQUEST = ["memory", "cards", "compute", "percent", "whole", "model", "policy",
                        "namespace", "replicas"];

export const NO_FILTER = Object.fromEntries(FILTER.map((k) => [k, ""]));

/* The order and the view stay when a filter is removed. */
export const without_filter = ({sort, view}) => ({...NO_FILTER, sort, view});

export const is_filtered = (filter) =>
    FILTER.some((k) => k !== "sort" && k !== "view" && filter[k] !== "");

/* {filter, open}: open is {kind: "node", name}, {kind: "pod", namespace, name}, {kind: "ask", request},
 * {kind: "waiting"}, {kind: "namespaces"} or null. */
export function place_read() {
    const p = new URLSearchParams(location.hash.slice(1));
    const filter = Object.fromEntries(FILTER.map((k) => [k, p.get(k) ?? ""]));
    let open = null;
    if (p.has("node")) {
        open = {kind: "node", name: p.get("node")};
    } else if (p.has("pod")) {
        const [namespace, ...rest] = p.get("pod").split("/");
        open = {kind: "pod", namespace, name: rest.join("/")};
    } else if (p.has("ask")) {
        const asked = new URLSearchParams(p.get("ask"));
        open = {kind: "ask", request: Object.fromEntries(REQUEST.map((k) => [k, asked.get(k) ?? ""]))};
    } else if (p.has("waiting")) {
        open = {kind: "waiting"};
    } else if (p.has("namespaces")) {
        open = {kind: "namespaces"};
    }
    return {filter, open};
}

export function place_write(filter, open) {
    const p = new URLSearchParams();
    for (const k of FILTER) {
        if (filter[k] !== "")
            p.set(k, filter[k]);
    }
    if (open?.kind === "node")
        p.set("node", open.name);
    else if (open?.kind === "pod")
        p.set("pod", `${open.namespace}/${open.name}`);
    else if (open?.kind === "waiting" || open?.kind === "namespaces")
        p.set(open.kind, "");
    else if (open?.kind === "ask") {
        const asked = new URLSearchParams();
        for (const k of REQUEST) {
            if (open.request[k])
                asked.set(k, open.request[k]);
        }
        p.set("ask", String(asked));
    }
    const text = String(p);
    if (text !== location.hash.slice(1))
        history.replaceState(null, "", text === "" ? location.pathname + location.search : `#${text}`);
}
