"""Measures what many jobs at once take the real Python client, on a fabric that runs already.

    VENV/bin/python effort.py --base-dir DIR --workers NAME.. [--jobs N]

DIR is the folder of inventory.yaml. The workers take turns. Prints one JSON object:
jobs, seconds from the first to the last, and cpu_seconds of this process meanwhile.
"""

import argparse
import itertools
import json
import os
import time

from norfab.core.client import NFPClient
from norfab.core.inventory import NorFabInventory


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base-dir", required=True)
    parser.add_argument("--workers", required=True, nargs="+", metavar="NAME")
    parser.add_argument("--jobs", type=int, default=500)
    args = parser.parse_args()

    inventory = NorFabInventory(path=os.path.join(args.base_dir, "inventory.yaml"))
    client = NFPClient(inventory, inventory.broker["endpoint"], "effort")
    try:
        for worker in args.workers:  # warm up
            client.run_job("dummy", "echo", workers=[worker])
        began, cpu = time.monotonic(), time.process_time()
        turns = itertools.cycle(args.workers)
        futures = [
            client.submit_job("dummy", "echo", workers=[next(turns)], kwargs={"n": n})
            for n in range(args.jobs)
        ]
        for future in futures:
            future.done_event.wait(120)
            assert future.final_job_snapshot["status"] == "COMPLETED"
        took = {
            "jobs": args.jobs,
            "seconds": time.monotonic() - began,
            "cpu_seconds": time.process_time() - cpu,
        }
        print(json.dumps(took))
    finally:
        client.destroy()


if __name__ == "__main__":
    main()
