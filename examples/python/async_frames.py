"""Frames of a clip without waiting for each: callbacks in the order of the frames.

    ./dev python examples/python/async_frames.py [clip] [--every 10]

run_async copies the frame and returns; three cores work on three frames at once. Callbacks come from a
thread of the session, in the order of submission also when a later frame is done earlier (--unordered
for the order of completion). When the queue is full, run_async waits: no frame is lost.
"""
import time

import corelane as ort
import example_support as support


def main() -> None:
    parser = support.options_of(__doc__)
    parser.add_argument("clip", nargs="?", default=support.CLIP, help="a clip, such as an MP4")
    parser.add_argument("--model", default=support.DETECTION, help="a text detector, ONNX or program file")
    parser.add_argument("--every", type=support.at_least_one, default=10, help="looks at every Nth frame")
    parser.add_argument("--unordered", action="store_true", help="callbacks as frames are done")
    args = parser.parse_args()
    model = support.located(args.model)

    arrived: list[int] = []
    problems: list[str] = []
    seen = []

    def done(outputs, frame, problem) -> None:  # In the session's callback thread.
        number, second, picture, x = frame
        arrived.append(number)
        if problem:
            problems.append(f"frame {number}: {problem}")
            return
        boxes = support.text_boxes(outputs[0], picture)
        places = ", ".join(f"{right - left} x {bottom - top} at ({left}, {top})"
                           for left, top, right, bottom in boxes)
        print(f"frame {number:4} {second:6.2f} s: {places or 'no text'}")
        if args.check:
            seen.append((x, outputs[0]))

    options = {"schedule": [0, 1, 2], "sequential_callbacks": not args.unordered, "device": args.device}
    begin = time.perf_counter()
    with ort.InferenceSession(model, providers=[("RKNPU2ExecutionProvider", options)]) as session:
        name = session.get_inputs()[0].name
        for number, second, picture in support.read_clip(args.clip, args.every):
            x = support.detector_input(picture)
            session.run_async(None, {name: x}, done, (number, second, picture, x))
    # The end of the block has waited for every callback.
    took = time.perf_counter() - begin

    if problems:
        raise support.ExampleError(f"{len(problems)} of {len(arrived)} frames failed; {problems[0]}")
    print(f"{len(arrived)} frames in {took:.2f} s, {len(arrived) / took:.1f} a second; callbacks "
          f"{'in' if arrived == sorted(arrived) else 'not in'} the order of the frames")
    if args.check:
        support.check(model, seen, tolerance=2e-4)


if __name__ == "__main__":
    support.run(main)
