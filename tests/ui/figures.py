"""Screenshots, and the frame rate on this machine: for people, no check needs them."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from urllib.parse import quote

import world
from lab import Lab

SECONDS = 10

FRAMES = """
const how = arguments[0], long = [], frames = [];
const observer = new PerformanceObserver((l) => long.push(...l.getEntries().map((e) => e.duration)));
observer.observe({type: 'longtask'});
const scroller = document.getElementById('scroll');
const words = ['', 'g', 'gpu-0', 'gpu-04', 'job-12', 'team-3/'];
let last = performance.now(), i = 0;
const end = last + arguments[1] * 1000;
requestAnimationFrame(function tick(now) {
    frames.push(now - last);
    last = now;
    i++;
    if (how === 'scroll')
        scroller.scrollTop += 37;
    if (how === 'type' && i % 8 === 0) {
        const q = document.getElementById('q');
        q.value = words[(i / 8) % words.length];
        q.dispatchEvent(new Event('input'));
    }
    if (now < end) {
        requestAnimationFrame(tick);
        return;
    }
    frames.sort((a, b) => a - b);
    const at = (q) => Math.round(10 * frames[Math.floor((frames.length - 1) * q)]) / 10;
    done({frames: frames.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1),
          long_tasks: long.length, longest: Math.round(Math.max(0, ...long))});
});"""

SHOTS = (("dark-5", "small", "", 1400, 560, "dark"), ("light-5", "small", "", 1400, 560, "light"),
         ("dark-5000", "large", "", 1400, 900, "dark"),
         ("light-5000-waiting", "large", "#waiting=", 1400, 900, "light"),
         ("explain", "small", "#pod=research%2Ftrain", 1400, 700, "dark"),
         ("explain-5000", "large", "#pod=team-1%2Fwait-1", 1400, 900, "dark"),
         ("ask", "small", f"#ask={quote('memory=20&replicas=30')}", 1400, 800, "light"),
         ("node", "small", "#node=mixed-0", 1400, 700, "light"),
         ("measured", "measured", "#node=train-0", 1400, 700, "dark"),
         ("measured-light", "measured", "#node=train-0", 1400, 700, "light"),
         ("namespaces", "small", "#namespaces=", 1400, 700, "light"),
         ("namespaces-5000", "large", "#ns=team-5&namespaces=", 1400, 900, "dark"),
         ("cells", "small", "#view=pool", 1400, 560, "dark"),
         ("cells-500", "medium", "#view=model", 1400, 900, "light"),
         ("cells-5000", "large", "#view=model", 1400, 900, "dark"),
         ("cells-answer-500", "medium", "#view=cards&pod=team-2%2Fwait-2", 1400, 900, "dark"),
         ("phone-cells", "medium", "#view=model", 360, 740, "light"),
         ("dark-500", "medium", "", 1400, 900, "dark"), ("light-20", "twenty", "", 1400, 900, "light"),
         ("where", "small", "#pod=speech%2Fwhisper", 1400, 560, "dark"),
         ("phone", "small", "", 360, 740, "dark"), ("phone-5000", "large", "", 360, 740, "light"),
         ("phone-ask", "small", f"#ask={quote('memory=20')}", 360, 740, "dark"),
         ("hostile", "hostile", "#waiting=", 1000, 500, "dark"))


def shots(lab: Lab, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, cluster, place, width, height, scheme in SHOTS:
        lab.browser.scheme(scheme)
        b = lab.open(lab.daemon(cluster), place, width, height)
        if "ask" in place or "pod" in place:
            b.until("return document.querySelector('.answer, .result .bad') !== null")
        lab.settle()
        b.screenshot(folder / f"{name}.png")


def churn(lab: Lab, stop: threading.Event, made: list[int]) -> None:
    """Changes 200 nodes a second, or as many as possible: a pod is created, bound and deleted."""
    daemon = lab.daemon("large")
    i = 0
    while not stop.is_set():
        for _ in range(100):
            pod = world.pod(f"churn-{i}", 5)
            daemon.make_pod(pod)
            daemon.bind(pod, f"gpu-{i * 7 % 5000:04}")
            if i >= 1000:
                daemon.ask("DELETE", f"/api/v1/namespaces/default/pods/churn-{i - 1000}")
            i += 1
        made[0] = i
        stop.wait(0.4)


def metrics(lab: Lab) -> dict[str, float]:
    return {m["name"]: m["value"] for m in lab.browser.cdp("Performance.getMetrics")["metrics"]}


def smoothness(lab: Lab) -> None:
    b = lab.browser
    b.cdp("Performance.enable", timeDomain="threadTicks")
    lab.open(lab.daemon("large"))
    stop = threading.Event()
    made = [0]
    worker = threading.Thread(target=churn, args=(lab, stop, made))
    worker.start()
    try:
        for how in ("still", "scroll", "type"):
            b.js("document.getElementById('scroll').scrollTop = 0")
            before, stats, changed = metrics(lab), lab.stats(), made[0]
            got = b.wait_js(FRAMES, how, SECONDS)
            after, drawn = metrics(lab), lab.stats()
            cpu = 1000 * (after["TaskDuration"] - before["TaskDuration"]) / got["frames"]
            print(how, json.dumps(got | {
                "main_thread_ms_a_frame": round(cpu, 1),
                "nodes_changed_a_second": (made[0] - changed) // SECONDS,
                "events": drawn["events"] - stats["events"],
                "rows_drawn": drawn["drawn"] - stats["drawn"],
                "elements": b.js("return document.querySelectorAll('*').length")}), flush=True)
    finally:
        stop.set()
        worker.join()


def main(lab: Lab, folder: Path | None, measure: bool) -> None:
    if folder:
        shots(lab, folder)
    if measure:
        smoothness(lab)
