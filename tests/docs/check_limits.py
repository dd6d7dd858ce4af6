#!/usr/bin/env python3
"""docs/limits.md has every sentence that the command's readers of files refuse with, and none that is
nowhere in its sources.

    check_limits.py SOURCES

What the library refuses is printed from its own table (octet_limits_doc --check). Exit code 1 and a line
for each breach.
"""

import pathlib
import re
import sys

READERS = ("npy", "safetensors", "json_watch", "mapped_file", "tensor_store", "model_files")
LITERALS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
REFUSED = re.compile(r"(?:\b(?:bad|fail)\(\s*(?:fmt::format\(\s*)?|runtime_error\(\s*fmt::format\(\s*|"
                     r"\bfault = fmt::format\(\s*|return fmt::format\(\s*)" + LITERALS)
SAID = re.compile(r"\bformat\(\s*" + LITERALS)
BARE = re.compile(r"(?:tensor )?(?:\{\}(?:: )?)*")  # a name before a sentence, which is found by itself


def sentence(text):
    """Of literals side by side, or of the page: each value is {}; without a name before it."""
    if text.lstrip().startswith('"'):
        text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)).replace('\\"', '"')
    return re.sub(r"\{[^{}]*\}", "{}", text).removeprefix("{}: ")


def main():
    sources = pathlib.Path(sys.argv[1])
    page = (sources / "docs/limits.md").read_text(encoding="utf-8")
    part = page.partition("\n## The command: files and benchmarks\n")[2]
    listed = {sentence(text) for text in re.findall(r"^\| `([^`]*)` \|", part, re.MULTILINE)}
    refused, said = {}, set()
    for path in sorted((sources / "tools/octet").glob("*.cpp")):
        text = path.read_text(encoding="utf-8")
        found = {sentence(literals) for literals in REFUSED.findall(text)}
        said |= found | {sentence(literals) for literals in SAID.findall(text)}
        if path.stem in READERS:
            refused.update({one: path.name for one in found if not BARE.fullmatch(one)})
    failures = [f"docs/limits.md: lacks a sentence of {name}: {one}"
                for one, name in refused.items() if one not in listed]
    failures += [f"docs/limits.md: nothing says: {one}" for one in listed if one not in said]
    deepest = re.search(r"kDeepestJson = (\d+);", (sources / "tools/octet/json_watch.h").read_text())
    if f"levels` | {deepest[1]}." not in part:
        failures.append(f"docs/limits.md: JSON nests up to {deepest[1]} levels")
    if len(refused) < 40:
        failures.append(f"only {len(refused)} sentences were found in the sources")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
