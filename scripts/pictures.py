#!/usr/bin/env python3
"""Draws the pictures of README and of the tutorial, each light and dark: what the terminal prints of a run of `heapmark try`,
the page of a run, and the page of a trace.

    pictures.py RUN TRY TRACE       two stored runs and a trace; HEAPMARK is the program, needs Chromium
"""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs/pictures"
HEAPMARK = os.environ.get("HEAPMARK", ROOT / "target/release/heapmark")
MOST_BYTES = 300_000

# Background, text, and the first line of the sentence that answers.
THEMES = {"light": ("#ffffff", "#24292f", "#0a3069"), "dark": ("#0d1117", "#e6edf3", "#79c0ff")}
# The numbers of Blink's setting.
SCHEMES = {"dark": 0, "light": 1}


def terminal(lines, theme):
    """The lines as an SVG; those of the sentence that answers are stressed."""
    background, text, stress = THEMES[theme]
    width, height, line_height = 8.43, 14, 18
    columns = max(map(len, lines))
    size = f'width="{columns * width + 32:.0f}" height="{len(lines) * line_height + 32}"'
    # After the command and the head comes the sentence, until an empty line.
    answer = 2
    end = next((n for n in range(answer, len(lines)) if not lines[n]), len(lines))
    rows = []
    for number, line in enumerate(lines):
        colour = f' fill="{stress}" font-weight="bold"' if answer <= number < end else ""
        rows.append(f'<text x="16" y="{28 + number * line_height}"{colour} xml:space="preserve">{escape(line)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="ui-monospace, Menlo, Consolas, monospace" '
        f'font-size="{height}" fill="{text}"><rect width="100%" height="100%" rx="8" fill="{background}"/>\n'
        + "\n".join(rows)
        + "\n</svg>\n"
    )


def page(report, theme, picture):
    """The first screen of a page, as a browser draws it."""
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        sys.exit("pictures: no Chromium: scripts/setup.sh test brings it")
    with tempfile.TemporaryDirectory() as profile:
        flags = ["--headless", "--no-sandbox", "--hide-scrollbars", "--virtual-time-budget=20000", f"--user-data-dir={profile}"]
        look = ["--window-size=1280,1000", f"--blink-settings=preferredColorScheme={SCHEMES[theme]}"]
        command = [browser, *flags, *look, f"--screenshot={picture}", report.resolve().as_uri()]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ran(*words):
    columns = os.environ | {"COLUMNS": "100"}
    return subprocess.run([HEAPMARK, *words], check=True, stdout=subprocess.PIPE, text=True, env=columns).stdout


def typed(run):
    """The command of a run of `heapmark try`, as it was typed but for its flags."""
    head = json.loads((pathlib.Path(run) / "run.json").read_text())
    command = head["plan"]["cases"][0]["target"]["command"]["command"]
    return f"$ heapmark try {shlex.join([pathlib.Path(command[0]).name, *command[1:]])}"


def main():
    run, tried, trace = sys.argv[1:]
    PICTURES.mkdir(parents=True, exist_ok=True)
    lines = [typed(tried), *ran("show", tried).strip("\n").split("\n")]
    # Where the page lies is of no use in a picture.
    lines = [line for line in lines if not line.startswith("Report: ")]
    with tempfile.TemporaryDirectory() as folder:
        report, stats = pathlib.Path(folder) / "report.html", pathlib.Path(folder) / "trace.html"
        ran("report", run, "-o", report)
        ran("trace", "stats", trace, "--to", "page", "-o", stats)
        for theme in THEMES:
            (PICTURES / f"try-{theme}.svg").write_text(terminal(lines, theme))
            page(report, theme, PICTURES / f"page-{theme}.png")
            page(stats, theme, PICTURES / f"trace-{theme}.png")
    for picture in sorted(PICTURES.iterdir()):
        size = picture.stat().st_size
        print(f"{picture.relative_to(ROOT)}  {size} bytes")
        if size > MOST_BYTES:
            sys.exit(f"pictures: {picture} has more than {MOST_BYTES} bytes")


main()
