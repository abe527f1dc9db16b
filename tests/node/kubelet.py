"""
The kubelet as cardpack-node knows it: the double of its device manager (kubelet.c), its folder of
device plugins, and its checkpoint.
"""

from __future__ import annotations

import base64
import json
import queue
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from world import RESOURCE, WAIT_S

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def base36(n: int) -> str:
    """As in the IDs of devices."""
    return DIGITS[n] if n < 36 else base36(n // 36) + DIGITS[n % 36]


@dataclass
class Answer:
    """To one call; status 0 is success."""

    status: int
    ns: int
    text: str

    @property
    def env(self) -> dict[str, str]:
        """The variables of an AllocateResponse."""
        found = {}
        for _, grant in fields(bytes.fromhex(self.text)):
            pairs = [dict(fields(value)) for number, value in fields(grant) if number == 1]
            found.update({pair[1].decode(): pair.get(2, b"").decode() for pair in pairs})
        return found


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data: bytes) -> list[tuple[int, bytes]]:
    """Of a message that has strings and messages only."""
    found, at = [], 0
    while at < len(data):
        key, at = varint(data, at)
        assert key & 7 == 2, key
        size, at = varint(data, at)
        found.append((key >> 3, data[at : at + size]))
        at += size
    return found


class Kubelet:
    """One run of it; its devices and checkpoint begin empty."""

    def __init__(self, program: str | list[str], folder: Path, cards: int, units: int) -> None:
        self.folder = folder
        self.checkpoint = folder / "kubelet_internal_checkpoint"
        self.entries: list[dict[str, Any]] = []
        self.free = {card: set(range(units)) for card in range(cards)}
        self.process = subprocess.Popen(
            [*([program] if isinstance(program, str) else program), str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._answers: dict[int, queue.Queue[Answer]] = {}
        self._number = 0
        self.registered = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def close(self) -> None:
        """Ends it."""
        assert self.process.stdin
        self.process.stdin.close()
        assert self.process.wait(WAIT_S) == 0

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            if line == "registered\n":
                self.registered.set()
                continue
            number, status, ns, *text = line.rstrip("\n").split(" ", 3)
            self._answers[int(number)].put(Answer(int(status), int(ns), *text))

    def begin(self, verb: str, devices: str) -> queue.Queue[Answer]:
        """Sends a call; its answer comes through the queue."""
        self._number += 1
        answer = self._answers[self._number] = queue.Queue()
        assert self.process.stdin
        self.process.stdin.write(f"{self._number} {verb} {devices}\n")
        self.process.stdin.flush()
        return answer

    def call(self, verb: str, devices: str) -> Answer:
        """The answer."""
        return self.begin(verb, devices).get(timeout=WAIT_S)

    def take(self, n: int, card: int | None = None) -> str:
        """N free devices of a card, one after the other, of the first with so many."""
        for one in self.free if card is None else (card,):
            for at in sorted(self.free[one]):
                wanted = set(range(at, at + n))
                if wanted <= self.free[one]:
                    self.free[one] -= wanted
                    return f"{one}:{at}+{n}"
        raise AssertionError(f"no {n} free devices")

    def allocate(self, uid: str, n: int, container: str = "c", card: int | None = None) -> tuple[str, Answer]:
        """Admits a container: its devices, and the answer. On success the checkpoint has it."""
        devices = self.take(n, card)
        answer = self.call("allocate", devices)
        if answer.status == 0:
            self.keep(uid, container, devices, fields(bytes.fromhex(answer.text))[0][1])
            self.write()
        else:
            self.give_back(devices)
        return devices, answer

    def give_back(self, devices: str) -> None:
        """They are free again."""
        card, at, n = map(int, devices.replace("+", ":").split(":"))
        self.free[card] |= set(range(at, at + n))

    def keep(self, uid: str, container: str, devices: str, answer: bytes) -> None:
        """An entry of the checkpoint; answer: the part of the reply for this container."""
        card, at, n = map(int, devices.replace("+", ":").split(":"))
        ids = [f"{base36(card)}.{base36(i)}" for i in range(at, at + n)]
        self.entries.append({
            "PodUID": uid, "ContainerName": container, "ResourceName": RESOURCE,
            "DeviceIDs": {"-1": ids}, "AllocResp": base64.b64encode(answer).decode(),
        })  # fmt: skip

    def write(self) -> None:
        """The checkpoint, as the kubelet writes it: whole, by a rename."""
        text = json.dumps({"Data": {"PodDeviceEntries": self.entries, "RegisteredDevices": {}}, "Checksum": 1})
        fresh = self.folder / "fresh"
        fresh.write_text(text)
        fresh.rename(self.checkpoint)


def pod(uid: str, card: str, *sizes: int, name: str = "", annotations: dict[str, str] | None = None,
        containers: list[str] | None = None, created: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:  # fmt: skip
    """A pod on the node that waits for its cards."""
    names = containers or ["c", *(f"c{i}" for i in range(1, len(sizes)))]
    return {
        "kind": "Pod",
        "metadata": {
            "name": name or uid, "namespace": "ns", "uid": uid, "creationTimestamp": created,
            "annotations": {
                "ALIYUN_COM_GPU_MEM_IDX": card, "ALIYUN_COM_GPU_MEM_POD": str(sum(sizes)),
                "ALIYUN_COM_GPU_MEM_ASSIGNED": "false", "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1",
            } | (annotations or {}),
        },
        "spec": {
            "nodeName": "gpu-7",
            "containers": [
                {"name": one, "resources": {"limits": {RESOURCE: str(n)}}}
                for one, n in zip(names, sizes, strict=True)
            ],
        },
        "status": {"phase": "Pending"},
    }  # fmt: skip
