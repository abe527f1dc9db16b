"""NVIDIA's MPS as manifests/node-mps.yaml starts it, but for the card's compute mode, which stays as it is."""

from __future__ import annotations

import os
import shutil
import socket
import time
from pathlib import Path

from base import Card, Client, Nvml, Options, Process, command, fact, folder, not_here, unseen, until

MIB = 1 << 20
MODE_PROHIBITED = 2
CLIENT_MIB = 256
UID = 1000
CONTROL = "nvidia-cuda-mps-control"


class Mps:
    """A control daemon of the card."""

    def __init__(self, o: Options, card: Card, program: str, place: Path, *flags: str, with_: tuple[str, ...] = ()):
        self.o, self.program, self.pipe = o, program, place / "pipe"
        for folder_ in (self.pipe, place / "log"):
            folder_.mkdir(exist_ok=True)
            folder_.chmod(0o1777 if flags else 0o755)
        self.env = {"CUDA_MPS_PIPE_DIRECTORY": str(self.pipe), "CUDA_MPS_LOG_DIRECTORY": str(place / "log")}
        self.quits = ("-q",) if "-p" in flags else ()
        self.daemon = Process(command(o, program, "-f", *flags, with_=with_), **self.env,
                              CUDA_VISIBLE_DEVICES=card.uuid)  # fmt: skip
        until(10, lambda: self.connects() or not self.daemon.runs)

    def connects(self) -> bool:
        """As cardpack-node looks whether a daemon is there."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(1)
            try:
                s.connect(str(self.pipe / "control"))
            except OSError:
                return False
            return True

    def client(self, mib: int, *with_: str, seconds: int = 20, **env: str) -> Client:
        """One of MPS."""
        return Client(self.o, mib, *with_, seconds=seconds, **self.env | env)

    def quit(self, *with_: str) -> bool:
        """Says so to the daemon; whether it has ended."""
        if self.daemon.runs:
            c = Process(command(self.o, self.program, *self.quits, with_=with_), **self.env)
            if not self.quits:
                c.say("quit")
            c.finish()
            until(10, lambda: not self.daemon.runs)
            c.kill()
        return not self.daemon.runs

    def end(self) -> None:
        """Of the daemon, whether it listens or not."""
        self.quit()
        self.daemon.kill()


def told_by(name: str, c: Client, so: bool, expected: str) -> None:
    """What a client has said; one that this machine can't start shows nothing."""
    if c.first.startswith("absent "):
        not_here(name, c.first)
    else:
        fact(name, so, c.first, expected)


def check_processes(m: Mps, o: Options, a: Client) -> None:
    """In which of NVML's lists the client is."""
    n = Nvml(o)
    n.ask("open")
    clients, all_ = n.ask("processes mps")["processes"], n.ask("processes")["processes"]
    mib = clients.get(str(a.pid), -1) // MIB
    if str(a.pid) not in clients and unseen():
        not_here("mps-processes", "this is not the host's PID namespace")
    else:
        fact("mps-processes", mib >= CLIENT_MIB,
             f"{mib} MiB in the list of MPS, {all_.get(str(a.pid), -1) // MIB} in the other one (-1: not in it)",
             f"at least {CLIENT_MIB} MiB in the list of MPS")  # fmt: skip
    n.kill()


def check_clients(m: Mps, o: Options) -> bool:
    """Beside the first client, which computes all the time, and at the end is as well as at the begin."""
    a = m.client(CLIENT_MIB)
    told_by("mps-client", a, a.ready, "a process computes through MPS")
    if not a.ready:
        not_here("mps-*", f"no client of MPS: {a.first}")
        return False
    check_processes(m, o, a)
    if int(a.first.rpartition("free ")[2].split()[0]) < 3072:
        not_here("mps-memory-limit", f"too little memory is free: {a.first}")
    limit = {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=1024M"}
    below, above = m.client(CLIENT_MIB, **limit), m.client(2048, **limit)
    told_by("mps-memory-limit", above, below.ready and above.first.startswith("refused "),
            f"0=1024M refuses 2048 MiB and lets {CLIENT_MIB} be: {below.first}")  # fmt: skip
    below.kill()
    above.kill()
    reader = m.client(CLIENT_MIB, f"read-only={m.pipe}")
    told_by("mps-read-only-pipe", reader, reader.ready, "a client through a read-only pipe directory computes")
    reader.kill()
    b = m.client(CLIENT_MIB)
    b.kill()
    time.sleep(3)
    end = a.finish()
    if b.ready:
        fact("mps-kill", end.startswith("end code 0 "), end or "no end",
             "a client goes on when another one is killed while its kernel runs")  # fmt: skip
    else:
        not_here("mps-kill", f"no second client: {b.first}")
    a.kill()
    return True


def check_other(m: Mps) -> None:
    """A client of another user, and one of root's."""
    a, b = m.client(CLIENT_MIB), m.client(CLIENT_MIB, f"uid={UID}", seconds=10)
    told_by("mps-other-user", b, a.ready and not b.ready, f"UID {UID} is not served while a client of root's runs")
    b.kill()
    a.kill()


def check_users(o: Options, card: Card, program: str) -> None:
    """A daemon for several of them."""
    place = folder(o, "mps-users")
    m = Mps(o, card, program, place, "-M")
    if not m.daemon.runs:  # MPS v3 has the same under another name
        m = Mps(o, card, program, place, "-p", "3", "-m")
    if not m.daemon.runs:
        not_here("mps-several-users", f"{CONTROL} has neither -M nor -p 3 -m: {m.daemon.line(1)}")
        return
    a, b = m.client(CLIENT_MIB), m.client(CLIENT_MIB, f"uid={UID}")
    told_by("mps-several-users", b, a.ready and b.ready, f"with modes 1777 root and UID {UID} compute: {a.first}")
    a.kill()
    b.kill()
    m.end()


def check_shm(o: Options, card: Card, program: str) -> None:
    """A daemon with a /dev/shm of its own, as each card has one; a client with it, and one with another."""
    m = Mps(o, card, program, folder(o, "mps-shm"), with_=("own-shm",))
    if not m.daemon.runs:
        not_here("mps-*shm*", f"no daemon with a /dev/shm of its own: {m.daemon.line(1)}")
        return
    its, other = m.client(CLIENT_MIB, f"mounts-of={m.daemon.pid}"), m.client(CLIENT_MIB, "own-shm", seconds=10)
    told_by("mps-shm-of-a-card", its, its.ready, "a client computes that has the daemon's /dev/shm")
    told_by("mps-own-shm", other, not other.ready, "a client that has another /dev/shm than the daemon is not served")
    its.kill()
    other.kill()
    m.end()


def processors(c: Client) -> int:
    """How many of them a client sees."""
    return int(c.first.rpartition(" ")[2]) if c.ready else 0


def check_namespaces(o: Options, card: Card, program: str, several: bool) -> None:
    """MPS v3, as docs/node.md designs it: a server, and a namespace for each pod."""
    place = folder(o, "mps3")
    file = place / "card.toml"
    names = "".join(f'[servers.card.namespaces.p{i}]\nactive_thread_percentage = "{25 * i}"\n' for i in (1, 2))
    file.write_text(f'schema_version = "1.0"\n[servers.card]\nallowed_devices = "{card.uuid}"\n{names}')
    m = Mps(o, card, program, place, "-p", "3", "-m", "-a", str(file))
    leaf = m.pipe / "card/p1"
    if not m.daemon.runs:
        not_here("mps3-*", f"{CONTROL} has no protocol 3: {m.daemon.line(1)}")
        return
    if not until(10, lambda: (leaf / "control").exists()):
        for name in ("mps3-namespace-caps", "mps3-leaf-only"):
            fact(name, False, f"the daemon runs, and there is no {leaf}/control", "a socket for the file's namespace")
        m.end()
        return
    env = {"CUDA_MPS_PIPE_DIRECTORY": str(leaf)}
    whole, part = Client(o, 0, CUDA_VISIBLE_DEVICES=card.uuid), m.client(CLIENT_MIB, **env)
    most = processors(whole) // 4
    told_by("mps3-namespace-caps", part, part.ready and most // 2 < processors(part) <= most,
            f"at most {most} multiprocessors of {processors(whole)}, and more than half of that")  # fmt: skip
    other = (f"uid={UID}",) if several else ()
    alone = m.client(CLIENT_MIB, f"only={leaf}", *other, **env)
    told_by("mps3-leaf-only", alone, alone.ready, f"a client computes that sees {leaf} alone of the pipe directory")
    for c in (whole, part, alone):
        c.kill()
    m.end()


def facts(o: Options, card: Card) -> None:
    """All of them."""
    program = shutil.which(CONTROL)
    why = (
        f"no {CONTROL}" if program is None
        else "the compute mode is PROHIBITED" if card.compute_mode == MODE_PROHIBITED
        else f"no client: {card.absent}" if card.absent else ""
    )  # fmt: skip
    if program is None or why:
        not_here("mps*", why)
        return
    m = Mps(o, card, program, folder(o, "mps"))
    connected = 0
    for _ in range(100):
        connected += m.connects()
        time.sleep(0.02)  # a full backlog would be no dead daemon
    fact("mps-socket", connected == 100 and m.daemon.runs and m.connects(),
         f"{connected} of 100, the daemon {'runs' if m.daemon.runs else 'has ended: ' + m.daemon.line(1)}",
         "its control socket is SOCK_SEQPACKET, and connections that say nothing do no harm")  # fmt: skip
    # What that user can do without MPS.
    plain = Client(o, 0, f"uid={UID}", CUDA_VISIBLE_DEVICES=card.uuid)
    plain.kill()
    if not plain.ready:
        not_here("mps-*user*", f"UID {UID} can't use the card here: {plain.first}")
    if m.daemon.runs and check_clients(m, o):
        if plain.ready:
            check_other(m)
        if os.geteuid() != 0:
            not_here("mps-quit", "not root")
        ended = m.quit("bare")
        fact("mps-quit", ended, f"the daemon {'has ended' if ended else 'runs'}",
             "root without capabilities can end the daemon")  # fmt: skip
    m.end()
    if plain.ready:
        check_users(o, card, program)
    check_shm(o, card, program)
    check_namespaces(o, card, program, plain.ready)
