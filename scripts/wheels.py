#!/usr/bin/env python3
"""wheels.py [ARCH]: makes in target/dist/ the wheel of the program and, for this machine's processor, that of the allocators.

The program runs on glibc 2.28 and newer; what it preloads into other programs, and the allocators, on 2.17 (floor.sh). Each file's
symbols are read, and sizes compared with what PyPI's users should have to wait for. Needs network, for the tools of wheels.txt and
for crates, and for another processor its cross compiler and `rustup target add`.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "target/dist"
PROGRAM_GLIBC, PRELOADED_GLIBC = "2.28", "2.17"
PROGRAM_MIB, ALLOCATORS_MIB = 20, 15
PRELOADED = "libheapmark_recorder.so witness.so time-in-malloc.so sizes.so reach.so litter.so".split()
# Where the text of each licence is in its crate. Hoard (GPL) and scudo (a distribution's file) are not among them.
ALLOCATORS = {
    "jemalloc": ["jemalloc/COPYING"],
    "mimalloc2": ["c_src/mimalloc/LICENSE"],
    "mimalloc3": ["c_src/mimalloc3/LICENSE"],
    "snmalloc": [],
    "rpmalloc": ["rpmalloc/LICENSE"],
    "tcmalloc": ["c_src/tcmalloc/LICENSE", "c_src/abseil-cpp/LICENSE"],
    "dlmalloc": ["libffi/src/dlmalloc.c"],
    "hardened_malloc": ["vendor/hardened-malloc/LICENSE"],
}


def run(*command, **more):
    environment = {**os.environ, **more.pop("environment", {})}
    return subprocess.run([str(word) for word in command], check=True, text=True, cwd=ROOT, env=environment, **more).stdout


def tools():
    python = DIST / "python/bin/python"
    if not python.exists():
        run(sys.executable, "-m", "venv", DIST / "python")
    run(python, "-m", "pip", "install", "--quiet", "--requirement", "scripts/wheels.txt")
    return python


def compilers(arch, glibc, python):
    """What makes programs that run on that glibc, and libraries that run on the older one."""
    folder = lambda floor: DIST / f"glibc-{floor}-{arch}"
    for floor, older in ((PRELOADED_GLIBC, []), (PROGRAM_GLIBC, [folder(PRELOADED_GLIBC)])):
        run("scripts/floor.sh", arch, floor, folder(floor), *older, environment={"PYTHON": str(python)})
    folder = folder(glibc)
    return {"CC": str(folder / "cc"), "CXX": str(folder / "c++")}


def check_glibc(file, at_most):
    """Fails if a file asks for symbols of a newer glibc."""
    numbers = lambda version: [int(part) for part in version.split(".")]
    names = re.findall(r"GLIBC_([0-9.]+)", run("objdump", "-T", file, stdout=subprocess.PIPE))
    newest = max(names, key=numbers, default="0")
    if numbers(newest) > numbers(at_most):
        sys.exit(f"wheels: {file} needs glibc {newest}: at most {at_most} is wanted")


def check_size(wheel, most_mib):
    mib = wheel.stat().st_size / 2**20
    print(f"{wheel}: {mib:.1f} MiB")
    if mib > most_mib:
        sys.exit(f"wheels: {wheel} has more than {most_mib} MiB")


def program(arch, python):
    triple = f"{arch}-unknown-linux-gnu"
    environment = compilers(arch, PROGRAM_GLIBC, python)
    linker = f"CARGO_TARGET_{triple.upper().replace('-', '_')}_LINKER"
    environment |= {linker: environment["CC"], "CARGO_TARGET_DIR": str(DIST / "cargo")}
    tag = f"manylinux_{PROGRAM_GLIBC.replace('.', '_')}"
    run(python, "-m", "maturin", "build", "--release", "--locked", "--target", triple, "--compatibility", tag, "--out", DIST, environment=environment)
    built = DIST / "cargo" / triple / "release"
    outs = sorted(built.glob("build/heapmark-build-*/out/witness.so"), key=lambda file: file.stat().st_mtime)
    check_glibc(built / "heapmark", PROGRAM_GLIBC)
    check_glibc(outs[-1].with_name("heapmark-guest"), PROGRAM_GLIBC)
    for name in PRELOADED:
        check_glibc(outs[-1].with_name(name), PRELOADED_GLIBC)
    version = json.loads(run("cargo", "metadata", "--locked", "--no-deps", "--format-version", "1", stdout=subprocess.PIPE))["packages"][0]["version"]
    check_size(DIST / f"heapmark-{version}-py3-none-{tag}_{arch}.whl", PROGRAM_MIB)
    return built / "heapmark", version


def licence(name, crate):
    ours = (ROOT / "LICENSE-MIT").read_text()
    if name == "snmalloc":  # its crate has only the licence's name
        return re.sub("Copyright.*", "Copyright (c) Microsoft Corporation", ours)
    files = [(crate / file).read_text() for file in ALLOCATORS[name]]
    if name == "dlmalloc":  # the head of its only file
        files = [files[0].split("* Version")[0]]
    return "\n".join(files)


def allocators(heapmark, version, arch, python):
    cache = DIST / f"cache-{arch}"
    environment = compilers(arch, PRELOADED_GLIBC, python) | {"HEAPMARK_CACHE": str(cache)}
    run(heapmark, "build", *ALLOCATORS, environment=environment)
    listed = run(heapmark, "list", "allocators", "--format", "json", environment=environment, stdout=subprocess.PIPE)
    listed = {entry["name"]: entry for entry in json.loads(listed)}
    stage = DIST / "stage"
    shutil.rmtree(stage, ignore_errors=True)
    shelf = stage / f"heapmark_allocators-{version}.data/data/lib/heapmark/libraries"
    crates = DIST / "crates"
    for name in ALLOCATORS:
        entry = listed[name]
        if entry["state"] != "ready" or entry["built"] != "built here":
            sys.exit(f"wheels: {name} is {entry['state']}")
        [folder] = {Path(file).parent for file in entry["files"]}
        shutil.copytree(folder, shelf / folder.name)
        check_glibc(shelf / folder.name / f"lib{name}.so", PRELOADED_GLIBC)
        _, crate, release = entry["origin"].split(" ")
        [source] = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")).glob(f"registry/src/*/{crate}-{release}")
        (shelf / folder.name / "LICENCE").write_text(licence(name, source))
    info = stage / f"heapmark_allocators-{version}.dist-info"
    info.mkdir()
    info.joinpath("WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: heapmark\nRoot-Is-Purelib: false\nTag: py3-none-manylinux2014_{arch}\nTag: py3-none-manylinux_2_17_{arch}\n"
    )
    licences = sorted({listed[name]["licence"] for name in ALLOCATORS})
    about = "\n".join(f"- {listed[name]['about']}: {listed[name]['licence']}" for name in ALLOCATORS)
    info.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.4\nName: heapmark-allocators\nVersion: {version}\n"
        "Summary: memory allocators that heapmark measures, built from the sources that it pins\n"
        f"License-Expression: {' AND '.join(f'({one})' if ' OR ' in one else one for one in licences)}\nRequires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n"
        f"Allocators for [heapmark](https://pypi.org/project/heapmark/), each beside its licence, its checksum and what built it:\n\n{about}\n"
    )
    run(python, "-m", "wheel", "pack", "--dest-dir", DIST, stage, stdout=subprocess.DEVNULL)
    shutil.rmtree(stage)
    [wheel] = DIST.glob(f"heapmark_allocators-{version}-*{arch}.whl")
    check_size(wheel, ALLOCATORS_MIB)


def main():
    arch = sys.argv[1] if len(sys.argv) > 1 else platform.machine()
    if len(sys.argv) > 2 or arch not in ("x86_64", "aarch64"):
        sys.exit("wheels: usage: wheels.py [x86_64 | aarch64]")
    DIST.mkdir(parents=True, exist_ok=True)
    python = tools()
    heapmark, version = program(arch, python)
    if arch == platform.machine():
        allocators(heapmark, version, arch, python)
    else:
        print(f"wheels: the allocators' wheel is made on {arch}")


main()
