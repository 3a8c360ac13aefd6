"""Start recording in a Python that was started for it, then let the program's own start-up happen.

Python runs this file before the program, because its folder is first in PYTHONPATH. It takes the
folder and the variables out again, begins to record, and imports the sitecustomize module that
would have been found without it. Any Python may meet this file, an old one or one without this
package: it must be readable for all, and keeps quiet where it can do nothing.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, import-not-found"

import os
import sys

PREFIX = "CONTENTION_LAB_RECORD_"


def take_variables():
    """Take our variables out of the environment, and give others the values they had."""
    names = [name for name in os.environ if name.startswith(PREFIX)]
    found = dict((name[len(PREFIX) :], os.environ.pop(name)) for name in names)
    if found:
        if "PYTHONPATH" in found:
            os.environ["PYTHONPATH"] = found["PYTHONPATH"]
        else:
            os.environ.pop("PYTHONPATH", None)
    take_preload(found.get("LAYER"), os.environ.get("LD_PRELOAD"))
    put_back(found.get("PLACES"))
    return found


def put_back(places):
    """Put the program's variables that ours replaced to where they were: the last ones are ours."""
    if not places:
        return
    now = list(os.environ)
    before = list(now)
    for name, _, at in (place.partition(":") for place in places.split(",")):
        if name in before:
            before.remove(name)
            before.insert(int(at), name)
    moved = [at for at in range(len(now)) if now[at] != before[at]]
    for name in before[moved[0] :] if moved else ():
        value = os.environ.pop(name)
        os.environ[name] = value


def take_preload(layer, preload):
    """Take our entry out of LD_PRELOAD, where it has not taken itself out."""
    if layer and preload == layer:
        del os.environ["LD_PRELOAD"]
    elif layer and preload and preload.startswith(layer + ":"):
        os.environ["LD_PRELOAD"] = preload[len(layer) + 1 :]


def clear_memory(found):
    """Take our variables out of the memory in which the system handed over the environment.

    That is what /proc/self/environ and `ps e` show. Nobody refers to them there any more: those
    that have another value now have been replaced. Where the system does not allow it, they stay.
    """
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        start, end = int(fields[47]), int(fields[48])
        with open("/proc/self/mem", "r+b", 0) as memory:
            memory.seek(start)
            before = memory.read(end - start)
            after = without_us(before, found)
            if len(after) == len(before):
                memory.seek(start)
                memory.write(after)
    except Exception:
        pass


def without_us(block, found):
    """Return what an environment is without us, as long as before.

    If ours are the last ones (with those of the program that we had changed), there is no gap.
    """
    values = dict((name, os.fsencode(value)) for name, value in found.items())
    path = b"PYTHONPATH=" + os.fsencode(os.path.dirname(os.path.abspath(__file__)))
    preload = b"LD_PRELOAD=" + values.get("LAYER", b"\0")
    texts = block.split(b"\0")
    in_place, last, compact = [], 0, []
    for at, text in enumerate(texts):
        instead = text
        if text.startswith((PREFIX.encode(), path, preload)):
            instead = b""
            if text.startswith(path) and "PYTHONPATH" in values:
                instead = b"PYTHONPATH=" + values["PYTHONPATH"]
            elif text.startswith(preload + b":"):
                instead = b"LD_PRELOAD=" + text[len(preload) + 1 :]
            compact.extend([instead] if instead else [])
        elif text:
            last, compact = at + 1, []
        in_place.append(instead.ljust(len(text), b"\0"))
    head = b"".join(text + b"\0" for text in in_place[:last])
    tail = b"".join(text + b"\0" for text in compact)
    return (head + tail).ljust(len(block), b"\0")


def leave_path():
    """Take this folder off the places where modules are looked for."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != here]
    for folder in list(sys.path_importer_cache):
        if os.path.abspath(folder) == here:
            del sys.path_importer_cache[folder]


def tell_parent(variables, why):
    """Note beside the trace that this process is not recorded; see `capture/unrecorded.py`."""
    path = variables.get("UNRECORDED")
    if not path or variables.get("ROLE") != "child":
        return
    try:
        version = ".".join(str(number) for number in sys.version_info[:3])
        with open(path, "a") as file:
            file.write("child process of Python %s\t%s\n" % (version, why))
    except Exception:
        pass


def begin(variables):
    """Begin to record, where this Python has what it takes."""
    home = variables.get("HOME")
    if home and sys.version_info < (3, 11):
        tell_parent(variables, "recording needs Python 3.11 or later")
    if not home or sys.version_info < (3, 11):
        return
    sys.path.append(home)  # last: it may be another environment's
    try:
        from contention_lab.capture.bootstrap import begin_recording

        begin_recording(variables)
    except Exception as error:
        if variables.get("ROLE") == "main" and sys.stderr is not None:
            sys.stderr.write("contention-lab: nothing is recorded: %s\n" % (error,))
        tell_parent(variables, str(error).partition("\n")[0])
    finally:
        sys.path.reverse()
        sys.path.remove(home)
        sys.path.reverse()


leave_path()
variables = take_variables()
if variables:
    clear_memory(variables)
begin(variables)
del sys.modules[__name__]
import sitecustomize  # noqa: E402, F401  (the one after us; the error if there is none is as without us)
