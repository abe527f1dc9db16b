"""The objects of the fake API server: versions, history, selectors, the Binding.

Like etcd and the API server's storage: one version counter for all objects; every write is an event
that a watch can replay until compaction; objects are kept as the bytes that the server sends.
"""

from __future__ import annotations

import base64
import bisect
import copy
import json
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from fake_lease import check_lease, invalid_lease
from fake_select import Refused, Selection
from fake_world import World

Json = Any

# plural: kind, apiVersion, namespaced
KINDS = {
    "nodes": ("Node", "v1", False),
    "namespaces": ("Namespace", "v1", False),
    "pods": ("Pod", "v1", True),
    "configmaps": ("ConfigMap", "v1", True),
    "events": ("Event", "v1", True),
    "leases": ("Lease", "coordination.k8s.io/v1", True),
}

_SNAPSHOTS = 64


def dump(value: Json) -> bytes:
    """JSON as the API server writes it: compact."""
    return json.dumps(value, separators=(",", ":")).encode()


def expired(message: str) -> Refused:
    """The answer to a version that was compacted away."""
    return Refused(410, "Expired", message)


def too_large(asked: int, current: int) -> Refused:
    """The answer of a server whose state is older than the requested version."""
    message = f"Too large resource version: {asked}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return Refused(
        504, "Timeout", f"Timeout: {message}", {"causes": causes, "retryAfterSeconds": 1}
    )


def full_name(resource: str) -> str:
    """The resource as messages name it: with its group if it has one."""
    group, slash, _ = KINDS[resource][1].rpartition("/")
    return f"{resource}.{group}" if slash else resource


def details_of(resource: str, name: str) -> Json:
    """The `details` of a Status for an object."""
    group, slash, _ = KINDS[resource][1].rpartition("/")
    return {"name": name} | ({"group": group} if slash else {}) | {"kind": resource}


def not_found(resource: str, name: str) -> Refused:
    return Refused(
        404, "NotFound", f'{full_name(resource)} "{name}" not found', details_of(resource, name)
    )


@dataclass
class Change:
    """One write: the object before and after, None where it did not exist."""

    rv: int
    resource: str
    before: Json
    after: Json
    content: bytes  # of after; or of before with the new version, for a deletion

    def event(self, selection: Selection) -> bytes | None:
        """The watch's line; None if the selection does not include the change."""
        was, now = selection.holds(self.before), selection.holds(self.after)
        if not was and not now:
            return None
        content = self.content
        if was and not now and self.after is not None:
            # It left the selection: send its last content inside it, with the new version.
            gone = copy.deepcopy(self.before)
            gone["metadata"]["resourceVersion"] = str(self.rv)
            content = dump(gone)
        kind = "MODIFIED" if was and now else "ADDED" if now else "DELETED"
        return event_line(kind, with_kind(self.resource, content))


def with_kind(resource: str, content: bytes) -> bytes:
    """Adds kind and apiVersion: list items lack them, single objects have them."""
    kind, version, _ = KINDS[resource]
    return b'{"kind":"%s","apiVersion":"%s",%s' % (kind.encode(), version.encode(), content[1:])


def event_line(kind: str, content: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), content)


class Store:
    """All state of the server. For one thread only."""

    def __init__(self) -> None:
        self.rv = 1000
        self.compacted = 0  # watches from older versions are refused
        self.preconditions = True  # as 1.27 and later
        self.history: deque[Change] = deque()
        self.on_change: list[Callable[[Change], None]] = []
        # None: an object of the generated world that was deleted.
        self._objects: dict[str, dict[str, Json]] = {name: {} for name in KINDS}
        self._bytes: dict[str, dict[str, bytes]] = {name: {} for name in KINDS}
        self._keys: dict[str, list[str]] = {name: [] for name in KINDS}
        self._snapshots: OrderedDict[tuple[Selection, int], tuple[list[str], dict[str, bytes]]]
        self._snapshots = OrderedDict()
        self.world: World | None = None

    # ---- reading ------------------------------------------------------------------------

    @staticmethod
    def key(resource: str, namespace: str, name: str) -> str:
        return f"{namespace}/{name}" if KINDS[resource][2] else name

    def find(self, resource: str, namespace: str, name: str) -> Json:
        """The object or None; the caller must not change it."""
        key = self.key(resource, namespace, name)
        if key in self._objects[resource]:
            return self._objects[resource][key]
        if self.world is not None and (content := self.world.get(resource, key)) is not None:
            return json.loads(content)
        return None

    def get(self, resource: str, namespace: str, name: str) -> bytes:
        key = self.key(resource, namespace, name)
        content = self._bytes[resource].get(key)
        if content is None and key not in self._objects[resource] and self.world is not None:
            content = self.world.get(resource, key)
        if content is None:
            raise not_found(resource, name)
        return with_kind(resource, content)

    def list(
        self, selection: Selection, limit: int, token: str
    ) -> tuple[int, str, Iterator[bytes]]:
        """The list's version, the next page's token, and the items."""
        rv, after = self.rv, ""
        if token:
            rv, after = self._open_token(token)
        keys, contents = self._snapshot(selection, rv, fresh=not token)
        page = _Page(self, selection, keys, contents, after, limit)
        if not limit:
            return rv, "", page.items()  # may hold more items than fit in memory
        items = list(page.items())
        next_page = ""
        if page.more:
            raw = json.dumps({"v": "meta.k8s.io/v1", "rv": rv, "start": page.last})
            next_page = base64.urlsafe_b64encode(raw.encode()).decode()
        else:
            self._snapshots.pop((selection, rv), None)
        return rv, next_page, iter(items)

    def _open_token(self, token: str) -> tuple[int, str]:
        try:
            opened = json.loads(base64.urlsafe_b64decode(token))
            rv, after = opened["rv"], opened["start"]
        except (ValueError, KeyError, TypeError):
            raise Refused(400, "BadRequest", "continue key is not valid") from None
        return rv, after

    def _snapshot(
        self, selection: Selection, rv: int, fresh: bool
    ) -> tuple[list[str], dict[str, bytes]]:
        """The keys and bytes at a version, so that the pages of a list are consistent."""
        where = (selection, rv)
        if where not in self._snapshots:
            if not fresh:
                raise Refused(
                    410,
                    "Expired",
                    "The provided continue parameter is too old to display a consistent list "
                    "result.",
                    next_page="aW5jb25zaXN0ZW50",
                )
            resource = selection.resource
            self._snapshots[where] = (list(self._keys[resource]), dict(self._bytes[resource]))
            while len(self._snapshots) > _SNAPSHOTS:
                self._snapshots.popitem(last=False)
        self._snapshots.move_to_end(where)
        return self._snapshots[where]

    def matches(self, selection: Selection, key: str, content: bytes) -> bool:
        if selection.everything:
            return True
        item = self._objects[selection.resource].get(key)
        if item is None or self._bytes[selection.resource].get(key) != content:
            item = json.loads(content)
        return selection.holds(item)

    def replay(self, resource: str, rv: int) -> list[Change]:
        """The changes of a resource after a version."""
        if rv < self.compacted:
            raise expired(f"too old resource version: {rv} ({self.compacted})")
        if rv > self.rv:
            raise too_large(rv, self.rv)
        return [c for c in self.history if c.rv > rv and c.resource == resource]

    # ---- writing ------------------------------------------------------------------------

    def _put(self, resource: str, item: Json, before: Json) -> bytes:
        metadata = item["metadata"]
        key = self.key(resource, metadata.get("namespace", ""), metadata["name"])
        self.rv += 1
        metadata["resourceVersion"] = str(self.rv)
        content = dump(item)
        if key not in self._objects[resource]:
            bisect.insort(self._keys[resource], key)
        self._objects[resource][key] = item
        self._bytes[resource][key] = content
        self._tell(Change(self.rv, resource, before, item, content))
        return with_kind(resource, content)

    def _tell(self, change: Change) -> None:
        self.history.append(change)
        for told in self.on_change:
            told(change)

    def create(self, resource: str, namespace: str, item: Json) -> bytes:
        metadata = item.setdefault("metadata", {})
        item.pop("kind", None)
        item.pop("apiVersion", None)
        if KINDS[resource][2]:
            metadata["namespace"] = namespace
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + uuid.uuid4().hex[:5]
        if not metadata.get("name"):
            raise Refused(422, "Invalid", "metadata.name: Required value")
        if self.find(resource, namespace, metadata["name"]) is not None:
            raise Refused(
                409,
                "AlreadyExists",
                f'{full_name(resource)} "{metadata["name"]}" already exists',
                details_of(resource, metadata["name"]),
            )
        if resource == "leases":
            check_lease(item)
        _check_annotations(metadata)
        if not metadata.get("uid"):
            metadata["uid"] = str(uuid.uuid4())
        metadata.setdefault("creationTimestamp", now())
        if resource == "pods":
            item.setdefault("status", {}).setdefault("phase", "Pending")
        return self._put(resource, item, None)

    def update(self, resource: str, namespace: str, name: str, item: Json) -> bytes:
        if resource == "leases":
            check_lease(item)
            if not (item.get("metadata") or {}).get("resourceVersion"):
                why = "must be specified for an update"
                raise invalid_lease(name, "metadata.resourceVersion", 0, why)
        before = self._existing(resource, namespace, name)
        metadata = item.setdefault("metadata", {})
        item.pop("kind", None)
        item.pop("apiVersion", None)
        _check_annotations(metadata)
        wanted = metadata.get("resourceVersion")
        if wanted and wanted != before["metadata"]["resourceVersion"]:
            raise modified(resource, name)
        if metadata.get("uid") and metadata["uid"] != before["metadata"]["uid"]:
            raise Refused(409, "Conflict", f"Precondition failed: UID in precondition: "
                          f"{metadata['uid']}, UID in object meta: {before['metadata']['uid']}",
                          details_of(resource, name))  # fmt: skip
        for kept in ("name", "namespace", "uid", "creationTimestamp"):
            if kept in before["metadata"]:
                metadata[kept] = before["metadata"][kept]
        metadata["resourceVersion"] = before["metadata"]["resourceVersion"]
        if item == before:
            return self.get(resource, namespace, name)  # no change: no write and no event
        return self._put(resource, item, before)

    def create_by_update(self, namespace: str, name: str, item: Json) -> bytes:
        """
        A PUT of a Lease that does not exist creates it, even if the request names the version of a
        deleted one. Only the UID shows that the request is outdated.
        """
        metadata = item.setdefault("metadata", {})
        if metadata.get("uid"):
            why = f"UID in precondition: {metadata['uid']}, UID in object meta: "
            why = f"Precondition failed: {why}"
            raise Refused(409, "Conflict", why, details_of("leases", name))
        metadata["name"] = name
        return self.create("leases", namespace, item)

    def patch(self, resource: str, namespace: str, name: str, patch: Json) -> bytes:
        """A merge patch; a strategic merge patch is treated the same way, which is right for maps."""
        before = self._existing(resource, namespace, name)
        if uid := (patch.get("metadata") or {}).get("uid"):
            if uid != before["metadata"]["uid"]:
                raise Refused(422, "Invalid", "metadata.uid: field is immutable")
        return self.update(resource, namespace, name, _merge(copy.deepcopy(before), patch))

    def delete(self, resource: str, namespace: str, name: str, options: Json = None) -> bytes:
        before = self._existing(resource, namespace, name)
        wanted = ((options or {}).get("preconditions") or {}).get("uid")
        if wanted and wanted != before["metadata"]["uid"]:
            raise modified(resource, name)
        key = self.key(resource, namespace, name)
        self.rv += 1
        last = copy.deepcopy(before)
        last["metadata"]["resourceVersion"] = str(self.rv)
        if key in self._bytes[resource]:
            del self._bytes[resource][key]
        if self.world is not None and self.world.get(resource, key) is not None:
            if key not in self._objects[resource]:
                bisect.insort(self._keys[resource], key)
            self._objects[resource][key] = None
        else:
            del self._objects[resource][key]
            del self._keys[resource][bisect.bisect_left(self._keys[resource], key)]
        content = dump(last)
        self._tell(Change(self.rv, resource, before, None, content))
        return with_kind(resource, content)

    def bind(self, namespace: str, name: str, binding: Json, dry_run: bool) -> None:
        """The Binding in one transaction: annotations and node, or neither."""
        metadata = binding.get("metadata") or {}
        if metadata.get("name") != name:
            raise Refused(
                400, "BadRequest", "name in URL does not match name in Binding object"
            )
        if metadata.get("namespace") not in (None, "", namespace):
            raise Refused(400, "BadRequest", "the namespace of the provided object does not match")
        target = (binding.get("target") or {}).get("name")
        if not target:
            raise Refused(500, "", "target.name: Required value")
        pod = copy.deepcopy(self._existing("pods", namespace, name))
        for word, key in (("UID", "uid"), ("ResourceVersion", "resourceVersion")):
            wanted, has = metadata.get(key), pod["metadata"][key]
            if self.preconditions and wanted and wanted != has:
                text = (
                    f"Precondition failed: {word} in precondition: {wanted}, "
                    f"{word} in object meta: {has}"
                )
                raise Refused(409, "Conflict", text, {"name": name, "kind": "pods"})
        if pod["metadata"].get("deletionTimestamp"):
            raise _not_assigned(
                name, f"pod {name} is being deleted, cannot be assigned to a host"
            )
        if node := (pod.get("spec") or {}).get("nodeName"):
            raise _not_assigned(name, f'pod {name} is already assigned to node "{node}"')
        if dry_run:
            return
        pod.setdefault("spec", {})["nodeName"] = target
        annotations = metadata.get("annotations") or {}
        if annotations:
            merged = (pod["metadata"].get("annotations") or {}) | annotations
            pod["metadata"]["annotations"] = merged
        conditions = pod.setdefault("status", {}).setdefault("conditions", [])
        conditions[:] = [c for c in conditions if c.get("type") != "PodScheduled"]
        conditions.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": now()})
        self._put("pods", pod, self.find("pods", namespace, name))

    def _existing(self, resource: str, namespace: str, name: str) -> Json:
        item = self.find(resource, namespace, name)
        if item is None:
            raise not_found(resource, name)
        return item

    def compact(self) -> None:
        """Drops the history: older watches and continue tokens get 410."""
        self.compacted = self.rv
        self.history.clear()
        self._snapshots.clear()


class _Page:
    """One page of a list: the world's objects in ranges, merged with the store's own."""

    def __init__(
        self,
        store: Store,
        selection: Selection,
        keys: list[str],
        contents: dict[str, bytes],
        after: str,
        limit: int,
    ) -> None:
        self.store, self.selection, self.contents = store, selection, contents
        self.keys, self.after = keys, after
        self.left = limit or 1 << 62
        self.last = after  # the last key that was read
        self.more = False  # whether there are more keys after it

    def items(self) -> Iterator[bytes]:
        world, resource = self.store.world, self.selection.resource
        index = bisect.bisect_right(self.keys, self.after) if self.after else 0
        at, size = 0, world.size(resource) if world else 0
        if world and self.after:
            at = world.index_after(resource, self.after)
        while self.left > 0:
            key = self.keys[index] if index < len(self.keys) else None
            stop = size
            if world and key is not None:
                stop = world.index_of(resource, key)
            if world and at < stop:
                stop = min(stop, at + min(self.left, 500))
                found = world.render(resource, at, stop, self.selection)
                self.left -= len(found)
                self.last = world.key(resource, stop - 1)
                at = stop
                yield from found
                continue
            if key is None:
                break
            if world and at < size and world.key(resource, at) == key:
                at += 1  # the store's own copy, or its deletion, replaces it
            index += 1
            self.last = key
            content = self.contents.get(key)
            if content is not None and self.store.matches(self.selection, key, content):
                self.left -= 1
                yield content
        self.more = index < len(self.keys) or at < size


def _merge(into: Json, patch: Json) -> Json:
    if not isinstance(patch, dict):
        return patch
    if not isinstance(into, dict):
        into = {}
    for name, value in patch.items():
        if value is None:
            into.pop(name, None)
        else:
            into[name] = _merge(into.get(name), value)
    return into


def modified(resource: str, name: str) -> Refused:
    return Refused(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {full_name(resource)} "{name}": the object has been '
        "modified; please apply your changes to the latest version and try again",
        details_of(resource, name),
    )


def _check_annotations(metadata: Json) -> None:
    """As the API server does on each write of an object, but not for a Binding."""
    notes = metadata.get("annotations") or {}
    if sum(len(key.encode()) + len(value.encode()) for key, value in notes.items()) > 256 << 10:
        why = "metadata.annotations: Too long: may not be more than 262144 bytes"
        raise Refused(422, "Invalid", why)


def _not_assigned(name: str, why: str) -> Refused:
    return Refused(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on pods/binding "{name}": {why}',
        {"name": name, "kind": "pods/binding"},
    )


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
