"""Compare the engine's own word about a created container with the profile that was asked for, before it starts.

Deny by default: mounts, devices, binds, capabilities and namespaces beyond the profile are a mismatch, whatever they
are. Empty and absent are the same to the engine. The result is kept with the run.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from service.domain.tasks import canonical_digest
from service.sandboxes.contract import SandboxRefused
from service.sandboxes.docker.facts import LABEL_PREFIX, words

Json = Mapping[str, Any]

_CONFIG_FIELDS = (
    "Hostname",
    "User",
    "WorkingDir",
    "Entrypoint",
    "Cmd",
    "Env",
    "Healthcheck",
    "StopSignal",
    "Tty",
    "OpenStdin",
)
_HOST_FIELDS = (
    "Runtime",
    "NetworkMode",
    "IpcMode",
    "PidMode",
    "UTSMode",
    "UsernsMode",
    "Privileged",
    "PublishAllPorts",
    "CapDrop",
    "CapAdd",
    "SecurityOpt",
    "ReadonlyRootfs",
    "Init",
    "AutoRemove",
    "RestartPolicy",
    "LogConfig",
    "Tmpfs",
    "ShmSize",
    "Memory",
    "MemorySwap",
    "OomKillDisable",
    "OomScoreAdj",
    "NanoCpus",
    "CpuShares",
    "PidsLimit",
    "Sysctls",
    "Devices",
    "Binds",
)
_MUST_BE_EMPTY = (
    "DeviceRequests",
    "DeviceCgroupRules",
    "VolumesFrom",
    "GroupAdd",
    "ExtraHosts",
    "Links",
    "PortBindings",
    "Dns",
    "DnsSearch",
    "Cgroup",
)
_MASKED = ("/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/sys/firmware")
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


def attest(body: Json, inspected: Json) -> dict[str, Any]:
    """Return {field: the engine's value} of what was compared; raise SandboxRefused naming every field that differs."""
    checked: dict[str, Any] = {}
    differing: list[str] = []
    for name, wanted, found in _pairs(body, inspected):
        checked[name] = found
        if wanted != found:
            differing.append(name)
    if differing:
        text = f"the container is not what was asked for: {', '.join(sorted(differing))}"
        raise SandboxRefused("not_attested", text, fields=differing)
    checked["SecurityOpt"] = [_short(str(option)) for option in checked["SecurityOpt"]]
    return {"v": 1, "matched": len(checked), "fields": checked}


def _pairs(body: Json, inspected: Json) -> list[tuple[str, Any, Any]]:
    asked, config = cast("Json", body["HostConfig"]), cast("Json", inspected["Config"])
    host = cast("Json", inspected["HostConfig"])
    pairs: list[tuple[str, Any, Any]] = [("Image", body["Image"], inspected["Image"])]
    pairs += [(n, _plain(body.get(n)), _plain(config.get(n))) for n in _CONFIG_FIELDS]
    pairs += [(n, _plain(asked.get(n)), _plain(host.get(n))) for n in _HOST_FIELDS]
    pairs += [(n, None, _plain(host.get(n))) for n in _MUST_BE_EMPTY]
    covered = {**asked["Tmpfs"], **{m["Target"]: m for m in asked["Mounts"]}}
    pairs.append(("Volumes", None, _plain(config.get("Volumes"), drop=covered)))
    pairs.append(("Labels", body["Labels"], _ours(config.get("Labels") or {}, body["Labels"])))
    pairs.append(("Ulimits", _by_name(asked["Ulimits"]), _by_name(host.get("Ulimits") or [])))
    pairs.append(("Mounts", _asked_mounts(asked["Mounts"]), _found_mounts(inspected.get("Mounts") or [])))
    # The engine says nothing where it is false.
    pairs.append(("NetworkDisabled", body["NetworkDisabled"], bool(config.get("NetworkDisabled"))))
    pairs.append(("Networks", [], sorted(words(inspected["NetworkSettings"].get("Networks")))))
    for field, wanted in (("MaskedPaths", _MASKED), ("ReadonlyPaths", _READ_ONLY)):
        pairs.append((field, sorted(wanted), sorted(set(host.get(field) or []) & set(wanted))))
    if "CgroupnsMode" in asked:
        pairs.append(("CgroupnsMode", asked["CgroupnsMode"], host.get("CgroupnsMode")))
    return pairs


def _short(option: str) -> str:
    """Return a security option without the text of its profile, which is long: its digest tells which one it was."""
    name, brace, rest = option.partition("{")
    return name + (canonical_digest(json.loads(brace + rest)) if brace else "")


def _plain(value: Any, *, drop: Json | None = None) -> Any:
    """Return ``value``, or null where it is empty: the engine answers null for an empty list and the reverse."""
    if drop is not None and isinstance(value, Mapping):
        kept = cast("Json", value)
        value = {k: v for k, v in kept.items() if k not in drop}
    return None if value in (None, [], {}, "") else value


def _ours(labels: Json, asked: Json) -> dict[str, Any]:
    """Return the labels that we set and every other one in our name space."""
    return {k: v for k, v in labels.items() if k in asked or k.startswith(LABEL_PREFIX)}


def _by_name(limits: list[Json]) -> dict[str, tuple[int, int]]:
    return {str(u["Name"]): (int(u["Soft"]), int(u["Hard"])) for u in limits}


def _asked_mounts(mounts: list[Json]) -> list[list[Any]]:
    return _sorted(mounts, lambda m: [m["Target"], m["Type"], m["Source"], not m["ReadOnly"]])


def _found_mounts(mounts: list[Json]) -> list[list[Any]]:
    return _sorted(mounts, lambda m: [m["Destination"], m["Type"], m.get("Name") or m["Source"], m["RW"]])


def _sorted(mounts: list[Json], key: Callable[[Json], list[Any]]) -> list[list[Any]]:
    return sorted((key(m) for m in mounts), key=str)
