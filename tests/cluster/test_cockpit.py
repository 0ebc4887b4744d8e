# SPDX-License-Identifier: Apache-2.0
"""The page in Cockpit, in a real browser: who logs in there with the host's password is that user for masterd, and nobody more."""
import base64
import contextlib
import http.client
import ssl

import pytest
from browser import Browser
from web import dial_in

PASSWORDS = {"ml": "train-42", "eve": "look-17"}
TALKS = {"name": "talks", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 32,
                                    "command": r"printf '<img src=x onerror=alert(1)> \342\200\256turned\n'; exec sleep 600"}]}


class Cockpit:
    PORT = 9090

    def __init__(self, cluster):
        self.cluster = cluster
        for user, password in PASSWORDS.items():
            cluster.exec("n1", "sh", "-c", f"echo {user}:{password} | chpasswd")
        cluster.exec("n1", "systemctl", "start", "cockpit.socket")

    def connect(self, timeout):
        return dial_in(self.cluster.leader("n1"), ("127.0.0.1", self.PORT), timeout)


    def get(self, path, **headers):
        """Status, and the headers of the answer."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # its own, made at its first start
        with context.wrap_socket(self.connect(20)) as s:
            lines = "".join(f"{name}: {value}\r\n" for name, value in {"Host": f"127.0.0.1:{self.PORT}", "Connection": "close", **headers}.items())
            s.sendall(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
            response = http.client.HTTPResponse(s)
            response.begin()
            return response.status, response.headers


class Inside(Browser):
    """Cockpit's frame of the page."""

    def __init__(self, cockpit, profile):
        super().__init__(cockpit, profile, "https")

    def enter(self):
        from selenium.webdriver.common.by import By
        from selenium.webdriver.support.expected_conditions import frame_to_be_available_and_switch_to_it
        from selenium.webdriver.support.wait import WebDriverWait
        self.driver.switch_to.default_content()
        WebDriverWait(self.driver, 40).until(frame_to_be_available_and_switch_to_it((By.CSS_SELECTOR, "iframe[name='cockpit1:localhost/primus']")))

    def log_in(self, user, address):
        """address: of the page, as somebody would send it."""
        self.open(f"primus{address}")
        self.wait(lambda: self.run("return document.querySelector('#login-user-input')?.checkVisibility() && !document.querySelector('#login-button').disabled"), 40,
                  what="Cockpit's question who one is")
        for field, value in (("user", user), ("password", PASSWORDS[user])):
            self.driver.find_element("id", f"login-{field}-input").send_keys(value)
        self.driver.find_element("id", "login-button").click()
        self.enter()

    def go(self, address):
        self.run("location.hash = arguments[0]", address)


@pytest.fixture(scope="module")
def opened():
    with contextlib.ExitStack() as stack:
        yield stack, {}


@pytest.fixture
def inside(cluster, opened, tmp_path_factory):
    stack, browsers = opened

    def get(user, address):
        if user not in browsers:
            b = browsers[user] = Inside(Cockpit(cluster), tmp_path_factory.mktemp("profile"))
            stack.callback(b.close)
            b.log_in(user, address)
        else:
            browsers[user].go(address)
        return browsers[user]
    return get


def test_a_link_survives_the_login_and_a_job_its_life(cluster, inside):
    job = cluster.submit(TALKS)
    cluster.wait_state(job, "RUNNING")
    b = inside("ml", f"#/job/{job}/logs")
    b.wait("<img src=x onerror=alert(1)> ‹202E›turned", 40)
    assert b.run("return location.hash") == f"#/job/{job}/logs"
    b.go("#/submit")
    b.wait("Submit a job")
    b.fill("textarea", '{"name": "mine", "role": [{"roleName": "w", "num": 1, "vcores": 0.1, "memoryMb": 32, "command": "exec sleep 600"}]}')
    b.wait("It would start now: 1 executor.")
    b.press("Submit")
    b.wait("1 executor runs")
    mine = int(b.run("return location.hash").split("/")[-1])
    assert cluster.status(mine)["owner"] == 1000
    # By the stream of events: nothing on the page was touched.
    cluster.kill(mine)
    b.wait("Killed after")
    assert b.complaints() == []
    cluster.kill(job)


def test_another_user_and_what_a_rule_allows(cluster, inside):
    job = cluster.submit(TALKS)
    cluster.wait_state(job, "RUNNING")
    b = inside("eve", f"#/job/{job}")
    b.wait("You may not", 40)
    assert "worker" not in b.text()
    b.go("#/host/n2")
    b.press("Cordon")
    b.press("Cordon", within="dialog[open]")
    b.wait("org.primus.manage-nodes")
    assert cluster.node_states()["n2"] == "READY"
    try:
        with cluster.granted("manage-nodes", "eve"):
            b.press("Cordon", within="dialog[open]")
            b.wait("CORDONED")
            assert cluster.node_states()["n2"] == "CORDONED"
    finally:
        cluster.primusctl("node", "uncordon", "n2", user="root")
    cluster.kill(job)
    assert b.complaints() == []


def test_it_goes_on_over_kills_in_the_colours_of_cockpit(cluster, inside):
    b = inside("ml", "#/")
    b.wait("live", 40)
    b.run("window.untouched = true")
    cluster.exec("n1", "pkill", "-9", "-u", "ml", "-x", "primus-webd")
    cluster.kill9("n1", "primus-masterd")
    cluster.wait_nodes()
    job = cluster.submit({**TALKS, "name": "after-the-kill"})
    b.wait("after-the-kill", 40)
    cluster.kill(job)
    b.wait(lambda: "after-the-kill" not in b.text(), what="that the job goes")
    grounds = []
    for style in ("dark", "light"):
        b.run("localStorage.setItem('shell:style', arguments[0]); window.dispatchEvent(new Event('cockpit-style'));", style)
        grounds.append(b.run("return getComputedStyle(document.body).backgroundColor"))
        assert b.unnamed() == []
    assert grounds[0] != grounds[1] and b.run("return window.untouched")
    assert b.complaints() == []


def test_its_policy_is_as_strict_as_alone(cluster):
    """A script of somebody's in it would have what Cockpit's session has: root's rights, where these were unlocked."""
    cockpit = Cockpit(cluster)
    word = base64.b64encode(f"ml:{PASSWORDS['ml']}".encode()).decode()
    status, headers = cockpit.get("/cockpit/login", Authorization=f"Basic {word}")
    assert status == 200
    cookie = headers["Set-Cookie"].split(";")[0]
    status, headers = cockpit.get("/cockpit/@localhost/primus/index.html", Cookie=cookie)
    policy = dict(part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";") if part.strip())
    assert status == 200 and (policy["default-src"], policy["base-uri"], policy["form-action"], policy["require-trusted-types-for"], policy["trusted-types"]) == \
        ("'none'", "'none'", "'none'", "'script'", "'none'"), policy
    # Cockpit writes its own address beside 'self'; nothing is inline, and nothing of elsewhere.
    for name in ("script-src", "style-src"):
        assert set(policy[name].split()) <= {"'self'", f"https://127.0.0.1:{cockpit.PORT}"}, policy
    # Without a session it is Cockpit's own page, which asks who one is.
    assert "trusted-types" not in cockpit.get("/cockpit/@localhost/primus/index.html")[1]["Content-Security-Policy"]
    assert cockpit.get("/cockpit/@localhost/primus/page/../../../../etc/passwd", Cookie=cookie)[0] in (400, 404)
