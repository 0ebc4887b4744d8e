# SPDX-License-Identifier: Apache-2.0
"""python3 -m determined.launch.wrap_rank RANK -- COMMAND...: each line that the command prints begins with "[rank=N] "."""
import subprocess
import sys
import threading


def pass_on(source, target, head):
    for line in iter(source.readline, b""):
        target.write(head + line)
        target.flush()


def main(arguments):
    if len(arguments) < 3 or arguments[1] != "--":
        sys.exit("usage: python3 -m determined.launch.wrap_rank RANK -- COMMAND...")
    with subprocess.Popen(arguments[2:], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        head = f"[rank={arguments[0]}] ".encode()
        threads = [threading.Thread(target=pass_on, args=(process.stdout, sys.stdout.buffer, head)),
                   threading.Thread(target=pass_on, args=(process.stderr, sys.stderr.buffer, head))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        status = process.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
