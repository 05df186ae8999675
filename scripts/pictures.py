#!/usr/bin/env python3
"""Draws the pictures of README from a stored run: what the terminal prints, and the page, each light and dark.

    pictures.py [RUN]       the latest run unless one is named; HEAPMARK is the program, needs Chromium
"""

import os
import pathlib
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
    answer = next((n for n, line in enumerate(lines) if " the fastest here" in line or line.startswith(("Unclear", "Noisy run"))), len(lines))
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


def main():
    run = sys.argv[1] if len(sys.argv) > 1 else "latest"
    PICTURES.mkdir(parents=True, exist_ok=True)
    columns = os.environ | {"COLUMNS": "100"}
    shown = subprocess.run([HEAPMARK, "show", run], check=True, stdout=subprocess.PIPE, text=True, env=columns)
    lines = shown.stdout.strip("\n").split("\n")
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.html"
        subprocess.run([HEAPMARK, "report", run, "-o", report], check=True)
        for theme in THEMES:
            (PICTURES / f"terminal-{theme}.svg").write_text(terminal(lines, theme))
            page(report, theme, PICTURES / f"page-{theme}.png")
    for picture in sorted(PICTURES.iterdir()):
        size = picture.stat().st_size
        print(f"{picture.relative_to(ROOT)}  {size} bytes")
        if size > MOST_BYTES:
            sys.exit(f"pictures: {picture} has more than {MOST_BYTES} bytes")


main()
