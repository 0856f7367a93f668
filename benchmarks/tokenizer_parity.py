"""Our tokenizer beside the Java one of the COCO evaluation, caption by caption.

    python benchmarks/tokenizer_parity.py                  # all COCO captions in the wheel
    python benchmarks/tokenizer_parity.py captions.txt     # one caption a line

Needs java, for the comparison only, and pycocoevalcap, whose wheel holds the jar and the captions.
Prints how many captions differ, and which; and how many our tokenizer does in a second.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pycocoevalcap.tokenizer.ptbtokenizer as reference

from metrics import coco_captions
from sightline.text.tokenizer import tokenize


def java_tokens(captions: list[str]) -> list[list[str]]:
    """What the COCO evaluation counts; words it joins by a no-break space are two to BLEU."""
    folder = Path(reference.__file__).parent
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write("\n".join(captions))
        file.flush()
        command = ["java", "-cp", str(folder / reference.STANFORD_CORENLP_3_4_1_JAR)]
        command += ["edu.stanford.nlp.process.PTBTokenizer", "-preserveLines", "-lowerCase"]
        done = subprocess.run([*command, file.name], capture_output=True, check=True)
    lines = done.stdout.decode().split("\n")[: len(captions)]
    kept = (
        [word for word in line.split(" ") if word not in reference.PUNCTUATIONS] for line in lines
    )
    return [[word for word in words if word] for words in kept]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("captions", type=Path, nargs="?")
    options = parser.parse_args()
    if shutil.which("java") is None:
        sys.exit("java is not installed: there is nothing to compare with")
    if options.captions:
        captions = options.captions.read_text(encoding="utf-8").splitlines()
    else:
        captions = [caption for captions in coco_captions() for caption in captions]
    captions = [caption.replace("\n", " ") for caption in captions]
    expected = java_tokens(captions)
    start = time.process_time()
    tokenized = [tokenize(caption) for caption in captions]
    seconds = time.process_time() - start
    rows = zip(captions, tokenized, expected, strict=True)
    different = [row for row in rows if row[1] != row[2]]
    for caption, ours, theirs in different:
        print(f"{caption!r}\n  ours   {' '.join(ours)}\n  theirs {' '.join(theirs)}")
    again = sum(tokenize(" ".join(tokens)) != tokens for tokens in tokenized)
    count = len(captions)
    rate = 1e5 * len(different) / count
    print(f"\n{len(different)} of {count:,} captions differ: {rate:.1f} in 100,000")
    print(f"{again} change when tokenized a second time")
    print(f"{count / seconds:,.0f} captions a second, one thread, memory of words empty at first")


if __name__ == "__main__":
    main()
