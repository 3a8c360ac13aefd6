"""A joblib job on threads: word statistics and checksums of many documents."""

import collections
import hashlib
import random
import time

import joblib

DOCUMENTS = 2_000


def document(number: int) -> str:
    """Make one document, always the same."""
    chance = random.Random(number)
    words = [f"word{int(chance.paretovariate(0.7)) % 5000}" for _ in range(1_500)]
    return " ".join(words)


def examine(text: str) -> tuple[list[tuple[str, int]], str]:
    """Count the words of a document and fingerprint it."""
    counted = collections.Counter(word.strip("0") for word in text.split())
    digest = hashlib.pbkdf2_hmac("sha256", text.encode(), b"salt", 150).hex()
    return counted.most_common(10), digest


def main() -> None:
    """Run it and print how long it took: wall and CPU seconds."""
    texts = [document(number) for number in range(DOCUMENTS)]
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(2):
        parallel = joblib.Parallel(n_jobs=4, backend="threading")
        results = parallel(joblib.delayed(examine)(text) for text in texts)
        assert len(results) == DOCUMENTS
    print(time.perf_counter() - wall, time.process_time() - cpu)


if __name__ == "__main__":
    main()
