"""A disk that stops answering: every write and sync to files below a folder waits for as long as a gate is shut."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static void wait_for_the_disk(int fd) {
    const char *disk = getenv("SLOW_DISK"), *gate = getenv("SLOW_DISK_GATE");
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (!disk || !gate || length < 0 || strncmp(path, disk, strlen(disk)) != 0) return;
    while (access(gate, F_OK) == 0) usleep(20000);
}

ssize_t write(int fd, const void *data, size_t size) {
    wait_for_the_disk(fd);
    return ((ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write"))(fd, data, size);
}

int fsync(int fd) {
    wait_for_the_disk(fd);
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
"""
"""What a disk does to its caller, done in the C library's place: the caller sits in write(2) or fsync(2)."""


@dataclass(frozen=True)
class SlowDisk:
    """A folder on it, and the gate: a file; while it is there the disk does not answer."""

    folder: Path
    gate: Path
    library: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(self.library),
            "SLOW_DISK": str(self.folder),
            "SLOW_DISK_GATE": str(self.gate),
        }

    def shut(self) -> None:
        self.gate.touch()

    def open(self) -> None:
        self.gate.unlink()


def slow_disk(at: Path) -> SlowDisk:
    if shutil.which("cc") is None:
        pytest.skip("cannot be had here: a disk that stops answering needs cc")
    (at / "slow.c").write_text(SOURCE)
    library, folder = at / "slow.so", at / "disk"
    folder.mkdir()
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, at / "slow.c", "-ldl"], check=True)
    return SlowDisk(folder.resolve(), at / "gate", library)
