"""The programs of real-programs/, for other scripts."""

import glob
import os
import shutil
import subprocess
import tomllib

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../real-programs")
SEED = "1"


def load():
    """The data of each program by its name, with the folder of its generator."""
    found = {}
    for path in sorted(glob.glob(os.path.join(FOLDER, "*/program.toml"))):
        with open(path, "rb") as file:
            data = tomllib.load(file)
        found[data["name"]] = {**data, "folder": os.path.dirname(path)}
    return found


def is_installed(program):
    return all(shutil.which(need) for need in program["needs"])


def environment(program, folder):
    """What a program gets of the user's environment, and its own variables."""
    kept = {name: value for name, value in os.environ.items() if name == "PATH" or name.startswith("HEAPMARK_")}
    own = {name: str(value) for name, value in program.get("environment", {}).items()}
    return {**kept, "HOME": folder, "LC_ALL": "C", **own}


def ran(words, **how):
    """Runs a command to its end; an error has the last words of its stderr."""
    ended = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip()
        raise RuntimeError(f"{' '.join(words[:3])} failed ({ended.returncode}): {said[-300:]}")
    return ended.stdout.decode()


def generate(program, size, folder):
    """Writes the program's input of this size into the folder."""
    for name in os.listdir(program["folder"]):
        if name != "program.toml":
            shutil.copy(os.path.join(program["folder"], name), folder)
    ran([*program["generate"], SEED, str(size)], cwd=folder, env=environment(program, folder))
