"""OSWorld's own getters and metrics, as desktop-env has them.

Knows nothing of processes and limits: it runs where it may fail, hang and write.
"""

import base64
import importlib
import importlib.abc
import importlib.machinery
import json
import logging
import math
import pathlib
import sys
import types

# What desktop-env imports and no task that is carried needs. easyocr brings torch, numba brings
# llvm, pydrive needs Google's credentials; borb and acoustid are imported and not called.
ABSENT = {"acoustid", "borb", "easyocr", "numba", "pydrive"}

PORTS = {"server_port": 5000, "chromium_port": 9222, "vlc_port": 8080}


class NotCarried(Exception):
    """The check needs something that the sidecar leaves out, or asks for what does not exist."""


# What was called of them. Many a metric takes any exception for a score of 0.
CALLED = []


def absent(package, name):
    def missing(*_, **__):
        CALLED.append(f"{package}.{name}")
        raise NotCarried(f"{package}.{name} is not part of the sidecar")

    return missing


class AbsentModule(types.ModuleType):
    """Can be imported from; what comes of it cannot be called."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return absent(self.__name__, name)


def compiled(*arguments, **_):
    """numba's decorators: the function as it is written, which says the same, slower."""
    if len(arguments) == 1 and callable(arguments[0]):
        return arguments[0]
    return lambda function: function


def vectorized(*arguments, **_):
    import numpy

    return lambda function: numpy.vectorize(function)


class AbsentPackages(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ABSENT:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return AbsentModule(spec.name)

    def exec_module(self, module):
        if module.__name__ == "numba":
            module.jit = module.njit = module.stencil = compiled
            module.vectorize = vectorized
            # Those that fill an argument: none that a metric comes by.
            module.guvectorize = lambda *_, **__: lambda function: absent("numba", function.__name__)


def load():
    """Imports all that evaluations need; seconds. Gives the packages of getters and metrics."""
    sys.meta_path.insert(0, AbsentPackages())
    # Its messages are for the log, and some hold whole files.
    logging.disable(logging.INFO)
    # The list of public suffixes that the package brings, not the one on the web.
    tldextract = importlib.import_module("tldextract")
    tldextract.extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    # Threads would not survive the fork of an evaluation.
    importlib.import_module("cv2").setNumThreads(1)
    importlib.import_module("desktop_env.controllers.python")
    hear()
    getters = importlib.import_module("desktop_env.evaluators.getters")
    metrics = importlib.import_module("desktop_env.evaluators.metrics")
    return getters, metrics


def hear():
    """What `compare_audios` calls imports itself when it is called. It has to fail here: two sounds
    that cannot be loaded are equal to that metric."""
    import librosa
    import numpy

    sound = librosa.resample(numpy.zeros(4410), orig_sr=44100, target_sr=22050)
    librosa.util.normalize(librosa.feature.mfcc(y=sound, sr=22050), axis=1)


class Env:
    """What getters ask of desktop-env's environment: a desktop at an address."""

    def __init__(self, address, folder):
        from desktop_env.controllers.python import PythonController

        self.vm_ip = address
        self.cache_dir = str(folder)
        self.current_use_proxy = False
        for name, port in PORTS.items():
            setattr(self, name, port)
        self.controller = PythonController(address, self.server_port)

    @property
    def vm_platform(self):
        return self.controller.get_vm_platform()

    @property
    def vm_screen_size(self):
        return self.controller.get_vm_screen_size()


class Evaluation:
    """One evaluation in its own scratch folder."""

    def __init__(self, modules, folder, address):
        self.getters, self.metrics = modules
        self.folder = pathlib.Path(folder)
        self.address = address

    def answer(self, request):
        """The answer to a request; raises what OSWorld's code raises."""
        answer = self.carry_out(request)
        if CALLED:
            raise NotCarried(f"{CALLED[0]} is not part of the sidecar")
        return answer

    def carry_out(self, request):
        cache = self.folder / "cache"
        cache.mkdir()
        for file in request.get("files", []):
            write_file(file, cache)
        if request["do"] == "score":
            arguments = []
            for role in ["result", "expected"]:
                if role in request:
                    arguments.append(lay_down(request[role], self.folder / role))
            return {"score": self.score(request["metric"], arguments, request["options"])}
        env = Env(self.address, cache)
        return {"found": self.take_up(self.get(request["getter"], env))}

    def score(self, name, arguments, options):
        metric = getattr(self.metrics, name, None)
        if not callable(metric):
            raise NotCarried(f"desktop-env has no metric called {name}")
        score = metric(*arguments, **options)
        if score is None:
            raise TypeError(f"{name} gave no score")
        score = float(score)
        if not math.isfinite(score):
            raise ValueError(f"{name} gave {score}")
        return score

    def get(self, written, env):
        getter = getattr(self.getters, f"get_{written['type']}", None)
        if not callable(getter):
            raise NotCarried(f"desktop-env has no getter called {written['type']}")
        return getter(env, written)

    def take_up(self, value):
        """What a getter gave: paths of files in the scratch folder become the files."""
        if isinstance(value, str):
            path = pathlib.Path(value)
            # A text that is no path may be too long for one.
            is_file = len(value) < 4096 and "\0" not in value and self.holds(path)
            if is_file:
                content = base64.b64encode(path.read_bytes()).decode()
                return {"file": {"name": path.name, "bytes": content}}
        if isinstance(value, list) and any(isinstance(one, str) and self.holds(one) for one in value):
            return {"many": [self.take_up(one) for one in value]}
        return {"value": json.loads(json.dumps(value, default=plain, allow_nan=False))}

    def holds(self, path):
        path = pathlib.Path(path)
        try:
            return path.is_absolute() and path.is_file() and self.folder in path.parents
        except OSError:
            return False


def plain(value):
    """Numbers of numpy and sets as JSON has them; what else there is has no place in it."""
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"a getter gave {type(value).__name__}, which is neither file nor value")


def write_file(file, folder):
    name = pathlib.PurePath(file["name"]).name
    if not name or name in (".", ".."):
        raise ValueError(f"{file['name']!r} is no name of a file")
    path = folder / name
    path.write_bytes(base64.b64decode(file["bytes"]))
    return path


def lay_down(found, folder):
    """What was found as metrics take it: a value, a path, a list of those."""
    folder.mkdir(exist_ok=True)
    if "value" in found:
        return found["value"]
    if "file" in found:
        file = found["file"]
        path = write_file(file, folder)
        for other in file.get("beside", []):
            write_file(other, folder)
        return str(path)
    # Each in a folder of its own: two may have one name.
    return [lay_down(one, folder / str(i)) for i, one in enumerate(found["many"])]
