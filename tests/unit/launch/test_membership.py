"""From any member's pid the whole launch is found, and nothing else."""

from __future__ import annotations

import ctypes
import fcntl
import os
import pty
import shlex
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from hangdoc.errors import ExitCode, HangdocError
from hangdoc.launch.complaints import SeveralLaunchesError
from hangdoc.launch.find import find_launch
from hangdoc.model.process import Launch
from tests.unit.launch.stage import TP2, Stage

PR_SET_CHILD_SUBREAPER = 36


def pids(launch: Launch) -> set[int]:
    return {process.key.pid for process in launch.processes}


def test_every_member_leads_to_the_same_launch(stage: Stage) -> None:
    """Launcher, schedulers and detokenizer each lead to all four, with the launcher as root."""
    server = stage.run(stage.server("a"), "a")
    for pid in server.pids:
        launch = find_launch(pid)
        assert launch.root.pid == server.pid
        assert pids(launch) == server.pids
        assert launch.engine == "sglang"


def test_a_session_or_process_group_of_its_own_does_not_hide_a_child(stage: Stage) -> None:
    """A child that called setsid or setpgid, and a child of its own, is a member as long as its parent lives."""
    children = {**TP2, "alone": {"argv": ["helper"], "own_session": True}, "group": {"argv": ["x"], "own_group": True}}
    server = stage.run(stage.server("a", children), "a")
    assert pids(find_launch(server.children["alone"])) == server.pids
    assert pids(find_launch(server.children["group"])) == server.pids


def test_a_re_parented_member_is_found_by_its_process_group(stage: Stage) -> None:
    """A double-forked child of a launcher, now a child of init, belongs to the process group's leader's launch."""
    children = {**TP2, "daemon": {"argv": ["helper"], "daemon": True}}
    server = stage.run(stage.server("a", children), "a")
    launch = find_launch(server.children["daemon"])
    member = next(one for one in launch.processes if one.key.pid == server.children["daemon"])
    assert pids(launch) == server.pids
    assert member.ppid != server.pid
    assert member.member_because == f"process group of {server.pid}"


def test_a_double_forked_child_in_a_session_of_its_own_is_not_guessed_at(stage: Stage) -> None:
    """Nothing visible links it to the launch: it stays out."""
    children = {**TP2, "lost": {"argv": ["helper"], "daemon": True, "own_session": True}}
    server = stage.run(stage.server("a", children), "a")
    assert pids(find_launch(server.pid)) == server.pids - {server.children["lost"]}


@pytest.mark.parametrize(
    "wrapper",
    [
        "bash -c '{server}; true'",
        "sh -c '{server}; true'",
        "timeout 1000 {server}",
        "nohup {server}",
        "bash -c 'timeout 1000 {server} | tee /dev/null; true'",
        "bash -c '(sleep 1000 < /dev/null & echo $! > sleeper); {server}; true'",
    ],
)
def test_a_wrapper_is_a_member_and_leads_to_the_launch(stage: Stage, wrapper: str) -> None:
    """`bash -c`, timeout, nohup and the tee beside the server belong to it, and each leads to it."""
    command = wrapper.format(server=shlex.join(stage.server("a")))
    process = stage.start(shlex.split(command), cwd=stage.directory, stdout=subprocess.DEVNULL)
    server = stage.wait_for("a")
    launch = find_launch(process.pid)
    assert launch.root.pid == server.pid
    assert pids(launch) >= server.pids | {process.pid}
    for pid in pids(launch):
        assert find_launch(pid).processes == launch.processes
    if (stage.directory / "sleeper").exists():
        stage.end(int((stage.directory / "sleeper").read_text()))


def test_a_script_that_runs_one_launch_is_a_member(stage: Stage) -> None:
    """`bash run.sh` belongs to the launch that it starts, found from either."""
    script = stage.script(shlex.join(stage.server("a")) + "\ntrue\n")
    server = stage.wait_for("a")
    assert pids(find_launch(script.pid)) == pids(find_launch(server.pid)) == server.pids | {script.pid}


def test_a_script_with_another_program_is_no_member(stage: Stage) -> None:
    """A script that also runs somebody's own Python belongs to nobody; it still leads to its only launch."""
    server, other = shlex.join(stage.server("a")), shlex.join(stage.program("other"))
    script = stage.script(f"{other} &\n{server} &\nwait\n")
    actor, bystander = stage.wait_for("a"), stage.wait_for("other")
    assert pids(find_launch(script.pid)) == pids(find_launch(actor.pid)) == actor.pids
    assert pids(find_launch(bystander.pid)) == bystander.pids


def test_a_script_that_runs_two_launches(stage: Stage) -> None:
    """`a & b &` in a script: each is found alone, the script's pid is answered with a list and exit code 2."""
    first, second = shlex.join(stage.server("a")), shlex.join(stage.server("b"))
    script = stage.script(f"{first} &\n{second} &\nwait\n")
    check_two(stage, script.pid)


def test_an_interactive_shell_that_runs_two_launches(stage: Stage) -> None:
    """Two jobs of a shell on a terminal are two launches; the shell and what only shares its session is neither."""
    master, slave = pty.openpty()
    shell = stage.start(["bash", "--norc", "-i"], stdout=slave, stderr=slave, preexec_fn=lambda: take_terminal(slave))
    os.close(slave)
    for name in ("a", "b", "other"):
        command = stage.program(name) if name == "other" else stage.server(name)
        os.write(master, f"{shlex.join(command)} < /dev/null &\n".encode())
    stage.wait_for("other")
    check_two(stage, shell.pid)
    os.close(master)


def take_terminal(slave: int) -> None:
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    os.dup2(slave, 0)


def check_two(stage: Stage, above: int) -> None:
    first, second = stage.wait_for("a"), stage.wait_for("b")
    assert pids(find_launch(first.children["tp0"])) == first.pids
    assert pids(find_launch(second.pid)) == second.pids
    with pytest.raises(SeveralLaunchesError) as caught:
        find_launch(above)
    assert caught.value.exit_code == ExitCode.USAGE
    assert {one.root.pid: one.member_count for one in caught.value.candidates} == {first.pid: 4, second.pid: 4}
    assert f"{first.pid}  started " in caught.value.remedy
    assert "4 processes: " in caught.value.remedy
    assert "sglang.launch_server" in caught.value.remedy


def test_one_python_parent_of_two_launches(stage: Stage) -> None:
    """A home-made supervisor in the same process group as both launches keeps them apart."""
    driver = stage.start(stage.driver(stage.server("a"), stage.server("b")))
    check_two(stage, driver.pid)


def test_a_process_of_one_launch_that_the_supervisor_adopts_is_not_of_the_other(stage: Stage) -> None:
    """A double-forked scheduler whose new parent is the supervisor of two launches is mixed into neither."""
    children = {**TP2, "tp2": {"argv": ["sglang::scheduler_TP2"], "daemon": True}}
    driver = stage.start(stage.driver(stage.server("a", children), stage.server("b")))
    first, second = stage.wait_for("a"), stage.wait_for("b")
    adopted = first.children["tp2"]
    assert int(Path(f"/proc/{adopted}/stat").read_text().rpartition(")")[2].split()[1]) == driver.pid
    assert pids(find_launch(second.pid)) == second.pids
    assert pids(find_launch(first.pid)) == first.pids - {adopted}
    assert pids(find_launch(adopted)) == {adopted}


def test_a_supervisor_of_one_launch_is_no_member(stage: Stage) -> None:
    """It leads to the launch but does not belong to it."""
    driver = stage.start(stage.driver(stage.server("a")))
    server = stage.wait_for("a")
    assert pids(find_launch(driver.pid)) == server.pids


def test_an_own_script_with_engine_children_is_the_launcher(stage: Stage) -> None:
    """A script that uses the engine as a library is known by its children's titles."""
    program = stage.run(stage.program("offline", TP2), "offline")
    launch = find_launch(program.children["tp1"])
    assert launch.root.pid == program.pid
    assert launch.engine == "sglang"
    assert pids(launch) == program.pids


def test_two_own_scripts_of_one_parent_are_two_launches(stage: Stage) -> None:
    """Two scripts that use the engine as a library, of one Python parent, are kept apart."""
    driver = stage.start(stage.driver(stage.program("a", TP2), stage.program("b", TP2)))
    first, second = stage.wait_for("a"), stage.wait_for("b")
    assert pids(find_launch(first.pid)) == first.pids
    with pytest.raises(SeveralLaunchesError):
        find_launch(driver.pid)
    assert pids(find_launch(second.children["tp0"])) == second.pids


def test_two_servers_in_multiprocessing_children_of_one_driver(stage: Stage) -> None:
    """A driver that runs each server in a child of its own: the child is the launcher, the two are kept apart."""
    driver = stage.run(stage.program("d", {n: {"spawn": True, "children": TP2} for n in ("one", "two")}), "d")
    first, second = stage.wait_for("d.one"), stage.wait_for("d.two")
    for server in (first, second):
        launch = find_launch(server.children["tp1"])
        assert (launch.root.pid, pids(launch)) == (server.pid, server.pids)
        assert [process.role for process in launch.processes if process.key == launch.root] == ["launcher"]
    with pytest.raises(SeveralLaunchesError):
        find_launch(driver.pid)
    stage.end(driver.pid)
    assert pids(find_launch(second.children["tp0"])) == second.pids


def test_a_program_of_no_known_engine(stage: Stage) -> None:
    """From any of its processes the topmost program of the process group is the root."""
    children = {"one": {"argv": ["worker"]}, "own": {"argv": ["worker"], "own_group": True}}
    program = stage.run(stage.program("p", children), "p")
    for pid in program.pids:
        launch = find_launch(pid)
        assert (launch.root.pid, launch.engine, pids(launch)) == (program.pid, "generic", program.pids)


def test_a_single_c_program(stage: Stage) -> None:
    """A process that is not Python is a launch of the generic engine."""
    process = stage.start(["sleep", "1000"])
    launch = find_launch(process.pid)
    assert (launch.engine, pids(launch)) == ("generic", {process.pid})
    stage.end(process.pid)


def test_two_programs_of_a_script_are_two(stage: Stage) -> None:
    """A script with two programs of no known engine is answered with both."""
    first, second = shlex.join(stage.program("a")), shlex.join(stage.program("b"))
    script = stage.script(f"{first} &\n{second} &\nwait\n")
    roots = {stage.wait_for("a").pid, stage.wait_for("b").pid}
    with pytest.raises(SeveralLaunchesError) as caught:
        find_launch(script.pid)
    assert {one.root.pid for one in caught.value.candidates} == roots


def test_look_alikes_are_no_launch(stage: Stage) -> None:
    """An argument that names a launcher (an editor, a grep, Python code) makes no launch."""
    server = stage.run(stage.server("a"), "a")
    code = "import sys; sys.stdout.write('x'); sys.stdout.flush(); open(sys.argv[1]).read()"
    argv = [sys.executable, "-c", code, str(stage.lifeline), "-m", "sglang.launch_server"]
    look_alike = stage.start(argv, stdout=subprocess.PIPE)
    assert look_alike.stdout is not None
    assert look_alike.stdout.read(1) == b"x"
    assert find_launch(look_alike.pid).engine == "generic"
    proc = stage.proc_of(*server.pids, look_alike.pid)
    assert find_launch(proc=proc).root.pid == server.pid


def test_what_a_shell_pipes_a_launch_into_is_no_member(stage: Stage) -> None:
    """By job control the launcher leads the process group of its pipeline: tee there belongs to it, the user's own
    program, child of the living shell, does not."""
    words = [stage.server("a"), ["tee", "/dev/null"], stage.program("filter")]
    script = f"set -m\n{' | '.join(map(shlex.join, words))} &\nwait\n"
    stage.script(script, stdout=subprocess.DEVNULL)
    server, reader = stage.wait_for("a"), stage.wait_for("filter")
    launch = find_launch(server.pid)
    assert pids(launch) >= server.pids
    assert "tee /dev/null" in {one.title for one in launch.processes}
    assert not pids(launch) & reader.pids


def test_without_a_pid_the_only_launch_is_taken(stage: Stage) -> None:
    """One launch of the calling user: found without a pid; two: exit code 2 with a list; none: 2 as well."""
    first, second = stage.run(stage.server("a"), "a"), stage.run(stage.server("b"), "b")
    assert find_launch(proc=stage.proc_of(*first.pids)).root.pid == first.pid
    (stage.directory / "proc").rename(stage.directory / "proc1")
    with pytest.raises(SeveralLaunchesError):
        find_launch(proc=stage.proc_of(*first.pids, *second.pids))
    (stage.directory / "proc").rename(stage.directory / "proc2")
    with pytest.raises(HangdocError, match="no SGLang, vLLM or torchrun launch of yours is running") as caught:
        find_launch(proc=stage.proc_of())
    assert caught.value.exit_code == ExitCode.USAGE


LOOK = (
    "import sys; from hangdoc.launch.find import find_launch\n"
    "for pid in map(int, sys.argv[1:]): print(*sorted(p.key.pid for p in find_launch(pid).processes), flush=True)"
)


def test_hangdoc_started_from_inside_a_launch(stage: Stage) -> None:
    """A hook of the server that calls hangdoc: the server is a member, hangdoc and the hook's shell are not."""
    os.mkfifo(stage.directory / "go")
    os.mkfifo(stage.directory / "answer")
    (stage.directory / "look.py").write_text(LOOK)
    look = shlex.join([sys.executable, str(stage.directory / "look.py")])
    hook = f"read pid < {stage.directory}/go; {look} $pid > {stage.directory}/answer; true"
    server = stage.run(stage.server("a", {**TP2, "hook": {"argv": ["sh", "-c", hook], "executable": "sh"}}), "a")
    (stage.directory / "go").write_text(f"{server.pid}\n")
    found = set(map(int, (stage.directory / "answer").read_text().split()))
    assert found == server.pids - {server.children["hook"]}


def test_hangdoc_and_its_callers_are_no_members(stage: Stage) -> None:
    """A script that runs a server and then hangdoc is not of the launch, except when its pid is what was given."""
    (stage.directory / "look.py").write_text(LOOK)
    look = shlex.join([sys.executable, str(stage.directory / "look.py")])
    text = f"{shlex.join(stage.server('a'))} &\nread answer < {stage.directory}/go\n{look} $! $$\nwait\n"
    os.mkfifo(stage.directory / "go")
    script = stage.script(text, stdout=subprocess.PIPE)
    server = stage.wait_for("a")
    (stage.directory / "go").write_text("now\n")
    assert script.stdout is not None
    from_server, from_script = (set(map(int, script.stdout.readline().split())) for _ in range(2))
    assert from_server == server.pids
    assert from_script == server.pids | {script.pid}


def test_a_member_that_hangdoc_adopted(stage: Stage) -> None:
    """Under a subreaper (hangdoc that started the launch may be one) a double-forked member has it as its parent."""
    libc = ctypes.CDLL(None)
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1) == 0
    try:
        server = stage.run(stage.server("a", {**TP2, "daemon": {"argv": ["helper"], "daemon": True}}), "a")
        launch = find_launch(server.children["daemon"])
        adopted = next(one for one in launch.processes if one.key.pid == server.children["daemon"])
        assert (pids(launch), adopted.ppid) == (server.pids, os.getpid())
        stage.end(server.children["daemon"])
        os.waitpid(server.children["daemon"], 0)
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0)


def test_a_container_whose_first_process_is_the_launcher(tmp_path: Path) -> None:
    """Everything that it adopts was its own."""
    fake(tmp_path, 1, 0, "python -m sglang.launch_server --tp 2")
    fake(tmp_path, 8, 1, "sglang::scheduler_TP0")
    fake(tmp_path, 9, 1, "helper", group=9)
    assert pids(find_launch(9, proc=tmp_path)) == {1, 8, 9}


def test_a_container_whose_first_process_is_a_wrapper(tmp_path: Path) -> None:
    """tini or `sh -c` as pid 1 belongs to its only launch."""
    fake(tmp_path, 1, 0, "tini -- python -m sglang.launch_server")
    fake(tmp_path, 7, 1, "python -m sglang.launch_server")
    fake(tmp_path, 8, 7, "sglang::scheduler_TP0", group=7)
    assert pids(find_launch(1, proc=tmp_path)) == pids(find_launch(8, proc=tmp_path)) == {1, 7, 8}


def test_a_test_runner_named_by_its_pid(tmp_path: Path) -> None:
    """Never climbed into, but a program like any other when it is what the user asks about."""
    fake(tmp_path, 7, 1, "python -m pytest")
    fake(tmp_path, 8, 7, "python worker.py", group=7)
    assert pids(find_launch(7, proc=tmp_path)) == {7, 8}
    assert pids(find_launch(8, proc=tmp_path)) == {8}


def test_a_loop_in_the_table_ends(tmp_path: Path) -> None:
    """Two processes that name each other as parent (read while both were reused) are no reason to hang."""
    fake(tmp_path, 7, 8, "a", group=7)
    fake(tmp_path, 8, 7, "b", group=7)
    assert 7 in pids(find_launch(7, proc=tmp_path))


def fake(proc: Path, pid: int, ppid: int, command: str, group: int = 0) -> None:
    home = proc / str(pid)
    home.mkdir()
    group = group or pid
    (home / "stat").write_text(f"{pid} (x) S {ppid} {group} {group} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 4096 3 0")
    (home / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in command.split()))
