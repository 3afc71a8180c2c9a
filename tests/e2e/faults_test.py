"""Faults that a configuration injects, and a host that dies in the middle of a start."""

import os
import signal
import socket

from support import processes, strict_json
from support.case import wait_until
from support.main import main


def guests(t):
    return [pid for pid, line in processes.below(t.dir).items() if "sandforge-guest" in line]


def config(t, rule):
    return t.write("faults.yaml", "sandbox: {provider: local, wrap: fault, faults: {rules: [%s]}}\n"
                   % rule)


# [cases.D07]
def test_a_host_that_is_killed_between_create_and_persist_leaves_a_machine_that_is_adopted(t):
    path = config(t, "{at: start, do: half_open}")
    child = t.spawn("--config", path, "start", "--session", "s")
    instance = t.path("root", ".sandforge", "s", "guest.instance")
    wait_until(lambda: os.path.exists(instance) and os.path.exists(t.path("root", "s")) and
               os.path.getsize(instance) > 0, "the machine is there")
    child.send_signal(signal.SIGKILL)
    t.finish(child, -signal.SIGKILL)
    machine = t.read("root", ".sandforge", "s", "guest.instance")
    # Another host, without the first one's memory; the session remembers its configuration.
    t.write("faults.yaml", "sandbox: {provider: local}\n")
    ran = t.sf("exec", "s", "--", "sh", "-c", "echo $PPID")
    assert ran.text.split() == [str(pid) for pid in guests(t)], (ran, guests(t))
    assert t.read("root", ".sandforge", "s", "guest.instance") == machine


# [cases.B11]
def test_a_command_whose_answer_is_lost_runs_once(t):
    t.session("--session", "s")
    path = config(t, "{at: spawn, nth: 1, do: lose, error: UNAVAILABLE}")
    ran = t.sf("--config", path, "run", "--session", "s", "--", "sh", "-c", "echo x >> counter",
               code=125)
    assert "injects faults into the provider 'local'" in ran.error_text, ran
    wait_until(lambda: t.sf("exec", "s", "--", "cat", "counter", code=None).text == "x\n",
               "the command ran")
    assert t.sf("exec", "s", "--", "cat", "counter").text == "x\n"


def test_faults_that_cannot_be_are_mistakes_of_the_configuration(t):
    path = config(t, "{at: info, do: cut}")
    checked = t.sf("config", "check", path, code=1)
    assert checked.text.startswith(f"{path}:1:"), checked
    assert '/sandbox/faults/rules/0/do: "cut" is not possible at info' in checked.text, checked


def test_the_proxy_serves_until_a_signal_and_says_what_its_rules_did(t):
    path = t.path("server")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(4)
        proxy = t.spawn("fault-proxy", "--listen", "tcp:127.0.0.1:0", "--to", "unix:" + path,
                        "--rule", "{nth: 2, do: refuse}")
        bound = strict_json.parse(proxy.stdout.readline())
        assert bound["to"] == "unix:" + path, bound
        port = int(bound["listen"].rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port), 60) as client:
            client.sendall(b"hello")
            with server.accept()[0] as served:
                assert served.recv(5) == b"hello"
        try:
            with socket.create_connection(("127.0.0.1", port), 60) as client:
                assert client.recv(1) == b"", "the connection was to be refused"
        except ConnectionResetError:
            pass  # as early as in connect
        proxy.send_signal(signal.SIGTERM)
        ended = t.finish(proxy, 0)
        assert ended.json == {"connections": 2, "struck": [1]}, ended
    os.unlink(path)


def test_a_proxy_that_cannot_be_is_refused(t):
    away = t.sf("fault-proxy", "--listen", "tcp:0.0.0.0:0", "--to", "tcp:127.0.0.1:1", code=2)
    assert "--remote allows it" in away.error_text, away
    typo = t.sf("fault-proxy", "--listen", "tcp:127.0.0.1:0", "--to", "tcp:127.0.0.1:1", "--rule",
                "{do: ctu}", code=125)
    assert "ctu" in typo.error_text, typo


main(globals())
