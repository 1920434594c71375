"""Writes frames of a clip as PNG files, for the C++ examples that read a folder of frames.

    ./dev python examples/python/clip_to_pictures.py out/frames [clip] [--every 10]
"""
import argparse
import pathlib

import cv2

import example_support as support


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path, help="is created, for frame00000.png, frame00010.png, ...")
    parser.add_argument("clip", nargs="?", default=support.CLIP, help="a clip, such as an MP4 (default: %(default)s)")
    parser.add_argument("--every", type=support.at_least_one, default=10, help="takes every Nth frame")
    args = parser.parse_args()
    try:
        args.folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise support.ExampleError(f"{args.folder} cannot be made: {problem.strerror}") from None
    count = 0
    for number, _, picture in support.read_clip(args.clip, args.every):
        path = args.folder / f"frame{number:05}.png"
        if not cv2.imwrite(str(path), picture):
            raise support.ExampleError(f"{path} cannot be written")
        count += 1
    print(f"{count} frames in {args.folder}")


if __name__ == "__main__":
    support.run(main)
