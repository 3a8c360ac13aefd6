import numpy as np
from numpy.typing import NDArray

def run(
    machine: NDArray[np.void],
    ops: NDArray[np.void],
    items: NDArray[np.void],
    queues: NDArray[np.void],
    locks: NDArray[np.void],
    costs: NDArray[np.float64],
    threads: NDArray[np.int32],
    lock_stats: NDArray[np.void],
    thread_stats: NDArray[np.void],
    totals: NDArray[np.void],
    responses: NDArray[np.uint64],
    events: NDArray[np.void],
    /,
) -> None: ...
