"""Say from a command line alone what a process is: a shell, a wrapper, a service manager, a program, and which one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["kernel", "manager", "shell", "host", "wrapper", "companion", "program"]
"""What a process is to a launch.

kernel: a kernel thread. manager: starts other people's programs (init, sshd, tmux). shell: takes commands from a
terminal or standard input. host: runs programs of its own user inside itself or below (test runner, notebook,
editor). wrapper: was started to start one program (a script, `sh -c`, timeout). companion: a small tool beside a
program (tee, sleep). program: everything else.

Rule: the name of the executable as argv[0] gives it, for a Python program that of its script or module; an
unknown name is a program. It works because people and packages keep the usual names. It fails for a manager of a
name of its own (a home-made supervisor is a program: what it starts in its own process group is taken for one
launch) and for a program named like one of these.
"""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


SHELLS = _names("ash bash csh dash fish ksh mksh rbash sh tcsh zsh nu xonsh")
MANAGERS = _names(
    "init systemd launchd runit runsv runsvdir s6-svscan s6-supervise openrc-init busybox upstart "
    "containerd containerd-shim containerd-shim-runc-v2 containerd-shim-runc-v1 conmon dockerd docker-init podman "
    "docker-proxy kubelet crio sshd sshd-session sshd-auth dropbear mosh-server telnetd login getty agetty "
    "tmux screen SCREEN zellij byobu abduco dtach cron crond anacron atd supervisord circusd monit pm2 "
    "gnome-terminal-server konsole xterm kitty alacritty wezterm-gui wezterm-mux-server gnome-shell "
    "slurmd slurmstepd raylet gcs_server"
)
HOSTS = _names(
    "pytest py.test tox nox unittest execnet ipykernel_launcher ipykernel ipython ipython3 jupyter notebook "
    "jupyterlab code code-server cursor vim nvim vi emacs nano pycharm idea java node hangdoc"
)
WRAPPERS = _names(
    "nohup env timeout numactl taskset nice ionice chrt setsid setarch stdbuf unbuffer script time strace ltrace "
    "tini dumb-init catatonit su-exec gosu sudo su runuser doas setpriv unshare nsenter prlimit systemd-run cgexec "
    "uv uvx conda mamba micromamba poetry pdm pipenv hatch rye pixi nsys ncu perf py-spy gdb rr valgrind "
    "systemd-inhibit chronic faketime proot bwrap apptainer singularity make just"
)
COMPANIONS = _names(
    "tee sleep cat tail head grep egrep awk gawk mawk sed ts logger cut tr sort uniq wc less more rotatelogs "
    "multilog svlogd cronolog nvidia-smi date true false yes inotifywait stdbuf"
)
PYTHON_OPTIONS_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})
EXECNET_GATEWAY = "import sys;exec(eval(sys.stdin.readline()))"
"""The whole program text of an execnet (pytest-xdist) worker that did not rename itself."""


@dataclass(frozen=True, slots=True)
class PythonCommand:
    """What a Python interpreter was told to run; flags: single letters (no_environment: -E or -I).

    way: "module" (-m), "code" (-c), "script", or "prompt" when nothing was named; program: module, code or path.
    """

    way: Literal["module", "code", "script", "prompt"]
    program: str = ""
    arguments: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()

    @property
    def ignores_environment(self) -> bool:
        """PYTHONPATH has no effect."""
        return bool(self.flags & {"E", "I"})


def base_name(argument: str) -> str:
    """Name the executable of an argv[0]; a login shell's leading dash and a daemon's ": note" are not part of it.

    >>> base_name("/usr/bin/python3.11"), base_name("-bash"), base_name("sshd: user@pts/0"), base_name("")
    ('python3.11', 'bash', 'sshd', '')
    """
    if argument.startswith("["):
        return argument.partition(" ")[0]
    first = argument.partition(":")[0] if ": " in argument else argument
    return first.rpartition("/")[2].removeprefix("-")


def is_python_name(name: str) -> bool:
    """Say whether an executable of this name is a Python interpreter.

    >>> is_python_name("python3.11"), is_python_name("pypy3"), is_python_name("python-config")
    (True, True, False)
    """
    for prefix in ("python", "pypy"):
        if name.startswith(prefix):
            return name.removeprefix(prefix).replace(".", "").removesuffix("t").isdigit() or name == prefix
    return False


def parse_python(argv: tuple[str, ...]) -> PythonCommand | None:
    """Read an interpreter's own options; None when argv[0] is no Python interpreter.

    >>> parse_python(("python", "-u", "-m", "sglang.launch_server", "--tp", "2")).program
    'sglang.launch_server'
    >>> parse_python(("python3", "-Bc", "print(1)")).way, parse_python(("python3", "-W", "ignore", "a.py")).program
    ('code', 'a.py')
    """
    if not argv or not is_python_name(base_name(argv[0])):
        return None
    flags: set[str] = set()
    position = 1
    while position < len(argv):
        word = argv[position]
        if word in PYTHON_OPTIONS_WITH_VALUE:
            position += 2
        elif word == "-" or not word.startswith("-"):
            return PythonCommand("script" if word else "prompt", word, argv[position + 1 :], frozenset(flags))
        elif word.startswith("--") or word[1] in "WX":
            position += 1
        elif word[-1] in "mc":
            way: Literal["module", "code"] = "module" if word[-1] == "m" else "code"
            program = argv[position + 1] if position + 1 < len(argv) else ""
            return PythonCommand(way, program, argv[position + 2 :], frozenset(flags | set(word[1:-1])))
        else:
            flags.update(word[1:])
            position += 1
    return PythonCommand("prompt", flags=frozenset(flags))


def command_head(argv: tuple[str, ...]) -> str:
    """Give the part of a command line that says which program runs: what launcher patterns are searched in.

    For Python "-m MODULE" or "SCRIPT FIRST-ARGUMENT", otherwise argv[0] and its first argument. Only the head is
    searched because an editor, a grep or a driver may carry a launcher's whole command line as an argument.

    >>> command_head(("python", "-u", "-m", "sglang.launch_server", "--tp", "2"))
    '-m sglang.launch_server --tp'
    >>> command_head(("/venv/bin/python", "/venv/bin/vllm", "serve", "model"))
    '/venv/bin/vllm serve'
    >>> command_head(("python", "-c", "run('-m sglang.launch_server')"))
    ''
    """
    python = parse_python(argv)
    program, arguments = (python.program, python.arguments) if python is not None else (argv[0], argv[1:])
    if python is not None and python.way not in {"module", "script"}:
        return ""
    words = ["-m"] if python is not None and python.way == "module" else []
    # An argument of several words is somebody else's command line.
    return " ".join([*words, program, *(word for word in arguments[:1] if " " not in word)])


def is_multiprocessing_child(argv: tuple[str, ...]) -> bool:
    """Say whether this is Python's own child process: spawn_main, resource_tracker or forkserver.

    >>> is_multiprocessing_child(("python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()"))
    True
    """
    python = parse_python(argv)
    return python is not None and python.way == "code" and python.program.startswith("from multiprocessing.")


def is_fork_server(argv: tuple[str, ...]) -> bool:
    """Say whether this is multiprocessing's fork server: the parent of children that somebody else asked for.

    >>> is_fork_server(("python", "-c", "from multiprocessing.forkserver import main; main(6)"))
    True
    """
    return is_multiprocessing_child(argv) and any("multiprocessing.forkserver" in word for word in argv)


def is_resource_tracker(argv: tuple[str, ...]) -> bool:
    """Say whether this is multiprocessing's resource tracker, which ends by itself when nobody needs it any more.

    >>> is_resource_tracker(("python", "-c", "from multiprocessing.resource_tracker import main;main(6)"))
    True
    """
    return is_multiprocessing_child(argv) and any("multiprocessing.resource_tracker" in word for word in argv)


def kind_of(pid: int, argv: tuple[str, ...], comm: str, *, kernel_thread: bool = False) -> Kind:
    """Say what a process is to a launch.

    >>> kind_of(9, ("-bash",), "bash"), kind_of(9, ("bash", "run.sh"), "bash"), kind_of(9, ("timeout", "9", "x"), "x")
    ('shell', 'wrapper', 'wrapper')
    >>> kind_of(9, ("python3", "-m", "pytest"), "python3"), kind_of(9, ("python3", "a.py"), "python3")
    ('host', 'program')
    """
    if kernel_thread:
        return "kernel"
    if not argv:
        return _kind_of_name(comm)
    name = base_name(argv[0])
    if name in SHELLS:
        return _kind_of_shell(argv)
    python = parse_python(argv)
    if python is not None:
        return _kind_of_python(python)
    kind = _kind_of_name(name) if name in KINDS or pid != 1 else "manager"
    return _kind_of_name(comm) if kind == "program" and comm.startswith(("tmux", "screen", "sshd", "systemd")) else kind


def is_called_systemd(argv: tuple[str, ...], comm: str) -> bool:
    """Say whether a process is systemd or a service of its by name, which anybody can give himself.

    >>> is_called_systemd(("/lib/systemd/systemd", "--user"), "systemd"), is_called_systemd(("sshd",), "sshd")
    (True, False)
    """
    return comm.startswith("systemd") or (bool(argv) and base_name(argv[0]).startswith("systemd"))


KINDS: dict[str, Kind] = {
    **dict.fromkeys(COMPANIONS, "companion"),
    **dict.fromkeys(WRAPPERS, "wrapper"),
    **dict.fromkeys(HOSTS, "host"),
    **dict.fromkeys(MANAGERS, "manager"),
}


def _kind_of_name(name: str) -> Kind:
    if name.startswith(("[pytest", "jupyter-")):
        return "host"
    return KINDS.get(name.partition(":")[0], "program")


def _kind_of_python(python: PythonCommand) -> Kind:
    if python.way == "prompt" or (python.way == "code" and python.program.startswith(EXECNET_GATEWAY)):
        return "host"
    if python.way == "code":
        return "program"
    name = python.program.partition(".")[0] if python.way == "module" else base_name(python.program)
    kind = _kind_of_name(name)
    # A Python program named tee or time is somebody's own.
    return kind if kind in {"host", "manager", "wrapper"} else "program"


def _kind_of_shell(argv: tuple[str, ...]) -> Kind:
    words = iter(argv[1:])
    for word in words:
        if word in {"--rcfile", "--init-file"}:
            next(words, None)
        elif word.startswith("--"):
            continue
        elif not word.startswith(("-", "+")) or "c" in word:
            return "wrapper"
        elif "s" in word:
            return "shell"
        elif word[-1] in "oO":
            next(words, None)
    return "shell"
