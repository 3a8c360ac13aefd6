"""A pipeline of two thread pools: records are decoded, then packed and fingerprinted."""

import hashlib
import json
import time
import zlib
from concurrent.futures import ThreadPoolExecutor, as_completed

BLOCKS = 7_000


def block(number: int) -> bytes:
    """Make one compressed block of records, always the same."""
    records = [
        {
            "key": f"{number}-{i}",
            "value": (number * 7919 + i * 104729) % 99_991,
            "tag": "x" * (i % 9),
        }
        for i in range(60)
    ]
    return zlib.compress(json.dumps(records).encode())


def decode(data: bytes) -> list[dict[str, object]]:
    """Decode a block and keep its good records."""
    records = json.loads(zlib.decompress(data))
    return [record for record in records if record["value"] % 3]


def pack(records: list[dict[str, object]]) -> tuple[int, str]:
    """Pack records again and fingerprint them."""
    data = zlib.compress(json.dumps(records, sort_keys=True).encode(), 9)
    return len(data), hashlib.sha256(data).hexdigest()


def main() -> None:
    """Run it and print how long it took: wall and CPU seconds."""
    blocks = [block(number) for number in range(BLOCKS)]
    wall, cpu = time.perf_counter(), time.process_time()
    packed: list[tuple[int, str]] = []
    with ThreadPoolExecutor(4, "decode") as decoders, ThreadPoolExecutor(2, "pack") as packers:
        decoding = [decoders.submit(decode, data) for data in blocks]
        packing = [packers.submit(pack, done.result()) for done in as_completed(decoding)]
        packed.extend(done.result() for done in as_completed(packing))
    assert len({digest for _size, digest in packed}) == BLOCKS
    print(time.perf_counter() - wall, time.process_time() - cpu)


if __name__ == "__main__":
    main()
