"""Ask NVML what cards a launch will run on, and choose the profile for them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from hangdoc import discovery
from hangdoc.model.gpu import Gpu, Gpus
from hangdoc.model.process import Launch, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.relaunch.profile import Profile, builtin, named
from hangdoc.sampling.probe import Context, Round

PROBE = "gpu"
VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Choice:
    """A profile or none, and why. warnings: what speaks against it."""

    profile: Profile | None
    because: str
    warnings: tuple[str, ...] = ()


def read_gpus() -> Reading[tuple[Gpu, ...]]:
    """Read every card through the gpu probe, which asks NVML in a program of its own, with a deadline."""
    probe = next((one for one in discovery.probes() if one.name == PROBE), None)
    if probe is None:
        return Missing(PROBE, "not-installed", "the gpu probe is not installed", "reinstall hangdoc")
    nobody = Launch(root=ProcessKey(0, 0), engine="generic")
    session = probe.open(Context(launch=nobody, intern=lambda _: 0))
    try:
        now = Round(0, time.clock_gettime_ns(time.CLOCK_BOOTTIME), (), thorough=True)
        reading = next(iter(session.take(now))).reading
    finally:
        session.close()
    if isinstance(reading, Missing):
        return reading
    assert isinstance(reading.value, Gpus)
    return Known(reading.value.devices)


def visible(devices: tuple[Gpu, ...], environment: Mapping[str, str]) -> tuple[Gpu, ...]:
    """Return the cards that a launch may use: all, unless CUDA_VISIBLE_DEVICES names some by number."""
    numbers = environment.get(VISIBLE, "").split(",")
    if not all(number.strip().isdigit() for number in numbers):
        return devices
    wanted = {int(number) for number in numbers}
    return tuple(device for device in devices if device.index in wanted)


def choose(wish: str, reading: Reading[tuple[Gpu, ...]], environment: Mapping[str, str]) -> Choice:
    """Choose a profile. wish: "auto", "none", a name or a file; HangdocError (2) when there is no such profile."""
    if wish == "none":
        return Choice(None, "none was asked for")
    if wish != "auto":
        profile = named(wish)
        return Choice(profile, f"it was asked for: {profile.title}", _doubts(profile, reading, environment))
    if isinstance(reading, Missing):
        return Choice(None, f"NVML cannot be asked ({reading.detail or reading.reason})", _unread(reading))
    return _by_cards(visible(reading.value, environment))


def _by_cards(devices: tuple[Gpu, ...]) -> Choice:
    if not devices:
        return Choice(None, "there is no NVIDIA GPU for it")
    for profile in builtin().values():
        fitting = sum(is_for(profile, device) for device in devices)
        if fitting == len(devices):
            return Choice(profile, f"all {fitting} GPUs are {_kinds(devices)}")
        if fitting:
            because = f"only {fitting} of {len(devices)} GPUs have what {profile.name} is for ({_kinds(devices)})"
            return Choice(None, because, (f"--profile {profile.name} would apply it all the same",))
    return Choice(None, f"no profile is for {_kinds(devices)}")


def is_for(profile: Profile, device: Gpu) -> bool:
    """Say whether a profile is for this card, by its compute capability."""
    capability = device.compute_capability
    return isinstance(capability, Known) and capability.value[0] == profile.compute_capability_major


def _unread(reading: Missing) -> tuple[str, ...]:
    remedy = f" ({reading.remedy})" if reading.remedy else ""
    return (f"which GPUs there are is not known{remedy}; --profile NAME applies a profile all the same",)


def _doubts(profile: Profile, reading: Reading[tuple[Gpu, ...]], environment: Mapping[str, str]) -> tuple[str, ...]:
    if profile.compute_capability_major is None:
        return ()
    if isinstance(reading, Missing):
        return (f"whether the GPUs here are those of {profile.name} is not known: {reading.detail or reading.reason}",)
    others = [device for device in visible(reading.value, environment) if not is_for(profile, device)]
    if others or not reading.value:
        found = _kinds(tuple(others)) if others else "no NVIDIA GPU"
        return (f"{profile.name} is for compute capability {profile.compute_capability_major}.x, and here is {found}",)
    return ()


def _kinds(devices: tuple[Gpu, ...]) -> str:
    kinds: dict[str, int] = {}
    for device in devices:
        capability = device.compute_capability
        version = ".".join(map(str, capability.value)) if isinstance(capability, Known) else "not told"
        text = f"{device.name} (compute capability {version})"
        kinds[text] = kinds.get(text, 0) + 1
    return ", ".join(f"{count} x {text}" if len(kinds) > 1 else text for text, count in kinds.items())


def peers_reported(reading: Reading[tuple[Gpu, ...]], environment: Mapping[str, str]) -> bool:
    """Say whether NVML reports that one of the launch's cards can read another one."""
    devices = visible(reading.value, environment) if isinstance(reading, Known) else ()
    numbers = {device.index for device in devices}
    return any(isinstance(one.peers, Known) and numbers & set(one.peers.value) for one in devices)
