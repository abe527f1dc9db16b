#!/usr/bin/env python3
"""A double of nvidia-cuda-mps-control for `run`: with -f it serves one user at a time, or several with -M or -m
(or as a lie); with -p 3 it makes the servers and namespaces of a file; without arguments it tells the daemon what its
standard input says. A client must have the /dev/shm of the daemon. DOUBLE_MPS=2: a driver before MPS v3; 3: -M is gone.
"""

import argparse
import os
import selectors
import socket
import struct
import sys
import tomllib

PIPE = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
KNOWN = os.environ.get("DOUBLE_MPS", "")
PROCESSORS = 100


def user_of(client: socket.socket) -> int:
    """As the kernel knows it."""
    return int(struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1])


def folders(config: str) -> dict[str, int]:
    """Of the sockets, with the percentage that clients of each have."""
    found = {PIPE: 100}
    if config:
        with open(config, "rb") as f:
            servers = tomllib.load(f)["servers"]
        for name, server in servers.items():
            found[f"{PIPE}/{name}"] = 100
            for part, limits in server["namespaces"].items():
                found[f"{PIPE}/{name}/{part}"] = int(limits["active_thread_percentage"])
    return found


def serve(several: bool, config: str) -> None:
    """Until somebody says quit."""
    served: dict[socket.socket, int] = {}
    listeners: dict[socket.socket, int] = {}
    wait = selectors.DefaultSelector()
    for folder, percentage in folders(config).items():
        os.makedirs(folder, exist_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(f"{folder}/control")
        os.chmod(f"{folder}/control", 0o777)
        listener.listen(64)
        listeners[listener] = percentage
        wait.register(listener, selectors.EVENT_READ)
    shm = os.stat("/dev/shm") if os.path.exists("/dev/shm") else None
    part: dict[socket.socket, int] = {}
    while True:
        for key, _ in wait.select():
            client = key.fileobj
            word = b"" if client in listeners else client.recv(64)
            if client in listeners:
                came = client.accept()[0]
                part[came] = listeners[client]
                wait.register(came, selectors.EVENT_READ)
            elif word == b"client" and (several or {user_of(client)} >= set(served.values())):
                served[client] = user_of(client)
                its = (shm.st_dev, shm.st_ino) if shm else (0, 0)
                client.send(f"{its[0]} {its[1]} {PROCESSORS * part[client] // 100}".encode())
            elif word == b"quit":
                os.unlink(f"{PIPE}/control")
                return
            elif not word:
                wait.unregister(client)
                served.pop(client, None)
                client.close()


p = argparse.ArgumentParser()
p.add_argument("-f", action="store_true")
if KNOWN != "3":
    p.add_argument("-M", action="store_true")
if KNOWN != "2":
    p.add_argument("-p", choices=["3"])
    p.add_argument("-m", action="store_true")
    p.add_argument("-a", default="")
    p.add_argument("-q", action="store_true")
a = vars(p.parse_args())
if (a.get("m") or a.get("a")) and not a["p"]:
    sys.exit("-m and -a are options of protocol 3")
if a["f"]:
    serve(a.get("M") or a.get("m") or os.environ.get("DOUBLE_LIES") == "users", a.get("a", ""))
else:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
        control.connect(f"{PIPE}/control")
        control.send(b"quit" if a.get("q") else sys.stdin.readline().strip().encode())
