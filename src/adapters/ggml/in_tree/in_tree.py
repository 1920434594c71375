"""Lays the RKNN backend into a source tree of llama.cpp or ggml, which then builds it with -DGGML_RKNN=ON.

usage: in_tree.py <folder of ggml, or of llama.cpp>

The sources are those of the plugin. Files of the tree that list backends get a line for this one; a second run
only brings the sources up to date.
"""
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
PLUGIN = HERE.parent
RKNN_HEADERS = HERE.parents[3] / "include" / "rknn"

# File, the line (or lines) after which ours belong, ours. BLAS is in all releases.
PATCHES = [
    ("CMakeLists.txt", "option(GGML_BLAS ", 'option(GGML_RKNN                            "ggml: use RKNN" OFF)\n'),
    ("src/CMakeLists.txt", "ggml_add_backend(BLAS)", "ggml_add_backend(RKNN)\n"),
    ("src/ggml-backend-reg.cpp", '#include "ggml-blas.h"\n#endif',
     '\n#ifdef GGML_USE_RKNN\n#include "ggml-rknn.h"\n#endif\n'),
    ("src/ggml-backend-reg.cpp", "register_backend(ggml_backend_blas_reg());\n#endif",
     "#ifdef GGML_USE_RKNN\n        register_backend(ggml_backend_rknn_reg());\n#endif\n"),
    ("src/ggml-backend-reg.cpp", 'ggml_backend_load_best("blas", silent, dir_path);',
     '    ggml_backend_load_best("rknn", silent, dir_path);\n'),
]


def find_ggml(folder):
    """The folder that holds src/ggml-backend-reg.cpp."""
    for ggml in (folder, folder / "ggml"):
        if (ggml / "src" / "ggml-backend-reg.cpp").is_file():
            return ggml
    sys.exit(f"{folder} is not a source tree of ggml or llama.cpp: src/ggml-backend-reg.cpp is neither there nor "
             "below ggml/; give the folder that was cloned or unpacked")


def patched(path, text, anchor, addition):
    mark = next(line for line in addition.splitlines() if line and not line.startswith("#if"))
    if mark in text:
        return text
    at = text.find(anchor)
    if at < 0:
        sys.exit(f"{path} has no '{anchor.splitlines()[0]}': this release lists its backends in another way; add "
                 f"there by hand: {addition.strip()}")
    end = text.index("\n", at + len(anchor)) + 1
    return text[:end] + addition + text[end:]


def lay_out(ggml):
    target = ggml / "src" / "ggml-rknn"
    shutil.rmtree(target, ignore_errors=True)
    for room in ("mm", "plugin"):
        for source in sorted((PLUGIN / room).glob("*.*")):
            if "_test" not in source.stem:
                place = target / "adapters" / "ggml" / room / source.name
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, place)
    shutil.copytree(RKNN_HEADERS, target / "rknn")
    shutil.copyfile(HERE / "CMakeLists.txt.in", target / "CMakeLists.txt")
    shutil.copyfile(HERE / "ggml-rknn.h.in", ggml / "include" / "ggml-rknn.h")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.split("\n\n")[1])
    ggml = find_ggml(pathlib.Path(sys.argv[1]))
    texts = {}
    for name, anchor, addition in PATCHES:
        path = ggml / name
        texts[path] = patched(path, texts.get(path) or path.read_text(encoding="utf-8"), anchor, addition)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    lay_out(ggml)
    print(f"the RKNN backend is in {ggml / 'src' / 'ggml-rknn'}; build with -DGGML_RKNN=ON")


if __name__ == "__main__":
    main()
