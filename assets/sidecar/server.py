"""Carries out evaluations with OSWorld's own code: requests and answers are lines of JSON.

    python server.py ISOLATION NETWORK RELAYS

ISOLATION is "namespaces" or "none", NETWORK "none" or "shared", RELAYS the folder that holds what
leads to desktops, which no evaluation may see. All is imported once; each request
runs in a process forked from this one. The first line says that it is ready, or why it is not.
It ends with its input.
"""

import importlib.metadata
import json
import os
import platform
import selectors
import signal
import sys

import child


def probe(setting):
    """Why evaluations cannot be held apart here; none if they can."""
    limits = {"wall_s": 20, "cpu_s": 20, "memory_mb": 512, "scratch_mb": 1, "processes": 4}
    request = {"id": 0, "do": "score", "limits": limits}
    read, write = os.pipe()
    pid = fork_watcher(request, lambda *_: {"score": 1.0}, setting, write)
    os.close(write)
    with open(read, "rb") as answer:
        text = answer.read().decode()
    os.waitpid(pid, 0)
    return None if text == '{"score": 1.0}' else text


def fork_watcher(request, evaluate, setting, write):
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        answer = child.Watcher(request, evaluate, setting).run()
        status = 0
    except BaseException as error:
        answer = json.dumps({"died": f"its watcher: {type(error).__name__}: {error}"}).encode()
    try:
        child.write_all(write, answer)
    finally:
        os._exit(status)


class Server:
    def __init__(self, evaluate, setting, requests, answers):
        self.evaluate = evaluate
        self.setting = setting
        self.requests = requests
        self.answers = answers
        self.selector = selectors.DefaultSelector()
        self.line = bytearray()

    def run(self):
        os.set_blocking(self.requests, False)
        self.selector.register(self.requests, selectors.EVENT_READ, self.read_requests)
        while True:
            for key, _ in self.selector.select():
                if key.data() == "end":
                    return

    def read_requests(self):
        try:
            part = os.read(self.requests, 1 << 20)
        except BlockingIOError:
            return None
        if not part:
            return "end"
        start = len(self.line)
        self.line += part
        # Only what is new is searched: a request may hold a film.
        while (end := self.line.find(b"\n", start)) >= 0:
            line, self.line, start = self.line[:end], self.line[end + 1 :], 0
            self.begin(json.loads(line))
        return None

    def begin(self, request):
        read, write = os.pipe()
        pid = fork_watcher(request, self.evaluate, self.setting, write)
        os.close(write)
        answer = bytearray()

        def take():
            part = os.read(read, 1 << 20)
            answer.extend(part)
            if not part:
                self.selector.unregister(read)
                os.close(read)
                os.waitpid(pid, 0)
                self.say(request["id"], answer)

        self.selector.register(read, selectors.EVENT_READ, take)

    def say(self, number, answer):
        # Not taken apart: it may be as large as a file.
        answer = bytes(answer) or b'{"died": "its watcher was killed"}'
        child.write_all(self.answers, b'{"id": %d, "answer": %s}\n' % (number, answer))


def main():
    setting = child.Setting(*sys.argv[1:])
    # The protocol's own descriptor, which no evaluation inherits a use of: what prints, prints to
    # the log.
    answers = os.dup(1)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    modules = None

    def evaluate(request, scratch, address):
        return osworld.Evaluation(modules, scratch, address).answer(request)

    try:
        import osworld

        reason = probe(setting)
        if reason is None:
            modules = osworld.load()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    hello = {"refused": reason} if reason else {
        "ready": importlib.metadata.version("desktop-env"),
        "python": platform.python_version(),
    }
    child.write_all(answers, json.dumps(hello).encode() + b"\n")
    if reason is None:
        Server(evaluate, setting, os.dup(0), answers).run()


if __name__ == "__main__":
    main()
