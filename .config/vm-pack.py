#!/usr/bin/env python3
"""Parts of a virtual machine's image that need more than a shell: the kernel without its
compression, the initrd, the image's description. Called by .config/vm-image.sh; needs Python alone.
"""

import json
import lzma
import os
import re
import stat
import sys
from pathlib import Path

# What a machine of QEMU's virtio devices needs; what these need in turn is found.
MODULES = """virtio_pci virtio_blk crc32c-intel crc32c_generic ext4 virtio_console virtio-rng
    virtio_input evdev virtio-gpu virtio_net""".split()
# What /init runs.
APPLETS = "cat chmod chown cp dmesg insmod ip mount poweroff sh sleep switch_root tail".split()


def vmlinux(packed, unpacked):
    """Debian's kernel is xz within a small program; unpacking it is slow in an emulated machine."""
    data = Path(packed).read_bytes()
    start = data.find(b"\xfd7zXZ\0")
    while start >= 0:
        try:
            kernel = lzma.LZMADecompressor().decompress(data[start:])
            if kernel.startswith(b"\x7fELF"):
                Path(unpacked).write_bytes(kernel)
                return
        except lzma.LZMAError:
            pass
        start = data.find(b"\xfd7zXZ\0", start + 1)
    sys.exit(f"{packed}: no kernel that is packed by xz; another way of packing is needed here")


def plain(name):
    return name.replace("-", "_")


def needs(module):
    found = re.search(rb"\0depends=([^\0]*)\0", module.read_bytes())
    return [plain(name) for name in found[1].decode().split(",") if name] if found else []


def in_order(folder):
    """The modules' files, each after those it needs. One that is built in has no file."""
    files = {plain(path.stem): path for path in sorted(Path(folder).rglob("*.ko"))}
    order = []

    def add(name):
        path = files.get(name)
        if path and path not in order:
            for other in needs(path):
                add(other)
            order.append(path)

    for name in MODULES:
        add(plain(name))
    for name in ("virtio_pci", "virtio_blk", "ext4", "virtio_gpu"):
        if files.get(name) not in order:
            sys.exit(f"{folder}: the kernel has no module {name}")
    return order


class Cpio:
    """An archive as the kernel takes it: newc, uncompressed, of root's files without times."""

    def __init__(self):
        self.parts = []
        self.count = 0

    def add(self, name, mode, data=b"", device=(0, 0)):
        self.count += 1
        name = name.encode() + b"\0"
        fields = [self.count, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0]
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
        for part in (head, data):
            self.parts.append(part + b"\0" * (-len(part) % 4))

    def write(self, path):
        self.add("TRAILER!!!", 0)
        Path(path).write_bytes(b"".join(self.parts))


def initrd(modules, busybox, init, out):
    cpio = Cpio()
    for name in ("bin", "dev", "mnt", "modules", "proc", "sys"):
        cpio.add(name, stat.S_IFDIR | 0o755)
    # The kernel opens it for the first process, before there is a devtmpfs.
    cpio.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    cpio.add("bin/busybox", stat.S_IFREG | 0o755, Path(busybox).read_bytes())
    for name in APPLETS:
        cpio.add(f"bin/{name}", stat.S_IFLNK | 0o777, b"busybox")
    order = in_order(modules)
    for path in order:
        cpio.add(f"modules/{path.name}", stat.S_IFREG | 0o644, path.read_bytes())
    names = "".join(f"{path.name}\n" for path in order)
    cpio.add("modules/order", stat.S_IFREG | 0o644, names.encode())
    cpio.add("init", stat.S_IFREG | 0o755, Path(init).read_bytes())
    cpio.write(out)


def describe(packages, out, *pairs):
    """Writes image.json whole or not at all; `pairs` are KEY=VALUE, numbers as such."""
    image = {"format": 1}
    for pair in pairs:
        key, _, value = pair.partition("=")
        image[key] = int(value) if value.isdecimal() and key != "key" else value
    lines = Path(packages).read_text().splitlines()
    image["packages"] = dict(sorted(line.split(" ", 1) for line in lines))
    draft = Path(out + ".draft")
    draft.write_text(json.dumps(image, indent=1) + "\n")
    os.replace(draft, out)


if __name__ == "__main__":
    {"vmlinux": vmlinux, "initrd": initrd, "describe": describe}[sys.argv[1]](*sys.argv[2:])
