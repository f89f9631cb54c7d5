#!/usr/bin/env python3
"""How fast text is taken out of files, beside what is used for that in Python, on the same files in one run.

    cargo build --release -p anchorite-formats --example rate
    cargo build --release -p anchorite-formats --bin anchorite-extract
    pip install pypdf pdfminer.six markitdown beautifulsoup4 lxml
    python3 benches/extract.py --messy ../shared/data/messy --corpus ../shared/data/wiki_vital/corpus.jsonl

A folder of 1,000 mixed files is made from the given ones: copies of the messy files, and texts and pages of the corpus.
Every reader gets the files of its kind, one after the other in one process that is already running; the median of three
runs counts.
"""

import argparse
import gzip
import importlib.metadata
import json
import logging
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time
import warnings

RUNS = 3


def texts_of(corpus, most):
    opener = gzip.open if corpus.suffix == ".gz" else open
    with opener(corpus, "rt", encoding="utf-8") as lines:
        for _, line in zip(range(most), lines):
            record = json.loads(line)
            yield record.get("title", ""), record["text"]


def make(folder, messy, corpus):
    """1,000 files: 400 of the messy ones in turn, 300 pages, 300 texts."""
    originals = sorted(path for path in messy.iterdir() if path.suffix != ".jsonl")
    for number in range(400):
        original = originals[number % len(originals)]
        kind = folder / original.suffix[1:]
        kind.mkdir(exist_ok=True)
        shutil.copyfile(original, kind / f"{number:03}-{original.name}")
    (folder / "html").mkdir(exist_ok=True)
    (folder / "txt").mkdir(exist_ok=True)
    texts = list(texts_of(corpus, 6000))
    for number in range(300):
        part = texts[number * 10 : number * 10 + 10]
        body = "".join(f"<h2>{title}</h2><p>{text}</p>" for title, text in part)
        page = f"<!DOCTYPE html><html><head><title>{number}</title><script>var x = 1;</script></head><body>{body}</body></html>"
        (folder / "html" / f"page-{number:03}.html").write_text(page, encoding="utf-8")
        part = texts[3000 + number * 10 : 3000 + number * 10 + 10]
        (folder / "txt" / f"text-{number:03}.txt").write_text("\n\n".join(text for _, text in part), encoding="utf-8")


def with_pypdf(path):
    import pypdf

    reader = pypdf.PdfReader(str(path))
    if reader.is_encrypted:
        return 0
    return sum(len(page.extract_text() or "") for page in reader.pages)


def with_pdfminer(path):
    from pdfminer.high_level import extract_text

    return len(extract_text(str(path)))


def with_markitdown(path, converter=[]):
    from markitdown import MarkItDown

    if not converter:
        converter.append(MarkItDown(enable_plugins=False))
    return len(converter[0].convert(str(path)).text_content or "")


def with_beautifulsoup(path):
    import bs4

    page = bs4.BeautifulSoup(path.read_bytes(), "lxml")
    for element in page(["script", "style", "nav", "footer"]):
        element.decompose()
    return len(page.get_text("\n", strip=True))


def measure(reader, files):
    try:
        reader(files[0])  # Imports are not counted.
    except Exception:
        pass
    seconds, characters, failed = [], 0, 0
    for _ in range(RUNS):
        characters, failed, started = 0, 0, time.perf_counter()
        for path in files:
            try:
                characters += reader(path)
            except Exception:
                failed += 1
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds), characters, failed


def ours(program, arguments):
    lines = [json.loads(subprocess.run([program, *arguments], capture_output=True, check=True).stdout) for _ in range(RUNS)]
    return sorted(lines, key=lambda line: line["seconds"])[RUNS // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messy", type=pathlib.Path, required=True)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--target", type=pathlib.Path, default=pathlib.Path("target/release"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    rate = arguments.target / "examples/rate"
    child = arguments.target / "anchorite-extract"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make(folder, arguments.messy, arguments.corpus)
        total = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(f"1,000 files, {total / 1e6:.1f} MB")
        for what, extra in [("all, in one process", []), ("all, in a limited child", ["--program", str(child)])]:
            line = ours(rate, [*extra, str(folder)])
            speed = line["bytes"] / 1e6 / line["seconds"]
            print(f"{what:32} {line['seconds']:7.2f} s {speed:8.1f} MB/s {line['characters']:10} characters")
        peers = {
            "pdf": [("pypdf", with_pypdf), ("pdfminer.six", with_pdfminer)],
            "html": [("beautifulsoup4", with_beautifulsoup), ("markitdown", with_markitdown)],
        }
        for kind, readers in peers.items():
            files = sorted((folder / kind).iterdir())
            size = sum(path.stat().st_size for path in files)
            line = ours(rate, ["--program", str(child), str(folder / kind)])
            own = line["seconds"]
            print(f"\n{kind}: {len(files)} files, {size / 1e6:.1f} MB")
            print(f"  {'anchorite (limited child)':30} {own:7.2f} s {size / 1e6 / own:8.1f} MB/s {line['characters']:10} characters")
            for package, reader in readers:
                seconds, characters, failed = measure(reader, files)
                label = f"{package} {importlib.metadata.version(package)}"
                print(
                    f"  {label:30} {seconds:7.2f} s {size / 1e6 / seconds:8.1f} MB/s {characters:10} characters, "
                    f"{failed} failed: {seconds / own:.1f} times as long"
                )


if __name__ == "__main__":
    main()
