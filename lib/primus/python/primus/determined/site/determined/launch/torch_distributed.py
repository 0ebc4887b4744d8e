# SPDX-License-Identifier: Apache-2.0
"""python3 -m determined.launch.torch_distributed [TORCHRUN OPTIONS --] COMMAND...: as many processes as the executor has slots, by
torchrun, which meets the other executors by the PET_ variables that Primus sets."""
import os
import sys

from determined import _state


def main(arguments):
    options, command = (arguments[:arguments.index("--")], arguments[arguments.index("--") + 1:]) if "--" in arguments else ([], arguments)
    if not command:
        sys.exit("usage: python3 -m determined.launch.torch_distributed [OPTIONS --] COMMAND...")
    run = ["python3", "-m", "torch.distributed.run", f"--nproc_per_node={_state.slots()}", "--max_restarts=0", *options]
    if os.path.basename(command[0]).startswith("python"):
        run, command = run, command[1:]
    else:
        run.append("--no_python")
    os.execvp(run[0], run + command)


if __name__ == "__main__":
    main(sys.argv[1:])
