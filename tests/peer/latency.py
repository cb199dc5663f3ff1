"""Measures run_job of the real Python client, one call after the other, on a fabric that runs already.

    VENV/bin/python latency.py --base-dir DIR [--calls N]

DIR is the folder of inventory.yaml. Prints a JSON list: seconds of each call, in order.
"""

import argparse
import json
import os
import time

from norfab.core.client import NFPClient
from norfab.core.inventory import NorFabInventory

WORKER = ["dummy-worker-1"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base-dir", required=True)
    parser.add_argument("--calls", type=int, default=100)
    args = parser.parse_args()

    inventory = NorFabInventory(path=os.path.join(args.base_dir, "inventory.yaml"))
    client = NFPClient(inventory, inventory.broker["endpoint"], "latency")
    try:
        for _ in range(20):  # warm up
            client.run_job("dummy", "echo", workers=WORKER)
        times = []
        for n in range(args.calls):
            began = time.monotonic()
            result = client.run_job("dummy", "echo", workers=WORKER, kwargs={"n": n})
            times.append(time.monotonic() - began)
            assert result[WORKER[0]]["result"]["kwargs"] == {"n": n}
        print(json.dumps(times))
    finally:
        client.destroy()


if __name__ == "__main__":
    main()
