#!/usr/bin/env python3
"""Tries an image: `vm-try.py FOLDER APPEND MEMORY_MB [SCREEN]`. Boots it, waits for the line that
says `ready`, looks at the picture, saves the machine, and looks whether a fresh process goes on
from there with the same picture and reacts to a click. Ends with 1 and what went wrong where it does not.

Emulates always: what works emulated works with KVM, which not every machine has. Does without the
sandbox around QEMU that arpo's provider builds: nothing foreign runs here.
"""

import array
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Seconds; a loaded machine with two cores needs a tenth.
BOOT_S = 300
COMMAND_S = 60
DESKTOP = bytes.fromhex("35506b")


class Failed(Exception):
    pass


def overlay(path, base):
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", base, path]
    subprocess.run(command, check=True, timeout=COMMAND_S)


class Machine:
    """One QEMU over an overlay of its own in `folder`."""

    def __init__(self, folder, image, base, append, memory_mb, screen, incoming=None):
        self.folder = folder
        folder.mkdir()
        overlay(folder / "overlay.qcow2", base)
        width, height = screen.split("x")
        # What lies in the folder that it runs in is named without it: such a name has no comma, and
        # a socket's is short.
        disk = "discard=unmap,cache.no-flush=on,file.driver=file,file.filename=overlay.qcow2"
        arguments = ["-nodefaults", "-no-user-config", "-M", "pc"]
        arguments += ["-accel", "tcg,thread=multi,tb-size=256", "-cpu", "Nehalem", "-smp", "1"]
        arguments += ["-m", memory_mb, "-display", "none", "-no-reboot"]
        arguments += ["-device", f"virtio-vga,xres={width},yres={height},edid=on"]
        for device in ("virtio-tablet-pci", "virtio-keyboard-pci", "virtio-rng-pci"):
            arguments += ["-device", device]
        arguments += ["-device", "virtio-serial-pci"]
        arguments += ["-chardev", "socket,path=control,server=on,wait=off,id=control"]
        arguments += ["-device", "virtserialport,chardev=control,name=arpo.control"]
        arguments += ["-blockdev", f"driver=qcow2,node-name=d0,{disk}"]
        arguments += ["-device", "virtio-blk-pci,drive=d0"]
        arguments += ["-netdev", "user,id=n0,restrict=on"]
        arguments += ["-device", "virtio-net-pci,netdev=n0,romfile="]
        arguments += ["-chardev", "file,path=serial,id=serial", "-serial", "chardev:serial"]
        arguments += ["-qmp", "unix:qmp,server=on,wait=off", "-sandbox"]
        arguments += ["on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"]
        arguments += ["-kernel", str(image / "vmlinux"), "-initrd", str(image / "initrd.cpio")]
        arguments += ["-append", append]
        opened = []
        if incoming:
            opened.append(os.open(incoming, os.O_RDONLY))
            arguments += ["-incoming", f"fd:{opened[0]}"]
        with open(folder / "words", "wb") as words:
            self.process = subprocess.Popen(
                # Nothing is left of a trial that is killed.
                ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", *arguments],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                pass_fds=opened,
            )
        for descriptor in opened:
            os.close(descriptor)
        try:
            self.connect()
        except BaseException:
            self.end()
            raise

    def connect(self):
        end = time.monotonic() + COMMAND_S
        self.qmp = socket.socket(socket.AF_UNIX)
        self.qmp.settimeout(COMMAND_S)
        at = os.open(self.folder, os.O_PATH)
        try:
            # As short, however long the folder's name is.
            while self.qmp.connect_ex(f"/proc/self/fd/{at}/qmp"):
                self.check(end, "QMP did not open")
        finally:
            os.close(at)
        self.lines = self.qmp.makefile("rb")
        self.lines.readline()
        self.ask("qmp_capabilities")

    def check(self, end, what):
        """Fails past `end` or when the machine is gone; waits a moment otherwise."""
        is_gone = self.process.poll() is not None
        if is_gone or time.monotonic() > end:
            reason = f"QEMU ended with {self.process.returncode}" if is_gone else what
            words = (self.folder / "words").read_text(errors="replace")
            raise Failed(f"{reason}\n{words}\n{self.serial()[-4000:]}")
        time.sleep(0.05)

    def ask(self, command, **arguments):
        descriptors = arguments.pop("descriptors", [])
        question = {"execute": command, "arguments": arguments}
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        self.qmp.sendmsg([json.dumps(question).encode()], ancillary if descriptors else [])
        while True:
            answer = json.loads(self.lines.readline() or b'{"error": "QMP closed"}')
            if "error" in answer:
                raise Failed(f"{command}: {answer['error']}")
            if "return" in answer:
                return answer["return"]

    def serial(self):
        path = self.folder / "serial"
        text = path.read_text(errors="replace") if path.exists() else ""
        return re.sub(r"[^\t\n\x20-\x7e]", "", text)

    def wait_for(self, stage):
        end = time.monotonic() + BOOT_S
        while f"ARPO-BOOT {stage} " not in self.serial():
            if "ARPO-FAIL" in self.serial():
                time.sleep(1)
                end = 0
            self.check(end, f"the machine was not {stage} within {BOOT_S} s")

    def picture(self):
        path = self.folder / "picture.ppm"
        self.ask("screendump", filename=str(path))
        return path.read_bytes()

    def click(self, x, y, button):
        size, _ = pixels(self.picture())
        places = {"x": x * 32767 // (size[0] - 1), "y": y * 32767 // (size[1] - 1)}
        move = [{"type": "abs", "data": {"axis": a, "value": v}} for a, v in places.items()]
        press = [{"type": "btn", "data": {"down": True, "button": button}}]
        release = [{"type": "btn", "data": {"down": False, "button": button}}]
        for events in (move, press, release):
            self.ask("input-send-event", events=events)

    def save(self, path):
        """Stops the machine and writes its memory."""
        self.ask("stop")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        # By a descriptor, as every QEMU can; `file:` is new in 8.2.
        self.ask("getfd", fdname="memory", descriptors=[descriptor])
        os.close(descriptor)
        self.ask("migrate", uri="fd:memory")
        end = time.monotonic() + COMMAND_S
        while (status := self.ask("query-migrate")).get("status") != "completed":
            if status.get("status") in ("failed", "cancelled"):
                raise Failed(f"saving the memory {status}")
            self.check(end, "saving the memory took too long")

    def resume(self):
        end = time.monotonic() + COMMAND_S
        while self.ask("query-status")["status"] == "inmigrate":
            self.check(end, "loading the memory took too long")
        self.ask("cont")
        while not self.ask("query-status")["running"]:
            self.check(end, "the machine did not go on")

    def end(self):
        self.process.kill()
        self.process.wait()


def changed(before, after):
    """Left, top, right, bottom of what differs between two binary PPMs of one size."""
    size, before = pixels(before)
    _, after = pixels(after)
    width = 3 * size[0]
    rows = [y for y in range(size[1]) if before[y * width :][:width] != after[y * width :][:width]]
    columns = [
        x // 3
        for y in rows
        for x in range(0, width, 3)
        if before[y * width + x :][:3] != after[y * width + x :][:3]
    ]
    return min(columns), rows[0], max(columns), rows[-1]


def pixels(picture):
    _, size, _, data = picture.split(b"\n", 3)
    return tuple(map(int, size.split())), memoryview(data)


def check_desktop(picture):
    """The desktop has a colour of its own (assets/desktop/template.sh), and nothing is on it."""
    _, data = pixels(picture)
    sample = [bytes(data[at : at + 3]) for at in range(0, len(data), 3 * 97)]
    if sample.count(DESKTOP) < 0.95 * len(sample):
        raise Failed(f"the picture is not the desktop's: it begins with {sample[:4]}")


def check_menu(machine, before):
    """A click of the right button opens the desktop's menu there: input goes where it should."""
    size, _ = pixels(before)
    x, y = size[0] // 3, size[1] // 3
    machine.click(x, y, "right")
    end = time.monotonic() + COMMAND_S
    while (after := machine.picture()) == before:
        machine.check(end, "a click of the right button changed nothing")
    left, top, _, _ = changed(before, after)
    if abs(left - x) > 8 or abs(top - y) > 8:
        raise Failed(f"a click at {x}, {y} opened a menu at {left}, {top}")


def attempt(folder, image, append, memory_mb, screen):
    begun = time.monotonic()
    first = Machine(folder / "first", image, image / "disk.qcow2", append, memory_mb, screen)
    try:
        first.wait_for("ready")
        ready_s = time.monotonic() - begun
        before = first.picture()
        check_desktop(before)
        first.save(folder / "memory")
    finally:
        first.end()
    size_mb = (folder / "memory").stat().st_size >> 20
    begun = time.monotonic()
    base = folder / "first" / "overlay.qcow2"
    second = Machine(
        folder / "second", image, base, append, memory_mb, screen, folder / "memory"
    )
    try:
        second.resume()
        resumed_s = time.monotonic() - begun
        if second.picture() != before:
            raise Failed("a fresh process shows another picture than the one it was saved from")
        check_menu(second, before)
        menu_s = time.monotonic() - begun
    finally:
        second.end()
    stages = re.findall(r"ARPO-BOOT (\S+) (\S+)", (folder / "first" / "serial").read_text())
    print("vm-image:        " + ", ".join(" ".join(stage) for stage in stages), file=sys.stderr)
    print(
        f"vm-image:        ready after {ready_s:.1f} s, memory {size_mb} MB, "
        f"a fresh process runs after {resumed_s:.1f} s and reacts after {menu_s:.1f} s",
        file=sys.stderr,
    )


def main():
    image, append, memory_mb = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    screen = sys.argv[4] if len(sys.argv) > 4 else "1280x720"
    folder = Path(tempfile.mkdtemp(prefix="arpo-try."))
    try:
        attempt(folder, image, append, memory_mb, screen)
    except (Failed, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"vm-image: {error}")
    finally:
        if "ARPO_KEEP" not in os.environ:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
