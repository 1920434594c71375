"""Reads a page: all its lines in one call, which is split over the cores.

    ./dev python examples/python/batch_dispatch.py [picture]

A detector finds the lines. The recogniser then gets them as one batch; the run option
ztu_modelrt_dispatch_batch makes a task of each sample, and the call returns their outputs together.
"""
import time

import numpy as np

import corelane as ort
import example_support as support


def main() -> None:
    parser = support.options_of(__doc__)
    parser.add_argument("picture", nargs="?", default=support.PAGE, help="PNG or JPEG file of a page")
    parser.add_argument("--detector", default=support.DETECTION, help="ONNX or program file")
    parser.add_argument("--recogniser", default=support.RECOGNITION, help="ONNX or program file")
    args = parser.parse_args()
    page = support.read_picture(args.picture)
    model = support.located(args.recogniser)

    providers = [("RKNPU2ExecutionProvider", {"schedule": [0, 1, 2], "device": args.device})]
    detector = ort.InferenceSession(support.located(args.detector), providers=providers)
    x = support.detector_input(page, shortest=384)
    boxes = support.text_boxes(detector.run(None, [x])[0], page)
    if not boxes:
        print(f"{args.picture}: no text")
        return

    session = ort.InferenceSession(model, providers=providers)
    width = max(map(support.line_width, boxes))
    lines = np.concatenate([support.line_input(page, box, width) for box in boxes])
    session.run(None, [lines[:1]])  # Compiles for this width.

    begin = time.perf_counter()
    singles = [session.run(None, [line[None]])[0] for line in lines]
    single = time.perf_counter() - begin
    begin = time.perf_counter()
    scores = session.run(None, [lines], {"ztu_modelrt_dispatch_batch": "true"})[0]
    batch = time.perf_counter() - begin

    characters = support.alphabet(support.class_listing(session))
    for line in scores:
        text, sure = support.to_text(line, characters)
        print(f"{sure * 100:3.0f} %  {text}")
    # Two engines round differently, and the device may change to the faster one between the runs.
    if not np.allclose(np.concatenate(singles), scores, rtol=0, atol=2e-4):
        raise support.ExampleError("the batch differs from its lines one by one")
    counts = session.statistics()
    shares = ", ".join(f"core {core}: {tasks}" for core, tasks in
                       zip(counts["core_of_context"], counts["tasks_by_context"]))
    print(f"{len(lines)} lines of {width} x 48: one by one {single * 1e3:.0f} ms, as a batch "
          f"{batch * 1e3:.0f} ms; tasks on {shares}")
    if args.check:
        support.check(model, [(lines, scores)], tolerance=2e-4)


if __name__ == "__main__":
    support.run(main)
