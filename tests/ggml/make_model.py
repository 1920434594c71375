"""A language model with random weights, as a GGUF file: of the llama architecture, for speed and memory. What it says
means nothing.

usage: make_model.py <type: f16, q8_0, q4_0> [<file>]      default: a file below .cache/ggml/models, kept once made

Weights are drawn from a seed, so that a type is the same file each time. The vocabulary is made up: control tokens,
the 256 bytes, numbered words. Needs the packages of requirements/ggml-models.txt in .cache/ggml/gguf.
"""
import dataclasses
import os
import pathlib
import sys

import numpy as np

import plugged

sys.path.append(str(plugged.CACHE / "gguf"))
import gguf  # noqa: E402

TYPES = {"f16": (gguf.GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16),
         "q8_0": (gguf.GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
         "q4_0": (gguf.GGMLQuantizationType.Q4_0, gguf.LlamaFileType.MOSTLY_Q4_0)}


@dataclasses.dataclass(frozen=True)
class Shape:
    layers: int = 16
    width: int = 1536
    heads: int = 24
    kv_heads: int = 8
    hidden: int = 4096
    words: int = 49152
    context: int = 2048

    def matrices(self):
        """Of a layer: name -> (rows, columns)."""
        kv = self.width // self.heads * self.kv_heads
        return {"attn_q": (self.width, self.width), "attn_k": (kv, self.width), "attn_v": (kv, self.width),
                "attn_output": (self.width, self.width), "ffn_gate": (self.hidden, self.width),
                "ffn_up": (self.hidden, self.width), "ffn_down": (self.width, self.hidden)}

    def multiplied(self):
        """Weights of all products: those of the layers, and the words', which are the output's, too."""
        return self.words * self.width + self.layers * sum(r * c for r, c in self.matrices().values())


SHAPE = Shape()  # Half a thousand million weights.


def describe(writer, shape, file_type):
    writer.add_name("random")
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_rope_dimension_count(shape.width // shape.heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(shape.words)
    writer.add_file_type(int(file_type))
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)


def add_words(writer, shape):
    kinds = gguf.TokenType
    words = [("<unk>", kinds.UNKNOWN), ("<s>", kinds.CONTROL), ("</s>", kinds.CONTROL),
             *((f"<0x{byte:02X}>", kinds.BYTE) for byte in range(256))]
    words += [(f"\u2581w{number}", kinds.NORMAL) for number in range(shape.words - len(words))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text for text, _ in words])
    writer.add_token_scores([-float(rank) for rank in range(len(words))])
    writer.add_token_types([int(kind) for _, kind in words])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def add_weights(writer, shape, kind):
    random = np.random.default_rng(1)

    def matrix(name, rows, columns, scale):
        values = random.standard_normal((rows, columns), dtype=np.float32) * np.float32(scale)
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)

    def norm(name):
        writer.add_tensor(name, (1 + 0.05 * random.standard_normal(shape.width)).astype(np.float32))

    matrix("token_embd.weight", shape.words, shape.width, 1)
    for layer in range(shape.layers):
        for name in ("attn_norm", "ffn_norm"):
            norm(f"blk.{layer}.{name}.weight")
        for name, (rows, columns) in shape.matrices().items():
            matrix(f"blk.{layer}.{name}.weight", rows, columns, columns ** -0.5)
    norm("output_norm.weight")


def write(path, shape, kind):
    """The file appears whole, or not at all."""
    part = path.with_name(path.name + ".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(part, "llama")
    describe(writer, shape, TYPES[kind][1])
    add_words(writer, shape)
    add_weights(writer, shape, TYPES[kind][0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(part, path)


def made(kind, path=None):
    """The file of this type."""
    path = pathlib.Path(path or plugged.CACHE / "models" / f"random-0.5b-{kind}.gguf")
    if not path.exists():
        print(f"writing {path}: half a minute, once", file=sys.stderr)
        write(path, SHAPE, kind)
    return path


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in TYPES:
        sys.exit(__doc__)
    print(made(*sys.argv[1:]))
