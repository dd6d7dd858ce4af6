#!/usr/bin/env python3
"""Writes the fenced code blocks of a Markdown file into files, so that tests compile and run them.

usage: extract_examples.py FILE.md LANGUAGE FOLDER     prints the names of the files written

LANGUAGE is all that stands behind the fence: "cpp", or "cpp gpu" for what needs a device.
"""
import pathlib
import re
import sys


def main(argv):
    if len(argv) != 4:
        sys.exit(__doc__)
    source, language, folder = pathlib.Path(argv[1]), argv[2], pathlib.Path(argv[3])
    blocks = re.findall(rf"^```{re.escape(language)}\n(.*?)^```$", source.read_text(), re.M | re.S)
    folder.mkdir(parents=True, exist_ok=True)
    for number, block in enumerate(blocks, 1):
        suffix, *marks = language.split()
        path = folder / f"{'_'.join([source.stem.lower(), *marks, str(number)])}.{suffix}"
        # Unchanged files keep their time, so nothing is rebuilt without need.
        if not path.exists() or path.read_text() != block:
            path.write_text(block)
        print(path)
    return 0 if blocks else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
