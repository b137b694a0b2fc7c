#!/usr/bin/env python3
"""Usage: readme.py README PROGRAM

Runs the command that README gives for its picture and compares what it finds with the numbers around the
picture: attention edges of the dense and the sparse model, and how many times fewer those are. Exit code 1
when one differs, 77 when the models are not here.
"""
import json
import re
import shlex
import subprocess
import sys


def main():
    readme = open(sys.argv[1], encoding="utf-8").read()
    picture = re.search(r"!\[The attention edges .*? in (\d+) prompts: ([\d,]+) in the dense model, ([\d,]+) in the "
                        r"sparse one\]", readme)
    command = re.search(r"`filigree (circuit .*?) --out \S+`", readme)
    ratio = re.search(r"On these (\d+) prompts the sparse model needs (\d+) times fewer", readme)
    if not (picture and command and ratio):
        print("README does not say what its picture shows, by which command, and the ratio")
        return 1
    run = subprocess.run([sys.argv[2], *shlex.split(command[1]), "--json", "--quiet"], capture_output=True,
                         text=True)
    if run.returncode != 0 and "no model" in run.stderr:
        print("skipped:", run.stderr.strip())
        return 77
    if run.returncode != 0:
        print(run.stderr.strip())
        return 1
    models = json.loads(run.stdout)["models"]
    sizes = [model["circuits"]["size"] if "circuits" in model else model["size"] for model in models]
    prompts = models[0]["fit"]["kept"]
    said = [int(number.replace(",", "")) for number in picture.groups()[1:]] + [int(ratio[2])]
    found = [*sizes, round(sizes[0] / sizes[1])]
    for what, a, b in zip(("edges of the dense model", "of the sparse model", "ratio"), said, found):
        print(f"{what}: README {a}, the program {b}")
    print(f"prompts: README {picture[1]} and {ratio[1]}, the program {prompts}")
    return 0 if said == found and {int(picture[1]), int(ratio[1])} == {prompts} else 1


sys.exit(main())
