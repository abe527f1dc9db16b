"""The HTTP side of the fake API server: one asyncio loop, plain HTTP/1.1, no gzip.

Kubernetes requests go to the store, through a matching fault if there is one. Requests below /_
control the server itself (see fake_api.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from fake_faults import Fault, Faults
from fake_select import Refused, Selection
from fake_store import KINDS, Change, Store, dump, too_large
from fake_watch import Watch
from fake_world import Shape, World

Json = Any

_PATH = re.compile(
    r"/(?:api/v1|apis/[a-z0-9.-]+/v[a-z0-9]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[a-z]))?"
    r"/(?P<resource>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[a-z]+))?/?"
)
_PIECE_BYTES = 1 << 18
_REASONS = {200: "OK", 201: "Created"}


class Drop(Exception):
    """The connection ends here, without another byte."""


@dataclass
class Request:
    """One parsed request."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    path: str = ""
    query: dict[str, str] = field(default_factory=dict)
    resource: str = ""
    namespace: str = ""
    name: str = ""
    sub: str = ""
    verb: str = ""

    def __post_init__(self) -> None:
        parts = urlsplit(self.target)
        self.path = unquote(parts.path)
        pairs = parse_qs(parts.query, keep_blank_values=True)
        self.query = {name: values[-1] for name, values in pairs.items()}
        match = _PATH.fullmatch(self.path)
        if match is None or match["resource"] not in KINDS:
            return
        self.resource = match["resource"]
        self.namespace, self.name = match["namespace"] or "", match["name"] or ""
        self.sub = match["sub"] or ""
        self.verb = self._verb()

    def _verb(self) -> str:
        if self.method == "GET":
            if self.name:
                return "get"
            return "watch" if self.query.get("watch") in ("true", "1") else "list"
        if self.method == "POST":
            return "bind" if self.sub == "binding" else "create"
        return {"PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(self.method, "")

    def selection(self) -> Selection:
        return Selection.parse(
            self.resource,
            self.namespace,
            self.query.get("fieldSelector", ""),
            self.query.get("labelSelector", ""),
        )

    def json(self) -> Json:
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Refused(400, "BadRequest", f"the body is no JSON: {error}") from None


class Server:
    """Serves until its task is cancelled."""

    def __init__(self) -> None:
        self.store = Store()
        self.store.on_change.append(self._changed)
        self.faults = Faults()
        self.watches: set[Watch] = set()
        self.requests: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()
        self.bytes_sent = 0
        self.outages = 0
        self.log: deque[str] = deque(maxlen=2000)
        self.bookmark_seconds = 60.0
        self.delay_ms: dict[str, float] = {}  # per verb, for every request
        self.port = 0
        self._listener: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    # ---- connections --------------------------------------------------------------------

    async def listen(self, port: int = 0) -> None:
        self._listener = await asyncio.start_server(
            self._connected, "127.0.0.1", port, limit=1 << 20, backlog=1024
        )
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._writers.add(writer)
        writer.transport.set_write_buffer_limits(high=4 << 20)
        try:
            while request := await self._read(reader):
                await self._serve(request, writer)
        except (Drop, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._writers.discard(writer)
            if writer.transport is not None:
                # Sends the buffered bytes; a close would wait for a peer that does not read.
                with contextlib.suppress(ConnectionError, asyncio.TimeoutError):
                    await asyncio.wait_for(writer.drain(), 1)
                writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Request | None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ", 2)
        headers = {}
        for line in lines[1:-2]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = b""
        if length := int(headers.get("content-length", 0)):
            body = await reader.readexactly(length)
        return Request(method, target, headers, body)

    async def _serve(self, request: Request, writer: asyncio.StreamWriter) -> None:
        if request.path.startswith("/_"):
            await self._control(request, writer)
            return
        kind = f"{request.verb} {request.resource}" if request.verb else "other"
        self.requests[kind] += 1
        self.log.append(f"{request.method} {request.target}")
        picked = self.faults.pick(
            request.verb, request.resource, request.target, "continue" in request.query
        )
        delay = self.delay_ms.get(request.verb, 0)
        delay += sum(f.get("ms", 0) for f in picked if f.kind == "delay")
        if delay:
            await asyncio.sleep(delay / 1000)
        other = next((f for f in picked if f.kind != "delay" and not f.of_watch), None)
        of_watch = next((f for f in picked if f.of_watch), None)
        try:
            await self._answer(request, writer, other, of_watch)
        except Refused as refused:
            self._count(kind, refused.code)
            headers = "Retry-After: 1\r\n" if refused.code == 504 else ""
            await self._send(writer, refused.code, dump(refused.status), headers=headers)

    def _count(self, kind: str, code: int) -> None:
        self.answers[f"{kind} {code}"] += 1

    async def _send(
        self,
        writer: asyncio.StreamWriter,
        code: int,
        body: bytes,
        content_type: str = "application/json",
        headers: str = "",
    ) -> None:
        self.bytes_sent += len(body)
        head = (
            f"HTTP/1.1 {code} {_REASONS.get(code, 'Error')}\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\n{headers}\r\n"
        )
        writer.write(head.encode() + body)
        await writer.drain()

    # ---- verbs --------------------------------------------------------------------------

    async def _answer(
        self,
        request: Request,
        writer: asyncio.StreamWriter,
        fault: Fault | None,
        of_watch: Fault | None,
    ) -> None:
        kind = fault.kind if fault else ""
        if fault is not None:
            self.log.append(f"  fault {kind} {fault.options}")
        if kind == "drop":
            raise Drop
        if kind == "hang":
            await asyncio.sleep(3600)
            raise Drop
        if fault is not None and kind == "status":
            await self._refuse(request, writer, fault)
            return
        if not request.verb:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        if request.verb == "list":
            await self._list(request, writer, fault if kind == "truncate" else None)
        elif request.verb == "watch":
            await self._watch(request, writer, of_watch)
        elif fault is not None and kind == "late_commit":
            self._later(fault.get("ms", 500), lambda: self._late(request))
            raise Refused(fault.get("code", 504), "Timeout",
                          "request did not complete within requested timeout 34s")  # fmt: skip
        else:
            code, body = self._do(request)
            if fault is not None and kind == "drop_after_commit":
                await asyncio.sleep(fault.get("ms", 0) / 1000)
                raise Drop
            self._count(f"{request.verb} {request.resource}", code)
            await self._send(writer, code, body)

    async def _refuse(self, request: Request, writer: asyncio.StreamWriter, fault: Fault) -> None:
        code = fault.get("code", 500)
        self._count(f"{request.verb} {request.resource}", code)
        headers = ""
        if (seconds := fault.get("retry_after", None)) is not None:
            headers = f"Retry-After: {seconds}\r\n"
        if (text := fault.get("text", None)) is not None:
            await self._send(writer, code, text.encode(), "text/plain", headers)
            return
        refused = Refused(code, fault.get("reason", ""), fault.get("message", "injected"))
        await self._send(writer, code, dump(refused.status), headers=headers)

    def _do(self, request: Request) -> tuple[int, bytes]:
        """Handles requests with one object in and one object out; raises Refused."""
        where = (request.resource, request.namespace, request.name)
        if request.verb == "get":
            return 200, self.store.get(*where)
        if request.verb == "bind":
            dry_run = request.query.get("dryRun") == "All"
            self.store.bind(request.namespace, request.name, request.json(), dry_run)
            return 201, dump({"kind": "Status", "apiVersion": "v1", "metadata": {},
                              "status": "Success", "code": 201})  # fmt: skip
        if request.verb == "create" and not request.name:
            return 201, self.store.create(request.resource, request.namespace, request.json())
        if request.verb == "update":
            item = request.json()
            if request.resource == "leases" and self.store.find(*where) is None:
                return 201, self.store.create_by_update(request.namespace, request.name, item)
            return 200, self.store.update(*where, item)
        if request.verb == "patch":
            return 200, self.store.patch(*where, request.json())
        if request.verb == "delete" and request.name:
            return 200, self.store.delete(*where, request.json() if request.body else None)
        raise Refused(405, "MethodNotAllowed", f"{request.method} is not supported here")

    def _late(self, request: Request) -> None:
        with contextlib.suppress(Refused):
            self._do(request)
            self.log.append(f"  late commit of {request.method} {request.target}")

    def _later(self, ms: float, call: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(ms / 1000, call)

    # ---- list and watch -----------------------------------------------------------------

    async def _list(
        self, request: Request, writer: asyncio.StreamWriter, fault: Fault | None
    ) -> None:
        query = request.query
        token = query.get("continue", "")
        asked = query.get("resourceVersion", "")
        if token and asked not in ("", "0"):
            raise Refused(
                400, "BadRequest", "specifying resource version is not allowed when using continue"
            )
        if asked.isdigit() and int(asked) > self.store.rv:
            raise too_large(int(asked), self.store.rv)
        limit = 0 if asked == "0" else int(query.get("limit") or 0)
        rv, following, items = self.store.list(request.selection(), limit, token)
        self._count(f"list {request.resource}", 200)
        kind, version, _ = KINDS[request.resource]
        metadata = {"resourceVersion": str(rv)} | ({"continue": following} if following else {})
        head = {"kind": f"{kind}List", "apiVersion": version, "metadata": metadata}
        body = _pieces(dump(head)[:-1] + b',"items":[', items)
        if fault is not None:
            await self._truncated(writer, b"".join([p async for p in body]), fault)
            return
        await self._stream_head(writer)
        async for piece in body:
            await self._chunk(writer, piece)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _truncated(
        self, writer: asyncio.StreamWriter, body: bytes, fault: Fault
    ) -> None:
        part = body[: fault.get("bytes", len(body) // 2)]
        await self._stream_head(writer)
        await self._chunk(writer, part)
        if not fault.get("clean", False):
            raise Drop
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _stream_head(self, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        await writer.drain()

    async def _chunk(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        if not data:
            return
        self.bytes_sent += len(data)
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await writer.drain()

    async def _watch(
        self, request: Request, writer: asyncio.StreamWriter, fault: Fault | None
    ) -> None:
        watch = Watch(self.store, request.selection(), request.query, self.bookmark_seconds)
        if fault is not None:
            watch.inject(fault)
        self._count(f"watch {request.resource}", 200)
        self.watches.add(watch)
        try:
            await self._stream_head(writer)
            async for piece in watch.stream():
                if writer.transport.is_closing():
                    raise Drop
                await self._chunk(writer, piece)
            if watch.dropped:
                raise Drop
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        finally:
            self.watches.discard(watch)

    def _changed(self, change: Change) -> None:
        for watch in self.watches:
            watch.changed(change)

    # ---- control ------------------------------------------------------------------------

    async def _control(self, request: Request, writer: asyncio.StreamWriter) -> None:
        try:
            answer = self.command(request.method, request.path, request.body)
        except (ValueError, TypeError, KeyError) as error:
            await self._send(writer, 400, dump({"error": str(error)}))
            return
        await self._send(writer, 200, dump(answer))

    def command(self, method: str, path: str, body: bytes) -> Json:
        given = json.loads(body) if body else {}
        if (method, path) == ("GET", "/_stats"):
            return self._stats()
        if (method, path) == ("GET", "/_log"):
            return list(self.log)
        if (method, path) == ("DELETE", "/_fault"):
            self.faults.clear()
        elif (method, path) == ("POST", "/_fault"):
            rows = given if isinstance(given, list) else [given]
            self._inject([Fault.parse(row) for row in rows])
        elif (method, path) == ("POST", "/_compact"):
            self.store.compact()
        elif (method, path) == ("POST", "/_bookmark"):
            for watch in self._chosen(given):
                watch.bookmark()
        elif (method, path) == ("POST", "/_close"):
            for watch in self._chosen(given):
                watch.inject(Fault("end"))
        elif (method, path) == ("POST", "/_down"):
            self._down(given.get("ms", 1000))
        elif (method, path) == ("POST", "/_config"):
            self._configure(given)
        elif (method, path) == ("POST", "/_world"):
            self.store.world = World(Shape(**given))
            self.store.compact()
        elif (method, path) == ("POST", "/_reset_stats"):
            self.requests.clear()
            self.answers.clear()
            self.log.clear()
            self.bytes_sent = 0
        else:
            raise ValueError(f"no command {method} {path}")
        return {"ok": True}

    def _inject(self, rows: list[Fault]) -> None:
        for row in rows:
            if not (row.of_watch and row.now):
                self.faults.add([row])
                continue
            for watch in self._chosen({} if row.resource == "*" else {"resource": row.resource}):
                watch.inject(row)

    def _chosen(self, given: Json) -> list[Watch]:
        wanted = given.get("resource", "*")
        return [w for w in self.watches if wanted in ("*", w.selection.resource)]

    def _stats(self) -> Json:
        watches = Counter(w.selection.resource for w in self.watches)
        return {
            "requests": dict(self.requests),
            "answers": dict(self.answers),
            "watches": dict(watches),
            "connections": len(self._writers),
            "bytes_sent": self.bytes_sent,
            "outages": self.outages,
            "faults_hit": self.faults.hits,
            "faults_left": len(self.faults.rows),
            "resource_version": str(self.store.rv),
        }

    def _configure(self, given: Json) -> None:
        for name, value in given.items():
            if name == "bookmark_seconds":
                self.bookmark_seconds = float(value)
            elif name == "preconditions":
                self.store.preconditions = bool(value)
            elif name == "delay_ms":
                self.delay_ms = {verb: float(ms) for verb, ms in value.items()}
            else:
                raise ValueError(f"no setting {name!r}")

    def _down(self, ms: float) -> None:
        """Stops listening for `ms` milliseconds and cuts all connections."""
        task = asyncio.get_running_loop().create_task(self._outage(ms))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _outage(self, ms: float) -> None:
        await asyncio.sleep(0.01)  # the answer to this command is sent first
        assert self._listener is not None
        self._listener.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(ms / 1000)
        await self.listen(self.port)
        self.outages += 1


async def _pieces(head: bytes, items: Any) -> AsyncIterator[bytes]:
    """A list's body in pieces of a suitable size."""
    held: list[bytes] = []
    size = 0
    start = head
    for item in items:
        held.append(item)
        size += len(item)
        if size >= _PIECE_BYTES:
            yield start + b",".join(held)
            start, held, size = b",", [], 0
    if held:
        yield start + b",".join(held) + b"]}\n"
    else:
        yield (b"]}\n" if start == b"," else start + b"]}\n")
