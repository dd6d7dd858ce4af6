#!/usr/bin/env python3
"""octet quantize and octet dequantize on whole models: folders of several files with an index, and
files of several tensors.

    quantize_models.py OCTET

There and back: tensors, index, configuration and everything that is not quantised. Exit code 1 and a
line for each breach.
"""

import json
import os
import struct
import sys

from files_support import (Numbers, check, read_npy, read_safetensors, refused, run, run_parts, succeed,
                           write_safetensors)


def make_model(folder):
    folder.mkdir()
    numbers = Numbers(5)
    names = ["a.q_proj.weight", "embed_tokens.weight", "b.down_proj.weight", "norm.weight"]
    shapes = [[130, 200], [4, 8], [64, 128], [8]]
    files = ["model-1.safetensors", "model-1.safetensors", "model-2.safetensors",
             "model-2.safetensors"]
    tensors = {name: ("BF16", shape, numbers.list(shape[0] * (shape[1:] or [1])[0]))
               for name, shape in zip(names, shapes)}
    for file in set(files):
        write_safetensors(folder / file, {n: tensors[n] for n, f in zip(names, files) if f == file},
                          {"format": "pt"})
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 1}, "weight_map": dict(zip(names, files))}))
    (folder / "config.json").write_text('{"hidden_size": 8, "eps": 1e-06}')
    (folder / "tokenizer.json").write_text("tokens")
    (folder / "extra").mkdir()


def check_model(octet, folder):
    model, out = folder / "model", folder / "model-fp8"
    make_model(model)
    report = succeed(octet, "quantize", model, "-o", out)
    check([t["name"] for t in report.get("quantised", [])] == ["a.q_proj.weight",
                                                               "b.down_proj.weight"] and
          report["copied"] == 2 and report["left_out"] == ["extra"], f"model: {report}")
    check(sorted(os.listdir(out)) == ["config.json", "model-1.safetensors", "model-2.safetensors",
                                      "model.safetensors.index.json", "tokenizer.json"],
          f"model: {sorted(os.listdir(out))}")
    index = json.loads((out / "model.safetensors.index.json").read_text())
    all_tensors = {}
    for file in ("model-1.safetensors", "model-2.safetensors"):
        for name, tensor in read_safetensors(out / file).items():
            check(index["weight_map"].get(name) == file, f"index: {name}")
            all_tensors[name] = tensor
    check(set(index["weight_map"]) == set(all_tensors) and
          index["metadata"]["total_size"] == sum(len(t[2]) for t in all_tensors.values()),
          f"index: {index}")
    before = read_safetensors(model / "model-1.safetensors")
    check(all_tensors["embed_tokens.weight"] == before["embed_tokens.weight"], "a copied tensor")
    check(all_tensors["a.q_proj.weight_scale_inv"][:2] == ("F32", [2, 2]), "the model's scales")
    config = json.loads((out / "config.json").read_text())
    check(config.get("eps") == 1e-06 and
          config["quantization_config"]["weight_block_size"] == [128, 128] and
          config["quantization_config"]["modules_to_not_convert"] == ["embed_tokens"],
          f"config: {config}")
    succeed(octet, "dequantize", f"{out}:b.down_proj.weight", "-o", folder / "w.npy")
    check_model_back(octet, folder, model, out)
    check(report["config_note"] == "", f"config note: {report}")
    other = succeed(octet, "quantize", model, "-o", folder / "fine", "--block", "1x128")
    check("says nothing of FP8" in other["config_note"] and "block=1x128" in other["config_note"] and
          "quantization_config" not in (folder / "fine/config.json").read_text(),
          f"config note of 1x128: {other}")
    text = run(octet, "quantize", model, "-o", folder / "fine2", "--block", "1x128")
    check("config.json: says nothing of FP8" in text.stdout, "config note, printed", text)
    refused(octet, "is there already", "quantize", model, "-o", out)
    refused(octet, "no F32, BF16 or F16 matrix", "quantize", model, "-o", folder / "none",
            "--include", "*.bias")
    succeed(octet, "quantize", model / "model-1.safetensors", "-o", folder / "one.safetensors",
            "--include", "embed*", "--exclude", "none")
    check(read_safetensors(folder / "one.safetensors")["embed_tokens.weight"][0] == "F8_E4M3",
          "--include of one file")
    index["weight_map"]["a.q_proj.weight"] = "../model/model-1.safetensors"
    (out / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(octet, "must be in a .safetensors file beside it", "dequantize",
            f"{out}:a.q_proj.weight", "-o", folder / "w.npy")
    check(not (folder / "none").exists() and
          not [name for name in os.listdir(folder) if name.startswith(".octet")], "something stayed")


def check_model_back(octet, folder, model, fp8):
    """Every tensor as one by one, everything else as it was before it was quantised."""
    back = folder / "model-bf16"
    report = succeed(octet, "dequantize", fp8, "-o", back)
    check([t["name"] for t in report.get("dequantised", [])] == ["a.q_proj.weight",
                                                                 "b.down_proj.weight"] and
          report["copied"] == 2, f"model back: {report}")
    check(sorted(os.listdir(back)) == sorted(os.listdir(fp8)), f"model back: {os.listdir(back)}")
    check((back / "model.safetensors.index.json").exists() and
          json.loads((back / "config.json").read_text()) == {"hidden_size": 8, "eps": 1e-06} and
          (back / "tokenizer.json").read_text() == "tokens", "model back: the other files")
    index = json.loads((back / "model.safetensors.index.json").read_text())["weight_map"]
    for file in ("model-1.safetensors", "model-2.safetensors"):
        before, after = read_safetensors(model / file), read_safetensors(back / file)
        check(set(before) == set(after) and all(index[name] == file for name in after),
              f"model back: {file} holds {sorted(after)}")
        for name, (dtype, shape, data) in before.items():
            check(after[name][:2] == (dtype, shape), f"model back: {name} is {after[name][:2]}")
            if "proj" in name:
                succeed(octet, "dequantize", f"{fp8}:{name}", "-o", folder / "one.npy", "--to", "bf16")
                data = read_npy(folder / "one.npy")[2]
            check(after[name][2] == data, f"model back: {name} has other bytes")
        check(b"octet." not in (back / file).read_bytes(), f"model back: {file} says it is quantised")
    succeed(octet, "dequantize", fp8, "-o", folder / "model-f32", "--to", "f32")
    shape = read_safetensors(folder / "model-f32/model-2.safetensors")["b.down_proj.weight"][:2]
    check(shape == ("F32", [64, 128]), f"model back, --to f32: {shape}")
    # A file of several, whose scales say nothing of themselves; one has none.
    codes = [0x38] * 8
    several = {"a": ("F8_E4M3", [2, 4], codes), "a_scale": ("F32", [], [0.5]),
               "b": ("F8_E4M3", [4, 2], codes), "b_scale_inv": ("F32", [1, 1], [2.0]),
               "c": ("U8", [3], [1, 2, 3]), "c_scale": ("F32", [1], [7.0])}
    write_safetensors(folder / "s.safetensors", several, {"octet.a": "axis=1"})
    succeed(octet, "dequantize", folder / "s.safetensors", "-o", folder / "t.safetensors")
    check(read_safetensors(folder / "t.safetensors") ==
          {"a": ("BF16", [2, 4], b"\0\x3f" * 8), "b": ("BF16", [4, 2], b"\0\x40" * 8),
           "c": ("U8", [3], b"\1\2\3"), "c_scale": ("F32", [1], struct.pack("<f", 7))},
          "a file of several, dequantised")
    refused(octet, "--scales 2: is for one tensor", "dequantize", fp8, "-o", folder / "no",
            "--scales", "2")
    refused(octet, "is there already", "dequantize", fp8, "-o", back)
    refused(octet, "is an input of the same command", "dequantize", fp8, "-o", fp8)
    refused(octet, "holds no tensor of e4m3 codes", "dequantize", model, "-o", folder / "no")
    del several["a_scale"]
    write_safetensors(folder / "s.safetensors", several)
    refused(octet, "s.safetensors:a: holds codes, and there is no tensor a_scale_inv", "dequantize",
            folder / "s.safetensors", "-o", folder / "no.safetensors")
    check(not (folder / "no").exists() and not (folder / "no.safetensors").exists(),
          "model back: a refused command wrote something")


if __name__ == "__main__":
    sys.exit(run_parts(check_model))
