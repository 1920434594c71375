"""Basic run: which way up does a picture of a page lie?

    ./dev python examples/python/basic_run.py [picture ...]

Code as for onnxruntime, with one import changed. Each picture is shown to the model in all four turns.
"""
import time

import numpy as np

import corelane as ort
import example_support as support


def main() -> None:
    parser = support.options_of(__doc__)
    parser.add_argument("pictures", nargs="*", default=[support.PAGE], help="PNG or JPEG files of pages")
    parser.add_argument("--model", default=support.ORIENTATION, help="ONNX or program file")
    args = parser.parse_args()
    model = support.located(args.model)

    options = ort.SessionOptions()
    if args.device:
        options.add_session_config_entry("corelane.device", args.device)
    session = ort.InferenceSession(model, options)
    name = session.get_inputs()[0].name
    degrees = support.class_listing(session).split()

    seen, took = [], []
    for path in args.pictures:
        picture = support.read_picture(path)
        for turns in range(4):
            x = support.to_input(np.ascontiguousarray(np.rot90(picture, -turns)), 224, 224, support.IMAGENET)
            begin = time.perf_counter()
            scores = session.run(None, {name: x})[0]
            took.append(time.perf_counter() - begin)
            seen.append((x, scores))
            best = int(scores[0].argmax())
            print(f"{path} turned by {90 * turns:3}: lies at {degrees[best]:>3} degrees, "
                  f"{scores[0, best] * 100:.1f} % sure")

    # The first run compiles.
    print(f"{session.device()['instance']}: first run {took[0] * 1e3:.1f} ms, "
          f"then {np.median(took[1:]) * 1e3:.1f} ms")
    if args.check:
        support.check(model, seen, tolerance=2e-5)


if __name__ == "__main__":
    support.run(main)
