"""The facts of NVIDIA's management library, and of the processes and faults that it tells of."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from base import Card, Client, Nvml, Options, Process, about, command, fact, not_here, until

MIB = 1 << 20
NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, NO_DRIVER, TIMEOUT, NO_FUNCTION = 3, 4, 6, 9, 10, 13
XID_EVENT, PAGE_FAULT = 8, 31
CLIENT_MIB = 512
OPEN_S = 60  # after which cardpack-node gives a call up
REOPENED = 200
TEST_LIMIT = 1001 << 20  # no power of two: a driver that rounds a limit up shows it
HOST_PIDS = "pid:[4026531836]"  # the host's PID namespace has this number in each kernel


def describe(n: Nvml) -> dict[str, Any]:
    """Which card it is."""
    d = n.ask("describe")
    good = d["codes"] == [0] * 4 and d["uuid"].startswith("GPU-") and d["name"] and d["pci"]
    fact("nvml-describes", good, f"{d['uuid']}, {d['name']}, {d['pci']}, minor {d['minor']}, codes {d['codes']}",
         "codes 0, and a UUID that begins with GPU-")  # fmt: skip
    about.update(card=d["name"], uuid=d["uuid"], driver=d["driver"], cuda=d["cuda"])
    return d


def memory(n: Nvml, mig: bool) -> int:
    """Both versions of the call; the MiB that pods can use."""
    m = n.ask("memory")
    if mig:
        not_here("nvml-memory-versions", f"the card is in MIG mode: code {m['code']}")
        not_here("nvml-reserved", f"the card is in MIG mode: code {m['code']}")
    elif m["code"] == 0 and m["reserved"] == 0:
        not_here("nvml-memory-versions", "the driver has no version 2 of the call")
        not_here("nvml-reserved", "the driver has no version 2 of the call")
    else:
        apart = abs(m["old_used"] - m["used"] - m["reserved"])
        fact("nvml-memory-versions",
             m["code"] == m["old_code"] == 0 and m["total"] == m["old_total"] and apart <= 64 * MIB,
             f"codes {m['old_code']} and {m['code']}, total {m['old_total'] // MIB} and {m['total'] // MIB} MiB, used "
             f"{m['old_used'] // MIB} MiB, and {m['used'] // MIB} with {m['reserved'] // MIB} reserved",
             "one total, and what is reserved counts as used in version 1 only")  # fmt: skip
        again = n.ask("memory")
        fact("nvml-reserved", again["reserved"] == m["reserved"] < m["total"] // 4,
             f"{m['reserved'] // MIB} MiB of {m['total'] // MIB}, then {again['reserved'] // MIB}",
             "the same twice, and a small part of the card")  # fmt: skip
    return int(m["total"] - m["reserved"]) // MIB


def recovery(n: Nvml) -> None:
    """The health of the card, and field 230."""
    h = n.ask("health")
    fact("nvml-health-calls", set(h.values()) <= {0, NOT_SUPPORTED, NO_FUNCTION} and h["mode"] == 0,
         f"codes: remapped rows {h['rows']}, uncorrected errors {h['errors']}, pages that wait for retirement "
         f"{h['pending']}, retired pages {h['retired']}, compute mode {h['mode']}",
         f"0, or {NOT_SUPPORTED} where the card can't tell")  # fmt: skip
    r = n.ask("recovery")
    if r["code"] in (NOT_SUPPORTED, NO_FUNCTION):
        not_here("nvml-recovery-action", f"the driver can't tell: code {r['code']}")
    else:
        fact("nvml-recovery-action", r["code"] == 0 and r["action"] <= 7, f"code {r['code']}, action {r['action']}",
             "code 0, and an action from 0 (none) to 7")  # fmt: skip


def descriptors(n: Nvml, begin: str) -> int:
    """Of NVML's process, whose target begins so."""
    fds = f"/proc/{n.pid}/fd"
    return sum(os.readlink(f"{fds}/{fd}").startswith(begin) for fd in os.listdir(fds))


def holds(n: Nvml, minor: int) -> None:
    """Whether the process has the card open, which keeps a reset away."""
    node = f"/dev/nvidia{minor}"
    if not os.path.exists(node):
        not_here("nvml-holds-the-card", f"no {node}")
        not_here("nvml-lets-go", f"no {node}")
        return
    held = descriptors(n, node)
    n.ask("close")
    left = descriptors(n, "/dev/nvidia")
    code = n.ask("open")["code"]
    fact("nvml-holds-the-card", held > 0, f"{held} descriptors of {node}", "at least one")
    fact("nvml-lets-go", left == 0 and code == 0, f"{left} descriptors of NVIDIA's, and code {code} again",
         "none, and it opens again")  # fmt: skip


def reopens(n: Nvml) -> None:
    """Again and again, as cardpack-node does while a driver is exchanged."""
    n.ask("close")
    code = n.ask("open")["code"]  # what is kept for good is there then
    first = n.ask("memory")["code"]
    begin, times = time.monotonic(), 0

    def has() -> tuple[int, int]:
        pages = Path(f"/proc/{n.pid}/statm").read_text(encoding="utf-8").split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE") // 1024, descriptors(n, "")

    before = has()
    while times < REOPENED and code == 0 and time.monotonic() < begin + 40:
        n.ask("close")
        code = n.ask("open")["code"]
        times += 1
        if code == 0 and n.ask("memory")["code"] != first:
            code = -1
    took, after = time.monotonic() - begin, has()
    if code == 0 and times < REOPENED:
        not_here("nvml-reopens", f"only {times} times in 40 s")
        return
    kib = after[0] - before[0]
    fact("nvml-reopens", code == 0 and kib < 2048 and after[1] == before[1],
         f"{times} times, {1000 * took / max(times, 1):.0f} ms each, code {code}, {kib} KiB more, "
         f"descriptors {before[1]} and then {after[1]}",
         f"{REOPENED} times, with less than 2 MiB and no descriptor more")  # fmt: skip


def limits(n: Nvml, cgroup: str, name: str, confined: bool) -> dict[str, int]:
    """Of memory, in a cgroup that has no process: nothing is limited by it. The codes."""
    if not cgroup:
        not_here(name, "no cgroup of version 2 can be made here")
        return {}
    got: dict[str, int] = n.ask(f"limit {TEST_LIMIT} {cgroup}")
    codes = f"set: code {got['set']}, get: code {got['get']}, {got['hard'] // MIB} MiB"
    if got["set"] in (NO_FUNCTION, NOT_SUPPORTED):
        not_here(name, f"the driver has no limits of memory: {codes}")
    elif confined:
        fact(name, got["set"] == NO_PERMISSION, codes, f"code {NO_PERMISSION}")
    else:
        fact(name, got["set"] == got["get"] == 0 and got["hard"] == TEST_LIMIT, codes, "it reads back")
    return got


def own_cgroup() -> str:
    """The folder of the one that this program is in; empty: there is none of version 2."""
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
            path = root + line.removeprefix("0::").rstrip("/")
            if line.startswith("0::") and os.path.exists(f"{path}/cgroup.procs"):
                return path
    return ""


def all_limits(n: Nvml, o: Options) -> None:
    """Before one is set, when it is set, and below a cgroup that has processes, as that of cardpack-node has."""
    where = {"its own cgroup": own_cgroup(), "an empty one": o.cgroup}
    unset = {name: n.ask(f"limit-of {path}")["code"] for name, path in where.items() if path}
    seen = ", ".join(f"{name}: code {code}" for name, code in unset.items())
    got = limits(n, o.cgroup, "nvml-limits", confined=False)
    if not unset or NO_FUNCTION in unset.values() or got.get("set", NOT_SUPPORTED) == NOT_SUPPORTED:
        not_here("nvml-limits-*", f"the driver has no limits of memory, or no cgroup can be made here; {seen}")
        return
    fact("nvml-limits-unset", set(unset.values()) <= {0, NOT_FOUND}, seen,
         f"code 0 or {NOT_FOUND}: by that cardpack-node knows that the driver has limits")  # fmt: skip
    leaf = Path(o.cgroup) / "busy/leaf"
    leaf.mkdir(parents=True)
    holder = Process(command(o, "probe", "nvml", o.nvml, str(o.card), with_=(f"cgroup={leaf.parent}",)))
    held = until(5, lambda: str(holder.pid) in (leaf.parent / "cgroup.procs").read_text().split())
    if held:
        limits(n, str(leaf), "nvml-limits-below-processes", confined=False)
    else:
        not_here("nvml-limits-below-processes", f"a process can't be put into a cgroup: {holder.line(1)}")
    holder.kill()


# ---- processes ----


def listed(n: Nvml, pid: int) -> int | None:
    """The bytes of a process; None: it is not listed."""
    found = n.ask("processes")["processes"].get(str(pid))
    return None if found is None else int(found)


def tell_listed(n: Nvml, name: str, c: Client) -> None:
    """Whether NVML lists the client."""
    if not c.ready:
        not_here(name, f"no client: {c.first}")
        return
    all_ = n.ask("processes")["processes"]
    mine = all_.get(str(c.pid))
    large = [pid for pid, size in all_.items() if size >= CLIENT_MIB * MIB]
    if mine is None and large and os.readlink("/proc/self/ns/pid") != HOST_PIDS:
        not_here(name, f"this is not the host's PID namespace: NVML names {', '.join(large)}")
        return
    seen = "it is not listed" if mine is None else "no figure" if mine < 0 else f"{mine // MIB} MiB"
    fact(name, mine is not None and mine >= CLIENT_MIB * MIB, f"a process that has allocated {CLIENT_MIB} MiB: {seen}",
         "it is listed by its PID, with at least as much")  # fmt: skip


def processes(n: Nvml, o: Options, visible: dict[str, str]) -> str:
    """One that comes and is killed. Why there can be none."""
    c = Client(o, CLIENT_MIB, **visible)
    tell_listed(n, "processes", c)
    if not c.ready or listed(n, c.pid) is None:
        c.kill()
        not_here("processes-end", "it was not listed before" if c.ready else f"no client: {c.first}")
        return "" if c.ready else c.first
    begin = time.monotonic()
    c.kill()
    gone = until(10, lambda: listed(n, c.pid) is None)
    fact("processes-end", gone, f"{'not' if gone else 'still'} listed after {time.monotonic() - begin:.2f} s",
         "not listed within 10 s of its SIGKILL")  # fmt: skip
    return ""


def context(n: Nvml, o: Options, visible: dict[str, str], why: str) -> None:
    """What a context takes beside what its program allocates; users see it in their pod's figures."""
    before = n.ask("memory")
    c = Client(o, 0, **visible)
    grown = (n.ask("memory")["used"] - before["used"]) // MIB
    mine = listed(n, c.pid)
    if why or not c.ready or before["code"] != 0:
        not_here("context-memory", f"the memory has code {before['code']}; {why or c.first}")
    else:
        known = None if mine is None or mine < 0 else mine // MIB
        fact("context-memory", 0 < grown < 2048 and (known is None or abs(known - grown) <= 256),
             f"the card's use grows by {grown} MiB, the process has {'no figure' if known is None else f'{known} MiB'}",
             "by less than 2 GiB, of which NVML counts all but 256 MiB for the process")  # fmt: skip
    c.kill()


# ---- events ----


def events(n: Nvml, o: Options, visible: dict[str, str], absent: str) -> None:
    """None without a fault, and the XID of one."""
    new = n.ask("events")
    quiet = n.ask("wait 500") if new["code"] == 0 else {"code": new["code"], "xid": 0}
    fact("events-are-quiet", quiet["code"] == TIMEOUT and new["types"] & XID_EVENT,
         f"types {new['types']:#x}, code {quiet['code']}, XID {quiet['xid']}",
         f"code {TIMEOUT} after 500 ms, and XIDs among the types")  # fmt: skip
    if new["code"] != 0 or absent:
        not_here("xid-*", f"no client: {absent}" if absent else f"no events: code {new['code']}")
        return
    c = Process(command(o, "probe", "fault"), **visible)
    c.line(15)
    end = c.line(15)
    stop, e, came = time.monotonic() + 10, quiet, []
    while time.monotonic() < stop and (e["code"] == TIMEOUT or (e["code"] == 0 and e["xid"] != PAGE_FAULT)):
        e = n.ask("wait 1000")
        came += [e["xid"]] if e["code"] == 0 else []
    c.kill()
    fact("xid-of-a-bad-store", (e["code"], e["xid"], e.get("type")) == (0, PAGE_FAULT, XID_EVENT),
         f"code {e['code']}, XIDs {came}; the client: {end}", f"XID {PAGE_FAULT}")  # fmt: skip
    if e["code"] != 0:
        not_here("xid-names-the-card", "no event came")
    else:
        fact("xid-names-the-card", e["same"] and e["whole"],
             f"{'the same' if e['same'] else 'another'} handle, {'no' if e['whole'] else 'an'} instance",
             "the handle of nvmlDeviceGetHandleByIndex, and no instance")  # fmt: skip


def opens(n: Nvml) -> tuple[dict[str, Any], str]:
    """The answer, and what it says."""
    try:
        opened = n.ask("open", OPEN_S + 5)
    except TimeoutError:
        opened = {"code": -2, "ms": 1000 * (OPEN_S + 5), "why": "it hangs"}
    return opened, f"code {opened['code']} after {opened['ms']} ms {opened['why']}".strip()


def confined(n: Nvml, o: Options, visible: dict[str, str]) -> None:
    """As cardpack-node is. Not by a new process: that one would still have the capabilities while it opens the device
    nodes."""
    n.ask("close")
    missing = n.ask("confine")["missing"]
    if missing != 0:
        not_here("*-without-capabilities", f"steps that failed: {missing:#x}")
        return
    opened, seen = opens(n)
    fact("nvml-opens-without-capabilities", opened["code"] == 0, seen, "code 0: cardpack-node has none")
    if opened["code"] != 0:
        not_here("*-without-capabilities", f"NVML does not open: {seen}")
        return
    c = Client(o, CLIENT_MIB, **visible)
    tell_listed(n, "processes-without-capabilities", c)
    limits(n, o.cgroup, "nvml-limits-without-capabilities", confined=True)
    c.kill()


def facts(o: Options) -> Card | None:
    """All of them; None: there is no card."""
    n = Nvml(o)
    opened, seen = opens(n)
    if opened["code"] in (-1, NO_DRIVER):
        not_here("*", f"no driver: {opened['why']}")
        return None
    fact("nvml-opens", opened["code"] == 0 and opened["ms"] < 1000 * OPEN_S, seen, "code 0 within a minute")
    if opened["code"] != 0:
        not_here("*", f"NVML does not open: {seen}")
        return None
    d = describe(n)
    usable = memory(n, bool(d["mig"]))
    recovery(n)
    holds(n, d["minor"])
    all_limits(n, o)
    visible = {"CUDA_VISIBLE_DEVICES": d["uuid"]}
    absent = processes(n, o, visible)
    context(n, o, visible, absent)
    events(n, o, visible, absent)
    reopens(n)
    confined(n, o, visible)
    n.kill()
    return Card(d["uuid"], d["name"], usable, d["mode"], absent)
