"""A video loop that reads the text in a clip, with a pipeline of depth 3.

    ./dev python examples/python/video_loop.py [clip] [--every 10] [--depth 3]

run_pipeline submits a frame and returns the outputs of the frame `depth` calls ago, so the loop stays a
plain loop while three cores are busy. flush() gives the last frames.
"""
import collections
import time

import numpy as np

import corelane as ort
import example_support as support


class TextReader:
    """Reads what is inside a box of a picture."""

    def __init__(self, model: str, device: str | None):
        self.session = ort.InferenceSession(model, providers=[("RKNPU2ExecutionProvider", {"device": device})])
        self.name = self.session.get_inputs()[0].name
        self.characters = support.alphabet(support.class_listing(self.session))

    def read(self, picture: np.ndarray, box: support.Box) -> tuple[str, float]:
        x = support.line_input(picture, box, support.line_width(box))
        return support.to_text(self.session.run(None, {self.name: x})[0][0], self.characters)


def main() -> None:
    parser = support.options_of(__doc__)
    parser.add_argument("clip", nargs="?", default=support.CLIP, help="a clip, such as an MP4")
    parser.add_argument("--detector", default=support.DETECTION, help="ONNX or program file")
    parser.add_argument("--recogniser", default=support.RECOGNITION, help="ONNX or program file")
    parser.add_argument("--every", type=support.at_least_one, default=10, help="looks at every Nth frame")
    parser.add_argument("--depth", type=support.at_least_one, default=3, help="of the pipeline")
    args = parser.parse_args()
    model = support.located(args.detector)

    options = {"schedule": [0, 1, 2], "device": args.device}
    session = ort.InferenceSession(model, providers=[("RKNPU2ExecutionProvider", options)])
    reader = TextReader(support.located(args.recogniser), args.device)
    name = session.get_inputs()[0].name
    waiting: collections.deque = collections.deque()  # Frames in the pipeline, the oldest first.
    seen, frames = [], 0

    def show(outputs: list) -> None:
        nonlocal frames
        number, second, picture, x = waiting.popleft()
        frames += 1
        for box in support.text_boxes(outputs[0], picture):
            text, sure = reader.read(picture, box)
            if sure >= 0.95:
                print(f"frame {number:4} {second:6.2f} s: {text!r} ({sure * 100:.0f} %) at {box[:2]}")
        if args.check:
            seen.append((x, outputs[0]))

    begin = time.perf_counter()
    for number, second, picture in support.read_clip(args.clip, args.every):
        x = support.detector_input(picture)
        waiting.append((number, second, picture, x))
        outputs = session.run_pipeline({name: x}, depth=args.depth)
        if outputs is not None:  # None while the pipeline fills.
            show(outputs)
    for outputs in session.flush():
        show(outputs)
    took = time.perf_counter() - begin

    print(f"{frames} frames in {took:.2f} s, {frames / took:.1f} a second, pipeline of depth {args.depth}")
    if args.check:
        support.check(model, seen, tolerance=2e-4)


if __name__ == "__main__":
    support.run(main)
