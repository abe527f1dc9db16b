/*
 * Questions to the daemon: where a pod would go, and why other nodes are not feasible. An answer is
 * valid for one moment: it shows its time, and the page does not refresh it by itself, because the
 * answer of a large cluster has some megabytes.
 */
const BASE = "../gpushare-scheduler";
const ANSWER_MS = 20000;

export const EMPTY_REQUEST = {memory: "", cards: "", compute: "", percent: "", whole: "",
                              model: "", policy: "", namespace: "", replicas: ""};

/* Makes a Pod from the form. The daemon validates it. */
export function pod_of(r) {
    const limits = {};
    const labels = {};
    const annotations = {};
    if (r.memory !== "" || r.whole || r.percent !== "")
        limits["aliyun.com/gpu-mem"] = r.memory || r.cards || "1"; // at least one unit of each card
    if (r.compute !== "")
        limits["aliyun.com/gpu-core.percentage"] = r.compute;
    if (r.cards !== "")
        labels["aliyun.com/gpu-count"] = r.cards;
    if (r.whole)
        labels["ack.gpushare.placement"] = "require-whole-device";
    if (r.percent !== "")
        annotations["cardpack.io/gpu-mem-percent"] = r.percent;
    if (r.model !== "")
        annotations["cardpack.io/card-model"] = r.model;
    if (r.policy !== "")
        annotations["cardpack.io/policy"] = r.policy;
    return {
        apiVersion: "v1",
        kind: "Pod",
        metadata: {name: "what-if", namespace: r.namespace || "default", labels, annotations},
        spec: {containers: [{name: "c", image: "none", resources: {limits}}]},
    };
}

/* "no_card_free" reads as "no card free". */
export const verdict_text = (verdict) => verdict.replaceAll("_", " ");

/* Returns status and text; `signal` or a timeout aborts the request. AbortSignal.any is too new
 * (2023). */
async function fetch_text(path, options, signal) {
    const own = new AbortController();
    const give_up = () => own.abort();
    const timer = setTimeout(give_up, ANSWER_MS);
    signal.addEventListener("abort", give_up);
    if (signal.aborted)
        give_up();
    try {
        const answer = await fetch(BASE + path, {...options, signal: own.signal, cache: "no-store"});
        return {ok: answer.ok, status: answer.status, text: await answer.text()};
    } catch {
        throw new Error("cardpack does not answer.");
    } finally {
        clearTimeout(timer);
        signal.removeEventListener("abort", give_up);
    }
}

async function ask(path, body, signal) {
    const {ok, status, text} = await fetch_text(path, body === null ? {} : {
        method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body),
    }, signal);
    if (!ok)
        throw new Error(`${status}: ${error_of(text)}`);
    return JSON.parse(text);
}

function error_of(text) {
    try {
        return String(JSON.parse(text).error ?? text).slice(0, 400);
    } catch {
        return text.trim().slice(0, 400);
    }
}

/* Where the pod is, or null: a pod without a node. */
function place_in(told) {
    const {pod} = told;
    if (!pod?.node || pod.state === "pending")
        return null;
    const there = told.verdicts.find((v) => v.node === pod.node && v.fits);
    return {node: pod.node, state: pod.state, placement: there?.placement ?? []};
}

/* A pod that has a node has no verdicts: the other nodes are no answer. */
function digest(told, fit) {
    const by_node = new Map();
    const place = place_in(told);
    if (place)
        told.verdicts = [];
    const last = told.verdicts.length + 1;
    told.verdicts.forEach((v, i) => {
        v.rank = v.fits ? i : last;
        by_node.set(v.node, v);
    });
    return {
        by_node, fit, place, pod: told.pod, text: told.request?.text ?? "", error: told.error ?? "",
        nodes: told.nodes, fits: told.fit, refused: told.refused ?? {},
        best: told.verdicts[0]?.fits ? told.verdicts[0] : null, at: Date.now(),
    };
}

export async function explain_pod(namespace, name, signal) {
    const path = `/explain/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
    return digest(await ask(path, null, signal), null);
}

/* The answer for the first pod stays valid if the number of replicas that fit is unknown. */
async function fit_or_why(replicas, pod, signal) {
    try {
        return await ask("/fit", {replicas, pod}, signal);
    } catch (error) {
        return {error: `How many would fit is not answered: ${error.message}`};
    }
}

export async function explain_request(request, signal) {
    const pod = pod_of(request);
    const replicas = Number(request.replicas);
    const told = await ask("/explain", pod, signal);
    const is_one = request.replicas === "" || replicas === 1;
    return digest(told, is_one || told.error ? null : await fit_or_why(replicas, pod, signal));
}
