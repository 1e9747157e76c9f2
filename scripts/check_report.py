#!/usr/bin/env python3
"""Looks at reports as a browser lays them out, on wide and narrow screens:

    scripts/check_report.py PROGRAM [--output DIR]

trains small models, makes reports of a run with classes, of a regression, of several runs of each, of a text, of a sweep
by halving and of a random search, and opens each in Chromium, 1,280, 500 and 390 pixels wide. No element may lie beyond
the right edge, all charts of a page must have one width, and their texts one font, and no text may lie on another. With
--output, pages and pictures of them stay in DIR.

Needs Chromium (Debian: chromium, 120 MB to fetch); without it, the script says so and checks nothing.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WIDTHS = (1280, 500, 390)
NAMES = ["cat", "a class with a rather long name of several words", "x" * 60, "ocelot", "lynx", "puma", "lion", "tiger",
         "jaguar", "leopard", "margay", "serval", "caracal"]

CONFIG = """
name: NAME
mesh: {axes: {devices: 2}}
data: {source: {csv: {train: NAME.csv, target: y, categorical: [kind]}}, batch_size: 16, validation: 0.3, normalize: auto}
model: {layers: [{dense: 8}, relu, {dense: OUTPUTS}]}
LOSS
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 9 epochs, eval_every: 1 epoch}
"""

TEXT = """
name: text
mesh: {axes: {devices: 2}}
data:
  source: {text: {train: text.txt, length: 200, end_token: <|endoftext|>}}
  tokenizer: {bpe: {size: 300}}
  batch_size: 4
  validation: 0.3
model:
  layers: [{name: tokens, embedding: {num_embeddings: 300, features: 8}}, {attention: {heads: 1, causal: true}},
           {attend: {embedding: tokens}}]
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 4 epochs, eval_every: 1 epoch}
"""

SWEEP = """
base: classes.yaml
parameters:
  optimizer.learning_rate: {log_uniform: [1.0e-4, 1.0e-1]}
  width: {choice: [{model.layers.0.dense.features: 4, data.batch_size: 16}, {model.layers.0.dense.features: 64, data.batch_size: 64}]}
  optimizer.adam.b1: {choice: [0.8, 0.9]}
search: {successive_halving: {min: 1 epoch, factor: 3}}
trials: 9
metric: accuracy
"""

SEARCH = """
base: prices.yaml
parameters:
  optimizer.learning_rate: {log_uniform: [1.0e-4, 1.0e-1]}
  model.layers.1: {choice: [relu, gelu, softplus, leaky_relu]}
search: random
trials: 6
metric: r2
"""

# In a report: tells the page around it what lies beyond the right edge, how wide charts are, and of their texts the fonts
# and which lie on others.
MEASURE = """<script>addEventListener('load', () => {
  const beyond = [...document.body.querySelectorAll('*')].filter(one => one.getBoundingClientRect().right > innerWidth + 1)
    .map(one => one.tagName + '.' + (one.getAttribute('class') || '') + ' ' + one.textContent.trim().slice(0, 40));
  if (document.documentElement.scrollWidth > innerWidth) beyond.push('the page scrolls');
  const figures = [...document.querySelectorAll('.charts figure:not(.wide)')];
  const texts = [...document.querySelectorAll('svg.chart text')];
  const fonts = texts.map(one => getComputedStyle(one)).map(one => one.fontSize + ' ' + one.fontFamily);
  if (document.querySelector('canvas')) fonts.push(Chart.defaults.font.size + 'px ' + Chart.defaults.font.family);
  const covered = [];
  for (const svg of document.querySelectorAll('svg.chart')) {
    const boxes = [...svg.querySelectorAll('text')].map(one => [one.textContent, one.getBoundingClientRect()]);
    boxes.forEach(([text, box], i) => boxes.slice(i + 1).forEach(([other, at]) => {
      if (Math.min(box.right, at.right) > Math.max(box.left, at.left) + 1 &&
          Math.min(box.bottom, at.bottom) > Math.max(box.top, at.top) + 4) covered.push(text + ' / ' + other);
    }));
  }
  parent.postMessage({beyond, covered, charts: figures.length, fonts: [...new Set(fonts)],
    widths: [...new Set(figures.map(one => Math.round(one.getBoundingClientRect().width)))]}, '*');
});</script>"""

# A page around a report, as wide as a screen.
AROUND = """<!doctype html><body style="margin:0"><pre id="found" hidden></pre><script>
addEventListener('message', event => { document.getElementById('found').textContent = JSON.stringify(event.data); });
</script><iframe src="REPORT" style="border:0;width:WIDTHpx;height:HEIGHTpx"></iframe>"""


def write_data(folder):
    rows = ["size,kind,a_column_with_a_rather_long_name,y"]
    prices = list(rows)
    for i in range(260):
        size, kind = 10 + i * 37 % 101, ["old", "new", "a kind of things"][i % 3]
        rows.append(f"{size},{kind},{i * 0.37:.2f},{NAMES[(i * 7 + i // 13) % len(NAMES)]}")
        prices.append(f"{size},{kind},{i * 0.37:.2f},{size * 12345.678 * (1 + i % 3):.2f}")
    (folder / "classes.csv").write_text("\n".join(rows) + "\n")
    (folder / "prices.csv").write_text("\n".join(prices) + "\n")
    for name, outputs, loss in (
        ("classes", len(NAMES), "loss: softmax_cross_entropy\nmetrics: [accuracy]"),
        ("prices", 1, "loss: mean_squared_error\nmetrics: [mean_absolute_error, r2]"),
    ):
        text = CONFIG.replace("NAME", name).replace("OUTPUTS", str(outputs)).replace("LOSS", loss)
        if name == "prices":
            text = text.replace("normalize: auto", "normalize: auto, normalize_targets: auto")
        (folder / f"{name}.yaml").write_text(text)
    lines = [f"a line {i * 37 % 101} of {NAMES[i % len(NAMES)]}\n" + ("\tü" if i % 5 else "x" * 150) for i in range(600)]
    (folder / "text.txt").write_text("\n".join(lines))
    (folder / "text.yaml").write_text(TEXT)
    (folder / "sweep.yaml").write_text(SWEEP)
    (folder / "search.yaml").write_text(SEARCH)


def make_reports(program, folder):
    def call(*arguments):
        done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(arguments)}: exit status {done.returncode}\n{done.stderr}")

    write_data(folder)
    call("run", "classes.yaml", "-q")
    call("run", "classes.yaml", "-q", "--name", "another", "--set", "optimizer.learning_rate=0.001")
    call("run", "prices.yaml", "-q")
    call("run", "prices.yaml", "-q", "--name", "cheaper", "--set", "train.checkpoint.best={metric: r2, mode: max}")
    call("run", "text.yaml", "-q")
    for sweep in ("sweep", "search"):
        call("sweep", "run", f"{sweep}.yaml", "--progress", "none")
    reports = {"classes": ["runs/classes"], "prices": ["runs/prices"], "several": ["runs/classes", "runs/another"],
               "regressions": ["runs/prices", "runs/cheaper"], "text": ["runs/text"], "sweep": ["sweeps/sweep"], "search": ["sweeps/search"]}
    for name, runs in reports.items():
        call("report", *runs, "--output", f"{name}.html")
    return list(reports)


def opened(browser, page, *options):
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=3000",
               *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout


def check(browser, folder, name, width, pictures):
    report = folder / f"{name}-measured.html"
    html = (folder / f"{name}.html").read_text()
    report.write_text(html.replace("</body>", MEASURE + "</body>"))
    around = folder / f"{name}-{width}.html"
    text = AROUND.replace("REPORT", report.name).replace("WIDTH", str(width))
    around.write_text(text.replace("HEIGHT", "900"))
    dom = opened(browser, around, "--dump-dom", f"--window-size={max(width, 500)},900")
    found = re.search(r'<pre id="found"[^>]*>(.*?)</pre>', dom, re.S)
    if not found or not found[1]:
        return [f"{name} at {width}: the page has not told what it measured"]
    measured = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    problems = [f"{name} at {width}: beyond the right edge: {one}" for one in measured["beyond"]]
    if measured["charts"] == 0 or len(measured["widths"]) != 1:
        problems.append(f"{name} at {width}: {measured['charts']} charts have the widths {measured['widths']}")
    if len(measured["fonts"]) > 1:
        problems.append(f"{name} at {width}: texts of charts have the fonts {measured['fonts']}")
    problems += [f"{name} at {width}: texts of a chart lie on each other: {one}" for one in measured["covered"]]
    if pictures:
        around.write_text(text.replace("HEIGHT", "4000"))
        opened(browser, around, f"--screenshot={folder / f'{name}-{width}.png'}", f"--window-size={max(width, 500)},4000")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("skipped: there is no Chromium, in which the pages are measured (apt-get install chromium)")
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.output or pathlib.Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        program = str(pathlib.Path(arguments.program).resolve())
        problems = []
        names = make_reports(program, folder)
        for name in names:
            for width in WIDTHS:
                problems += check(browser, folder, name, width, arguments.output is not None)
    if problems:
        sys.exit("\n".join(problems))
    print(f"{len(names)} reports fit screens of {', '.join(map(str, WIDTHS))} pixels")


main()
