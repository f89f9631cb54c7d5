"""hnswlib and faiss beside `anchorite bench search --save DIR`, on the same vectors, in one run.

    anchorite bench search big.kb --vectors 1000000 --save vectors --json > ours.json
    python3 benches/vectors.py vectors 384 ours.json

Needs numpy and hnswlib from the package index (faiss-cpu is measured too where it is installed). Same connectivity (16), same
breadth while building (128), all processors for building, one for searching; breadth of searching raised until the recall
is at least 0.98, as our index does.
"""

import json
import sys
import time
from pathlib import Path

import numpy


def quantile(times, share):
    times = sorted(times)
    return times[min(int(len(times) * share), len(times) - 1)] * 1000


def exact(vectors, queries, k=10):
    nearest = []
    for query in queries:
        scores = vectors @ query
        best = numpy.argpartition(-scores, k)[:k]
        nearest.append(set(best.tolist()))
    return nearest


def measured(name, built, add_seconds, set_breadth, search, vectors, queries, wanted):
    for breadth in (16, 32, 48, 64, 96, 128, 192, 256, 512, 1024):
        set_breadth(breadth)
        found = [search(query) for query in queries[: len(wanted)]]
        recall = sum(len(w & set(f)) for w, f in zip(wanted, found)) / sum(len(w) for w in wanted)
        if recall >= 0.98:
            break
    times = []
    for query in queries:
        started = time.perf_counter()
        search(query)
        times.append(time.perf_counter() - started)
    return {
        "name": name,
        "built_per_second": built / add_seconds,
        "breadth": breadth,
        "recall": recall,
        "p50_ms": quantile(times, 0.5),
        "p99_ms": quantile(times, 0.99),
    }


def main():
    folder, dim = Path(sys.argv[1]), int(sys.argv[2])
    ours = json.loads(Path(sys.argv[3]).read_text()) if len(sys.argv) > 3 else None
    vectors = numpy.fromfile(folder / "vectors.f32", dtype=numpy.float32).reshape(-1, dim)
    queries = numpy.fromfile(folder / "queries.f32", dtype=numpy.float32).reshape(-1, dim)
    wanted = exact(vectors, queries[:50])
    rows = []

    import hnswlib

    index = hnswlib.Index(space="ip", dim=dim)
    index.init_index(max_elements=len(vectors), M=16, ef_construction=128)
    started = time.perf_counter()
    index.add_items(vectors, numpy.arange(len(vectors)))
    seconds = time.perf_counter() - started
    index.set_num_threads(1)
    search = lambda query: index.knn_query(query, k=10)[0][0].tolist()
    rows.append(measured("hnswlib", len(vectors), seconds, index.set_ef, search, vectors, queries, wanted))
    del index

    try:
        import faiss
    except ImportError:
        faiss = None
    if faiss:
        graph = faiss.IndexHNSWFlat(dim, 16, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = 128
        started = time.perf_counter()
        graph.add(vectors)
        seconds = time.perf_counter() - started
        faiss.omp_set_num_threads(1)

        def breadth(value):
            graph.hnsw.efSearch = value

        search = lambda query: graph.search(query[None], 10)[1][0].tolist()
        rows.append(measured("faiss", len(vectors), seconds, breadth, search, vectors, queries, wanted))

    if ours:
        dense = ours["rows"][0]
        rows.insert(0, {"name": "anchorite", "built_per_second": ours["graph_per_second"], "recall": dense["recall"],
                        "p50_ms": dense["p50_ms"], "p99_ms": dense["p99_ms"]})
    print(json.dumps(rows, indent=2))


main()
