"""One coroutine waits in a blocking call now and then; dozens of others are late for it."""

import asyncio
import json
import os
import subprocess
import sys
import time

FIX = "--fix" in sys.argv  # a subprocess of asyncio
SCALE = float(os.environ.get("CASE_SCALE", "1"))


async def backup(end):
    count = 0
    while time.monotonic() < end:
        command = ["sleep", str(0.06 * SCALE)]
        if FIX:
            process = await asyncio.create_subprocess_exec(*command)
            await process.wait()
        else:
            subprocess.run(command, check=True)  # CULPRIT
        await asyncio.sleep(0.015 * SCALE)
        count += 1
    return count


async def sensor(end, delays):
    while time.monotonic() < end:
        due = time.monotonic() + 0.005
        await asyncio.sleep(0.005)
        delays.append(time.monotonic() - due)


async def main():
    end, delays = time.monotonic() + 1.0 * SCALE, []
    count, *_ = await asyncio.gather(backup(end), *(sensor(end, delays) for _ in range(30)))
    late = round(sum(delays) / len(delays) * 1e3, 2)
    print(json.dumps({"fix": FIX, "backups": count, "samples": len(delays), "late_ms": late}))


if __name__ == "__main__":
    asyncio.run(main())
