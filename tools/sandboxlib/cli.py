# SPDX-License-Identifier: Apache-2.0
"""The command line of tools/sandbox."""
import argparse
import os
import shlex

from . import cluster, host, network, web
from .state import SOURCE, Cluster


def _parser():
    parser = argparse.ArgumentParser(
        prog="tools/sandbox", description="Clusters of container hosts n1 … nN that run systemd, with Primus on them.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name, text, node=False):
        sub = commands.add_parser(name, help=text, description=text)
        sub.add_argument("--name", default=None, metavar="CLUSTER",
                         help="which cluster (default: $PRIMUS_SANDBOX_NAME, else 'default')")
        if node:
            sub.add_argument("node", metavar="NODE")
        return sub

    up = command("up", "boot a cluster: masterd on n1, an agent on every host")
    up.add_argument("--nodes", type=int, default=3, metavar="N")
    up.add_argument("--bind", action="append", default=[], metavar="DIR:PATH", help="a directory, or file, that all hosts share")
    up.add_argument("--conf", action="append", default=[], metavar="FILE:Section.Key=VALUE",
                    help="a setting in masterd.conf or agentd.conf")
    up.add_argument("--build", default=os.path.join(SOURCE, "build"), metavar="DIR", help="meson build directory")
    up.add_argument("--no-rebuild", action="store_true", help="install what is built, without looking for changes")
    up.add_argument("--no-primus", action="store_true", help="boot the hosts, start no daemon; a build is optional")
    up.add_argument("--root", metavar="DIR", help="boot hosts with nothing of Primus from this root tree; all of a host is in memory")
    down = command("down", "remove a cluster and everything it made")
    down.add_argument("--all", action="store_true", help="every cluster on this machine")
    down.add_argument("--prefix", default="", help="with --all: only those whose name begins so")
    command("prepare", "make the root tree of the hosts, which `up` otherwise does when it is missing")
    command("clean", "remove the root tree of the hosts too, unless a cluster is up")
    status = command("status", "which hosts are up")
    status.add_argument("--json", action="store_true")
    command("env", "print what makes programs on this machine speak to n1: eval \"$(tools/sandbox env)\"")
    page = command("web", "show the cluster in a browser of this machine: prints the address, and serves until Ctrl-C")
    page.add_argument("--user", default="ml", help="as this user of n1")
    # Parsed by tools/sandbox itself, before all this is loaded; named here for the help.
    command("exec", "run a command in a host: exec [--user U] [--cwd DIR] NODE -- CMD …", node=True)
    command("cut", "pull a host's network cable", node=True)
    command("heal", "plug it in again", node=True)
    command("crash", "cut a host's power", node=True)
    command("boot", "boot a host that was crashed", node=True)
    return parser


def main(argv):
    args = _parser().parse_args(argv)
    name = args.name or os.environ.get("PRIMUS_SANDBOX_NAME") or "default"
    if args.command == "up":
        build = None if args.root else os.path.abspath(args.build)
        if build and args.no_primus and not os.path.isdir(build):
            build = None
        cluster.up(name, args.nodes, args.bind, args.conf, build, not args.no_rebuild, not args.no_primus and not args.root, args.root)
    elif args.command == "down":
        cluster.down_all(args.prefix) if args.all else cluster.down(name)
    elif args.command == "web":
        web.show(name, args.user)
    elif args.command == "prepare":
        cluster.prepare()
    elif args.command == "clean":
        if not cluster.clean():
            print("there are clusters, which need the root tree; it stays")
    elif args.command == "status":
        cluster.print_status(args.name, args.json)
    elif args.command == "env":
        for key, value in cluster.environment(Cluster(name)).items():
            print(f"export {key}={shlex.quote(value)}")
    else:
        node = Cluster(name).require().node(args.node)
        if args.command in ("cut", "heal"):
            node.require_leader()
            network.set_cable(node, args.command == "heal")
        elif args.command == "crash":
            host.crash(node)
        elif args.command == "boot":
            cluster.boot(node)
    return 0
