"""Reloads of the configuration and certificates under load, and the shutdown."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import queue
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench import LEADS_ON, PATIENCE, Bench, Lab, agree, check, scenario
from certificates import trust
from component import wait_for
from daemon import VERBS, Daemon
from fake_lab import FakeLab, fake_lab

from .confined import under_profile
from .security import FIRST, Secure, serial_of

Json = Any

NODES = [f"m{i}" for i in range(12)]
PODS = 500
CLIENTS = 12  # half of them keep their connections
RELOADS = 50
TAKEN = "the configuration is reloaded"
SAME = "the configuration was read again: nothing to change"
REFUSED = "the configuration cannot be used: the one before stays"
CHANGED = "setting changed"
WAITS = "a change of this setting needs a restart; the old value stays in force"


class Settings:
    """A --config file that is replaced with a symbolic link, as the kubelet does."""

    def __init__(self, folder: Path, **keys: Json) -> None:
        self._folder = folder
        self._serial = itertools.count(1)
        self.path = folder / "cardpack.yaml"
        folder.mkdir()
        self.put(**keys)
        self.path.symlink_to("..data/cardpack.yaml")

    def put(self, **keys: Json) -> None:
        """Writes settings, such as log_level="warn"."""
        lines = (f"{key.replace('_', '-')}: {json.dumps(value)}\n" for key, value in keys.items())
        self.write("".join(lines))

    def write(self, text: str) -> None:
        """Writes the file's bytes."""
        version = self._folder / f"..{next(self._serial)}"
        version.mkdir()
        (version / "cardpack.yaml").write_text(text)
        fresh = self._folder / "..fresh"
        fresh.symlink_to(version.name)
        os.replace(fresh, self._folder / "..data")

    def remove(self) -> None:
        """Removes the file."""
        (self._folder / "..data").unlink()


def hang_up(daemon: Daemon, expect: str) -> Json:
    """Sends SIGHUP; returns the log line that follows."""
    before = len(daemon.log(expect))
    os.kill(daemon.process.pid, signal.SIGHUP)
    lines = wait_for(lambda: (now := daemon.log(expect))[before:] and now, expect, PATIENCE)
    check(len(lines) == before + 1, lines)
    return lines[-1]


# ---- under load -------------------------------------------------------------------------------


class Load:
    """Clients that call filter and bind without a pause and check each answer."""

    def __init__(self, daemon: Daemon, pods: Sequence[Json]) -> None:
        self.daemon = daemon
        self.answers = 0
        self._wrong: list[str] = []
        self._todo: queue.SimpleQueue[Json] = queue.SimpleQueue()
        self._stop = threading.Event()
        self.placed: dict[str, str] = {}
        for pod in pods:
            self._todo.put(pod)
        self._threads = [
            threading.Thread(target=self._run, args=(i % 2 == 0,)) for i in range(CLIENTS)
        ]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE)
        check(not self._wrong, self._wrong[:5])

    def good(self) -> None:
        """Checks that no client has failed so far."""
        check(not self._wrong, self._wrong[:5])

    def _run(self, keeps: bool) -> None:
        connection: http.client.HTTPConnection | None = None
        pod = None
        while not self._stop.is_set() and not self._wrong:
            with contextlib.suppress(queue.Empty):
                pod = self._todo.get_nowait()
            try:
                for verb, body in self._questions(pod):
                    if connection is None:
                        connection = self.daemon.connection()
                    self._ask(connection, verb, body, pod)
                    if not keeps:
                        connection.close()
                        connection = None
            except (OSError, http.client.HTTPException, ValueError, AssertionError) as error:
                self._wrong.append(f"kept={keeps}: {error!r}")
        if connection is not None:
            connection.close()

    def _questions(self, pod: Json) -> Iterator[tuple[str, Json]]:
        yield "filter", {"Pod": pod, "Nodes": None, "NodeNames": NODES}
        metadata = pod["metadata"]
        name = metadata["name"]
        yield "bind", {
            "PodName": name,
            "PodNamespace": metadata["namespace"],
            "PodUID": metadata["uid"],
            "Node": self.placed[name],
        }

    def _ask(self, connection: http.client.HTTPConnection, verb: str, body: Json, pod: Json) -> None:
        headers = {"Content-Type": "application/json"}
        if self.daemon.token is not None:
            headers["Authorization"] = f"Bearer {self.daemon.token}"
        connection.request("POST", f"{VERBS}/{verb}", json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read()
        check(response.status == 200, f"{verb}: {response.status} {text[:200]!r}")
        answer = json.loads(text)
        check(answer["Error"] == "", f"{verb}: {answer['Error']}")
        if verb == "filter":
            names = answer["NodeNames"]
            check(names and set(names) <= set(NODES), names)
            # A repeated bind leaves a bound pod on its node.
            self.placed.setdefault(pod["metadata"]["name"], names[-1])
        self.answers += 1


def reloads(daemon: Daemon, load: Load, settings: Settings, turn: Callable[[int], Json]) -> None:
    """Makes many reloads, each after a few more answers; most by a signal, some by the file alone."""
    for i in range(RELOADS):
        seen = load.answers
        change(daemon, settings, turn(i), signalled=i != RELOADS // 2)
        wait_for(lambda n=seen: load.answers >= n + CLIENTS or load.good(), "answers", PATIENCE)


def change(daemon: Daemon, settings: Settings, keys: Json, *, signalled: bool) -> None:
    """
    Writes settings, and waits until they are taken. Without a signal, or if the test is held up before it,
    cardpack sees the file by itself.
    """
    before = len(daemon.log(TAKEN))
    settings.put(**keys)
    if signalled:
        os.kill(daemon.process.pid, signal.SIGHUP)
    wait_for(lambda: len(daemon.log(TAKEN)) > before, TAKEN, PATIENCE)
    check(len(daemon.log(TAKEN)) == before + 1, daemon.log(TAKEN)[before:])


def lively(i: int) -> Json:
    """Settings that differ in each turn; the even ones have the level of the start."""
    return {"log_level": ("info", "warn")[i % 2]}


def loaded(fake: FakeLab) -> list[Json]:
    """Makes nodes that each have room for all pods, the pods, and an API server with slow Bindings."""
    for name in NODES:
        fake.api.create_node(name, 4 * PODS, 4)
    fake.api.configure(delay_ms={"bind": 30})
    return [fake.pod(f"p{i:03}", 2) for i in range(PODS)]


def proved(fake: FakeLab, daemon: Daemon, load: Load) -> None:
    """Every pod is on the node that its client was told, and cardpack agrees."""
    done = 0
    for name, node in load.placed.items():
        at = fake.node_of(name)
        check(at in ("", node), f"{name} is on {at}, not on {node}")
        done += at == node
    check(done >= CLIENTS, f"{done} pods bound, {load.answers} answers")
    fake.verify(daemon)
    check(daemon.log(TAKEN)[-1]["waiting"] == 0, daemon.log(TAKEN)[-1])
    check(not daemon.log("refused"), daemon.log("refused"))


@scenario("fake")
def no_request_is_lost_by_reloads(lab: Lab) -> None:
    """Plain HTTP: kept and new connections, filter and bind, during many reloads."""
    with fake_lab(lab) as fake:
        settings = Settings(lab.workdir / "config-plain")
        pods = loaded(fake)
        daemon = fake.cardpack("--config", str(settings.path), *LEADS_ON, log_level="")
        agree(daemon, fake.truth)
        with Load(daemon, pods) as load:
            reloads(daemon, load, settings, lambda i: lively(i + 1))
        proved(fake, daemon, load)


@scenario("fake")
def no_request_is_lost_by_certificates(lab: Lab) -> None:
    """
    TLS with client certificates and tokens: each turn has another server certificate, under the old
    file name or a new one. New connections get it; kept connections continue.
    """
    secure = Secure(lab.workdir)
    other = lab.workdir / "mounted-elsewhere"
    secure.certificate().put(other)
    token = lab.workdir / "reload-tokens"
    token.write_text(f"{FIRST}\n")
    pool = [secure.certificate() for _ in range(8)]
    with fake_lab(lab) as fake:
        folders = (secure.folder, other)

        def keys(i: int) -> Json:
            folder = folders[i // 2 % 2]
            # Even turns: another certificate under the same name, which cardpack reads after the
            # signal.
            pool[i % len(pool)].put(folder)
            token.write_text("".join(f"{text}\n" for text in (f"{i:032}", FIRST)))
            return {
                "tls_cert_file": str(folder / "tls.crt"),
                "tls_key_file": str(folder / "tls.key"),
                "client_ca_file": str(secure.clients.pair.cert),
                "client_names": f"system:kube-scheduler,turn-{i}",
                "token_file": str(token),
                **lively(i),
            }

        settings = Settings(lab.workdir / "config-tls", **keys(0))
        pods = loaded(fake)
        daemon = fake.cardpack(
            "--config", str(settings.path), *LEADS_ON,
            tls=trust(secure.ca, secure.client), token=FIRST, log_level="",
        )  # fmt: skip
        agree(daemon, fake.truth)
        shown = []

        def turn(i: int) -> Json:
            if i > 0:
                shown.append(serial_of(daemon))
            return keys(i + 1)

        with Load(daemon, pods) as load:
            reloads(daemon, load, settings, turn)
            # No kept and no new connection was refused; new ones got the newest certificate.
            last = serial_of(daemon)
        check(all(a != b for a, b in itertools.pairwise([*shown, last])), shown)
        proved(fake, daemon, load)


# ---- what is refused, and when ----------------------------------------------------------------


@scenario("fake")
def a_bad_configuration_is_refused_whole(lab: Lab) -> None:
    """By a signal and by the file: the log names the file, key and value, and no setting changes."""
    secure = Secure(lab.workdir)
    with fake_lab(lab) as fake:
        fake.api.create_node("n2", 32, 2)
        settings = Settings(lab.workdir / "config-bad", log_level="info")
        daemon = fake.cardpack("--config", str(settings.path), log_level="")
        agree(daemon, fake.truth)
        pod = fake.pod("p", 2)

        def offered() -> int:
            return len(daemon.fitting(pod, ["n1", "n2"]))

        check(offered() == 2, "no shortlist")
        settings.write("log-level: debug\nnode-policy: loud\n")
        wait_for(lambda: daemon.log(REFUSED), REFUSED, PATIENCE)
        said = daemon.log(REFUSED)[0]["error"]
        for part in (str(settings.path), "node-policy", '"loud"'):
            check(part in said, said)
        settings.write("log-level: debug\nshortlits: 1\n")
        check('did you mean "shortlist"' in hang_up(daemon, REFUSED)["error"], "no hint")
        settings.remove()
        check("No such file" in hang_up(daemon, REFUSED)["error"], "gone")
        check(not daemon.log(CHANGED), "a part of a bad file has taken effect")

        settings.put(log_level="warn", shortlist=1, port=1, tls_cert_file=str(secure.served.cert),
                     tls_key_file=str(secure.served.key))  # fmt: skip
        hang_up(daemon, TAKEN)
        check(offered() == 2, "the shortlist has taken effect without a restart")
        waiting = {line["setting"]: line for line in daemon.log(WAITS)}
        check(set(waiting) == {"shortlist", "tls-cert-file", "tls-key-file"}, waiting)
        changed = daemon.log(CHANGED)
        check([c["setting"] for c in changed] == ["log-level"], changed)
        check((changed[0]["old"], changed[0]["new"], changed[0]["source"]) == ("info", "warn", "file"),
              changed)  # fmt: skip
        settings.put(shortlist=1)
        check(hang_up(daemon, TAKEN)["waiting"] == 1, "what waits")
        check(daemon.ready(), "it speaks TLS now")


@scenario("fake")
def a_bad_certificate_is_refused(lab: Lab) -> None:
    """A new name whose files do not match or do not exist yet: all settings stay."""
    secure = Secure(lab.workdir)
    late = lab.workdir / "mounted-late"
    with fake_lab(lab) as fake:
        names = {"tls_cert_file": str(secure.served.cert), "tls_key_file": str(secure.served.key)}
        settings = Settings(lab.workdir / "config-pair", **names)
        daemon = fake.cardpack(
            "--config", str(settings.path), tls=trust(secure.ca, secure.client), log_level=""
        )
        agree(daemon, fake.truth)
        first = serial_of(daemon)
        settings.put(**{**names, "tls_key_file": str(secure.client.key)}, log_level="debug")
        check("tls-key-file" in hang_up(daemon, REFUSED)["error"], "a pair that is none")
        settings.put(
            tls_cert_file=str(late / "tls.crt"), tls_key_file=str(late / "tls.key"), log_level="debug"
        )
        wait_for(lambda: len(daemon.log(REFUSED)) == 2, "the file to be seen", PATIENCE)
        check(str(late) in daemon.log(REFUSED)[1]["error"], "files that are not there")
        check(serial_of(daemon) == first and not daemon.log(CHANGED), "not refused whole")
        # The Secret is mounted after the ConfigMap: cardpack retries the file without a signal.
        secure.certificate().put(late)
        wait_for(lambda: daemon.log(TAKEN), TAKEN, PATIENCE)
        check(serial_of(daemon) != first, "the old certificate")
        check(daemon.log(TAKEN)[0]["changed"] == 3, daemon.log(TAKEN))


@scenario("fake")
def signals_at_odd_times(lab: Lab) -> None:
    """SIGHUP before cardpack is ready, without a file, many at once, and during the shutdown."""
    with fake_lab(lab) as fake:
        settings = Settings(lab.workdir / "config-odd", log_level="info")
        fake.api.fault(kind="status", verb="list", code=503, count=-1)
        daemon = fake.cardpack("--config", str(settings.path), log_level="", started=False)
        daemon.launch()
        # As soon as a process runs cardpack's command.
        wait_for(lambda: daemon.log("API server"), "the start", PATIENCE)
        os.kill(daemon.process.pid, signal.SIGHUP)
        settings.put(log_level="debug")
        wait_for(lambda: daemon.log(SAME) or daemon.log(TAKEN), "an answer", PATIENCE)
        check(not daemon.ready(), "ready without a list")
        fake.api.clear_faults()
        wait_for(daemon.ready, "ready", PATIENCE)
        for _ in range(200):
            os.kill(daemon.process.pid, signal.SIGHUP)
        wait_for(lambda: daemon.log(TAKEN), TAKEN, PATIENCE)
        check(len(daemon.log(CHANGED)) == 1, daemon.log(CHANGED))

        fake.api.configure(delay_ms={"bind": 1500})
        pod = fake.pod("p", 2)
        with ThreadPoolExecutor(1) as hands:
            asked = hands.submit(daemon.bind, pod, "n1")
            wait_for(lambda: daemon.inspect()["nodes"][0]["usedGPU"] == 2, "a bind under way")
            os.kill(daemon.process.pid, signal.SIGTERM)
            wait_for(lambda: daemon.log("shutting down"), "the signal", PATIENCE)
            settings.put(log_level="info")
            os.kill(daemon.process.pid, signal.SIGHUP)
            check(asked.result() == "", "the bind under way")
        daemon.stop()
        check(len(daemon.log("SIGHUP is ignored: shutting down")) == 1, "no line about it")
        check(len(daemon.log(CHANGED)) == 1, "a setting changed during the shutdown")
        check(fake.node_of("p") == "n1", "not bound")


@scenario("fake")
def reloads_under_the_profile(lab: Lab) -> None:
    """The shipped seccomp profile, which ends cardpack at a denied system call, allows all of this."""
    binary = under_profile(lab)
    secure = Secure(lab.workdir)
    other = secure.certificate().put(lab.workdir / "mounted-profile")
    with fake_lab(lab) as fake:
        names = {"tls_cert_file": str(secure.served.cert), "tls_key_file": str(secure.served.key)}
        settings = Settings(lab.workdir / "config-profile", **names)
        daemon = fake.cardpack(
            "--config", str(settings.path), tls=trust(secure.ca), binary=binary, log_level=""
        )
        agree(daemon, fake.truth)
        settings.put(tls_cert_file=str(other.cert), tls_key_file=str(other.key), log_level="debug")
        check(hang_up(daemon, TAKEN)["changed"] == 3, daemon.log(TAKEN))
        settings.put(**names, evict_for_cards=True)
        wait_for(lambda: len(daemon.log(TAKEN)) == 2, "the file to be seen", PATIENCE)
        check(daemon.bind(fake.pod("p", 2), "n1") == "", "bind")
        fake.verify(daemon)


@scenario("fake")
def no_file_no_harm(lab: Lab) -> None:
    """Without --config a SIGHUP changes nothing and logs a line."""
    with fake_lab(lab) as fake:
        daemon = fake.cardpack("--shortlist", "1")
        agree(daemon, fake.truth)
        check(hang_up(daemon, SAME)["waiting"] == 0, "something waits")
        check(daemon.ready(), "ended")


# ---- the end ----------------------------------------------------------------------------------


def refused(daemon: Daemon) -> bool:
    """Whether no process listens on the port."""
    try:
        socket.create_connection(("127.0.0.1", daemon.port), timeout=10).close()
    except ConnectionRefusedError:
        return True
    return False


@scenario("fake")
def the_end_is_announced(lab: Lab) -> None:
    """
    shutdown-delay: /readyz is 503 and all else works, also on new connections. Then cardpack closes
    the port, finishes a Binding in flight and one in doubt, and ends with status 0.
    """
    with fake_lab(lab) as fake:
        probe = lab.ports.take()
        daemon = fake.cardpack(
            "--shutdown-delay", "5s", "--shutdown-grace", "5m", "--probe-port", str(probe)
        )
        agree(daemon, fake.truth)
        pods = [fake.pod(f"p{i}", 2) for i in range(3)]
        # Half a body, and then a disconnect.
        half = socket.create_connection(("127.0.0.1", daemon.port), timeout=60)
        half.sendall(b"POST /gpushare-scheduler/bind HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        check(daemon.call("GET", "/readyz")[0] == 200, "ready")
        half.close()
        kept = daemon.connection()
        kept.request("GET", "/readyz")
        check(kept.getresponse().read() == b"ok\n", "ready")

        os.kill(daemon.process.pid, signal.SIGTERM)
        wait_for(lambda: daemon.log("shutting down"), "the signal", PATIENCE)
        check(daemon.call("GET", "/readyz") == (503, "it is shutting down\n"), "/readyz")
        check(daemon.fitting(pods[0], ["n1"]) == ["n1"], "a filter on a new connection")
        check(daemon.bind(pods[0], "n1") == "", "a bind on a new connection")
        kept.request("GET", "/readyz")
        check(kept.getresponse().read() == b"it is shutting down\n", "/readyz of a kept connection")
        # The API server answers 504 and commits the write long after cardpack closed its port.
        fake.api.fault(kind="late_commit", verb="bind", ms=6000, code=504)
        with ThreadPoolExecutor(1) as hands:
            asked = hands.submit(daemon.bind, pods[1], "n1")
            wait_for(lambda: refused(daemon), "the port to be closed", PATIENCE, poll=0.05)
            probes = http.client.HTTPConnection("127.0.0.1", probe, timeout=60)
            with contextlib.suppress(ConnectionRefusedError):  # it may have ended by now
                probes.request("GET", "/readyz")
                check(probes.getresponse().status == 503, "/readyz of the probes' port")
            check(asked.result() == "", "the bind in doubt")
        daemon.stop(timeout=120)
        check(not daemon.log("shutdown-grace is over: requests or binds are unfinished"), "not in time")
        check(fake.node_of("p0") == "n1", "p0 is not bound")
        check(fake.node_of("p1") == "n1", "p1 is not bound")
        check(fake.node_of("p2") == "", "p2")


@scenario("fake")
def a_second_signal_ends_at_once(lab: Lab) -> None:
    """A second signal during the delay, and with a Binding in flight: status 0 at once."""
    with fake_lab(lab) as fake:
        daemon = fake.cardpack("--shutdown-delay", "10m", "--shutdown-grace", "10m")
        agree(daemon, fake.truth)
        fake.api.fault(kind="hang", verb="bind")
        pod = fake.pod("p", 2)
        with ThreadPoolExecutor(1) as hands:
            asked = hands.submit(daemon.bind, pod, "n1")
            wait_for(lambda: fake.count("bind pods") == 1, "a bind under way")
            os.kill(daemon.process.pid, signal.SIGTERM)
            wait_for(lambda: len(daemon.log("shutting down")) == 1, "the signal", PATIENCE)
            daemon.stop(timeout=60)
            check(asked.result() != "", "answered as if it were bound")


# ---- the real thing ---------------------------------------------------------------------------


@scenario("real")
def the_scheduler_over_reloads(bench: Bench) -> None:
    """A real kube-scheduler schedules while the file changes again and again."""
    for i in range(3):
        bench.node(f"n{i}", 4, 64)
    settings = Settings(bench.workdir / "config-real")
    daemon = bench.cardpack("--config", str(settings.path), log_level="")
    agree(daemon, bench.truth)
    burst = 40
    maker = threading.Thread(
        target=bench.pods, args=([f"c{i:02}" for i in range(burst)], [2] * burst)
    )
    maker.start()
    for i in range(RELOADS):
        change(daemon, settings, lively(i + 1), signalled=True)
    maker.join()
    bench.wait_bound(burst)
    bench.verify(daemon)
