"""One evaluation in a process of its own, with limits, and who watches over it.

The watcher is forked from the server and forks the evaluation. In namespaces of its own the
evaluation sees neither network (but what the engine relays), nor processes, nor files of others;
its scratch folder is memory and goes with it. Where the engine does without them, it is held by
limits alone.
"""

import asyncio
import ctypes
import dataclasses
import errno
import fcntl
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback

LIBC = ctypes.CDLL(None, use_errno=True)

# linux/sched.h, sys/mount.h, linux/prctl.h, linux/sockios.h, linux/if.h
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER = 0x00020000, 0x08000000, 0x10000000
CLONE_NEWPID, CLONE_NEWNET, CLONE_THREAD = 0x20000000, 0x40000000, 0x00010000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE = 1, 2, 4, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 22, 24, 38
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
CAPABILITY_VERSION = 0x20080522
SECCOMP_MODE_FILTER = 2
CLONE3 = 435
# linux/audit.h; clone; fork and vfork where there are, unshare (asm/unistd.h).
SYSTEM_CALLS = {"x86_64": (0xC000003E, 56, [57, 58, 272]), "aarch64": (0xC00000B7, 220, [97])}

# Between two looks at an evaluation; its memory is counted at each.
WATCH_S = 0.05
# What an evaluation may leave to be read after its end.
DRAIN_BYTES = 1 << 16


def checked(result, what):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def enter_namespaces(network):
    """Users, processes and IPC of its own; `network` is "none" or "shared"."""
    uid, gid = os.getuid(), os.getgid()
    flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWIPC
    if network == "none":
        flags |= CLONE_NEWNET
    checked(LIBC.unshare(flags), "unshare")
    for name, text in [("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")]:
        pathlib.Path(f"/proc/self/{name}").write_text(text)
    if network == "none":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def mount_scratch(scratch_mb, relays):
    """A temporary folder of its own; nothing of others' is left to be seen."""
    checked(LIBC.unshare(CLONE_NEWNS), "unshare")
    checked(LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount /")
    wanted = [("/tmp", 0, f"size={scratch_mb}m"), ("/dev/shm", 0, "size=64m")]
    wanted.append((relays, MS_RDONLY, "size=4k"))
    for path, flags, data in wanted:
        flags |= MS_NOSUID | MS_NODEV
        checked(LIBC.mount(b"tmpfs", path.encode(), b"tmpfs", flags, data.encode()), f"mount {path}")


def drop_capabilities():
    for capability in range(64):
        LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = struct.pack("Ii", CAPABILITY_VERSION, 0)
    checked(LIBC.capset(header, struct.pack("6I", 0, 0, 0, 0, 0, 0)), "capset")


def forbid_processes():
    """From here on no process is begun, only threads: what a metric runs was written by an agent,
    and no other limit on processes holds for the superuser."""
    machine = os.uname().machine
    if machine not in SYSTEM_CALLS:
        return
    audit_arch, clone, refused = SYSTEM_CALLS[machine]
    load, equal, at_least, has_bit, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, refuse, unknown = 0x7FFF0000, 0x00050000 | errno.EAGAIN, 0x00050000 | errno.ENOSYS
    # Where to go: over so many lines if it is so, over so many if not (linux/filter.h).
    program = [
        (load, 0, 0, 4),
        (equal, 1, 0, audit_arch),
        (answer, 0, 0, refuse),
        (load, 0, 0, 0),
        # The x32 ABI numbers the same calls anew.
        (at_least, 0, 1, 0x40000000),
        (answer, 0, 0, refuse),
        # glibc asks clone instead, whose flags can be looked at.
        (equal, 0, 1, CLONE3),
        (answer, 0, 0, unknown),
    ]
    for number in refused:
        program += [(equal, 0, 1, number), (answer, 0, 0, refuse)]
    program += [
        (equal, 0, 3, clone),
        (load, 0, 0, 16),
        (has_bit, 1, 0, CLONE_THREAD),
        (answer, 0, 0, refuse),
        (answer, 0, 0, allow),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    head = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    checked(LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, head, 0, 0), "seccomp")


def set_limits(limits):
    megabyte = 1 << 20
    cpu_s = limits["cpu_s"]
    wanted = {
        # One second from the polite signal to the other one, which the first process of a
        # namespace heeds.
        resource.RLIMIT_CPU: (cpu_s, cpu_s + 1),
        # The watcher counts what is used; this stops what would be used at one stroke.
        resource.RLIMIT_DATA: 2 * (2 * limits["memory_mb"] * megabyte,),
        resource.RLIMIT_FSIZE: 2 * (limits["scratch_mb"] * megabyte,),
        resource.RLIMIT_CORE: (0, 0),
        # Not heeded for the superuser, whose processes only the watcher counts.
        resource.RLIMIT_NPROC: 2 * (limits["processes"],),
        resource.RLIMIT_NOFILE: (1024, 1024),
    }
    for which, (soft, hard) in wanted.items():
        ceiling = resource.getrlimit(which)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        resource.setrlimit(which, (soft, hard))


def limit_of(error):
    """The limit that an exception tells of, if any."""
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, OSError) and error.errno in (errno.EFBIG, errno.ENOSPC, errno.EDQUOT):
        return "file size"
    return None


def told(error):
    """An exception as an answer: its class, its text and the last line it passed of its code."""
    limit = limit_of(error)
    if limit:
        return {"limit": limit, "text": str(error)}
    if type(error).__name__ == "NotCarried":
        return {"absent": str(error)}
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return {"raised": type(error).__name__, "text": f"{error}{where}"[:2000]}


@dataclasses.dataclass
class Setting:
    """How all evaluations are held: `isolation` is "namespaces" or "none", `network` "none" or
    "shared"; `relays` is the folder that holds what leads to desktops."""

    isolation: str
    network: str
    relays: str


class Watcher:
    """A process that runs one evaluation and says what came of it."""

    def __init__(self, request, evaluate, setting):
        self.request = request
        self.evaluate = evaluate
        self.isolation = setting.isolation
        self.network = setting.network
        self.relays = setting.relays
        self.limits = request["limits"]
        self.deadline = time.monotonic() + self.limits["wall_s"]
        self.answer = bytearray()
        # All of 127/8 is this machine; where its network is shared each has an address of its own.
        number = request["id"] % 65000 + 1
        is_alone = self.isolation == "namespaces" and self.network == "none"
        self.address = "127.0.0.1" if is_alone else f"127.83.{number >> 8}.{number & 255}"

    def run(self):
        """The answer as bytes of JSON."""
        die_with_parent()
        if self.isolation == "namespaces":
            enter_namespaces(self.network)
        listeners = self.listen()
        self.read, write = os.pipe()
        scratch = None
        if self.isolation == "none":
            scratch = tempfile.mkdtemp(prefix="arpo-eval-")
        self.pid = os.fork()
        if self.pid == 0:
            for listener, _ in listeners:
                listener.close()
            os._exit(self.run_evaluation(write, scratch))
        os.close(write)
        os.set_blocking(self.read, False)
        try:
            return asyncio.run(self.watch(listeners))
        finally:
            self.kill()
            if scratch:
                shutil.rmtree(scratch, ignore_errors=True)

    def listen(self):
        """A socket for each port that the engine relays."""
        folder = self.request.get("relay")
        listeners = []
        for path in sorted(pathlib.Path(folder).glob("*.sock")) if folder else []:
            listeners.append((socket.create_server((self.address, int(path.stem))), str(path)))
        return listeners

    def run_evaluation(self, write, scratch):
        """In the evaluation's own process."""
        try:
            die_with_parent()
            os.setsid()
            quiet = os.open("/dev/null", os.O_RDONLY)
            os.dup2(quiet, 0)
            # What it prints is for the log.
            os.dup2(2, 1)
            if self.isolation == "namespaces":
                mount_scratch(self.limits["scratch_mb"], self.relays)
                drop_capabilities()
                scratch = "/tmp"
            for name in ["HOME", "TMPDIR"]:
                os.environ[name] = scratch
            tempfile.tempdir = scratch
            os.chdir(scratch)
            set_limits(self.limits)
            if self.request["do"] == "score":
                checked(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
                forbid_processes()
            try:
                answer = self.evaluate(self.request, scratch, self.address)
            except BaseException as error:
                answer = told(error)
            sys.stdout.flush()
            write_all(write, json.dumps(answer).encode())
            return 0
        except BaseException:
            traceback.print_exc()
            return 1

    async def watch(self, listeners):
        loop = asyncio.get_running_loop()
        loop.add_reader(self.read, self.drain)
        servers = [await asyncio.start_server(joining(path), sock=sock) for sock, path in listeners]
        try:
            return await self.wait()
        finally:
            loop.remove_reader(self.read)
            for server in servers:
                server.close()

    async def wait(self):
        used_mb = 0
        while True:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.pid = None
                self.drain()
                return self.ended(status, usage.ru_utime + usage.ru_stime)
            if time.monotonic() > self.deadline:
                return answer_limit("wall clock", f"{self.limits['wall_s']} s")
            processes = family(self.pid)
            if len(processes) > self.limits["processes"]:
                return answer_limit("processes", f"{len(processes)} processes")
            used_mb = sum(map(private_mb, processes))
            if used_mb > self.limits["memory_mb"]:
                return answer_limit("memory", f"{used_mb} MB")
            await asyncio.sleep(WATCH_S)

    def drain(self):
        try:
            while part := os.read(self.read, DRAIN_BYTES):
                self.answer += part
        except BlockingIOError:
            pass

    def ended(self, status, cpu_s):
        if cpu_s >= self.limits["cpu_s"] and os.WIFSIGNALED(status):
            return answer_limit("cpu time", f"{self.limits['cpu_s']} s")
        if os.WIFSIGNALED(status):
            return json.dumps({"died": signal.Signals(os.WTERMSIG(status)).name}).encode()
        if status != 0 or not self.answer:
            return json.dumps({"died": f"it ended with {os.WEXITSTATUS(status)}"}).encode()
        return bytes(self.answer)

    def kill(self):
        """The evaluation and all that it started: the namespace ends with its first process."""
        if self.pid is None:
            return
        try:
            if self.isolation == "none":
                os.killpg(self.pid, signal.SIGKILL)
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)


def answer_limit(limit, text):
    return json.dumps({"limit": limit, "text": text}).encode()


def write_all(descriptor, content):
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def joining(path):
    """A server's callback that joins each connection to the Unix socket at `path`."""

    async def pump(reader, writer):
        try:
            while part := await reader.read(DRAIN_BYTES):
                writer.write(part)
                await writer.drain()
            writer.write_eof()
        except OSError:
            writer.close()

    async def join(reader, writer):
        try:
            other_reader, other_writer = await asyncio.open_unix_connection(path)
        except OSError:
            # As where nothing listens on the port.
            writer.transport.abort()
            return
        await asyncio.gather(pump(reader, other_writer), pump(other_reader, writer))
        other_writer.close()
        writer.close()

    return join


def family(pid):
    """A process and what came of it; orphans in a namespace are its first process's again."""
    found, waiting = [], [str(pid)]
    while waiting:
        one = waiting.pop()
        found.append(one)
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                children = pathlib.Path(f"/proc/{one}/task/{task}/children").read_text()
                waiting += children.split()
        except OSError:
            continue
    return found


def private_mb(pid):
    """Memory that a process shares with nobody."""
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return int(re.search(r"Private_Dirty:\s+(\d+)", text)[1]) // 1024
