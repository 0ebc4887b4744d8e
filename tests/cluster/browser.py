# SPDX-License-Identifier: Apache-2.0
"""Chromium on the page of a user of n1, by a tunnel to his socket, as ssh -L would make one; or on Cockpit there."""
import json
import socket
import threading
import time

from sandbox import SOURCE  # noqa: F401 it says where sandboxlib is
from sandboxlib.web import carry

WINDOW = (1280, 1000)


class Tunnel:
    """A port of the loopback whose connections go to the user's socket."""

    def __init__(self, web):
        self.web = web
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=carry, args=(self.listener, lambda: web.connect(None)), daemon=True).start()

    def close(self):
        self.listener.close()


class Browser:
    def __init__(self, web, profile, protocol="http"):
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service
        options = Options()
        options.binary_location = "/usr/bin/chromium"
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={profile}",
                         "--disable-background-networking", "--disable-component-update", "--ignore-certificate-errors", f"--window-size={WINDOW[0]},{WINDOW[1]}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.tunnel = Tunnel(web)
        self.origin = f"{protocol}://127.0.0.1:{self.tunnel.port}/"
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.window(*WINDOW)
        # What a policy keeps from being done is counted, in each document from its beginning.
        self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {
            "source": "window.kept = []; addEventListener('securitypolicyviolation', e => window.kept.push(`${e.violatedDirective} ${e.blockedURI}`));"})

    def window(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def scheme(self, name):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]})

    def open(self, address):
        """address: such as "#/jobs". Without loading the page again where it is open."""
        self.driver.get(self.origin + address)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def text(self):
        return self.run("return document.body.innerText")

    def wait(self, condition, timeout=20, what="it"):
        """Until condition(), or a text that is looked for on the page."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            value = condition in self.text() if isinstance(condition, str) else condition()
            if value:
                return value
            time.sleep(0.1)
        raise AssertionError(f"{condition if isinstance(condition, str) else what} did not come in {timeout} s; the page says:\n{self.text()[:1500]}\n…\n{self.text()[-1500:]}")

    def press(self, label, within="main"):
        """The button or link that can be seen and is called so."""
        found = self.wait(lambda: self.run("""const [label, within] = arguments;
            const seen = [...document.querySelectorAll(within + ' button, ' + within + ' a')].filter(e => e.checkVisibility() && e.textContent.trim() === label);
            return seen[0] || null;""", label, within), what=f"the button {label!r}")
        found.click()

    def fill(self, selector, value):
        self.run("""const [selector, value] = arguments, e = document.querySelector(selector);
            Object.getOwnPropertyDescriptor(Object.getPrototypeOf(e), 'value').set.call(e, value);
            e.dispatchEvent(new Event('input', { bubbles: true })); e.dispatchEvent(new Event('change', { bubbles: true }));""", selector, value)

    def complaints(self):
        """What is wrong with the page itself: violations of its policy, requests elsewhere, errors but for answers of 4xx and 5xx that a test provokes."""
        elsewhere = [e for e in self.run("return performance.getEntriesByType('resource').map(e => e.name)") if not e.startswith(self.origin)]
        logged = [e["message"] for e in self.driver.get_log("browser") if e["level"] == "SEVERE" and "Failed to load resource" not in e["message"]]
        return self.run("return window.kept") + elsewhere + logged

    def unnamed(self):
        """Controls that a screen reader would have no name for, and texts too pale to read (WCAG 2.1, 1.4.3: 4.5 to 1)."""
        return json.loads(self.run("""
            const wrong = [], seen = e => e.checkVisibility();
            for (const e of document.querySelectorAll('button, a[href], input, select, textarea')) {
              const name = e.getAttribute('aria-label') || e.textContent.trim() || [...(e.labels || [])].map(l => l.textContent.trim()).join(' ');
              if (seen(e) && !name) wrong.push(`no name: ${e.outerHTML.slice(0, 120)}`);
            }
            for (const e of document.querySelectorAll('[role=img], figure, dialog')) if (!e.getAttribute('aria-label')) wrong.push(`no label: ${e.outerHTML.slice(0, 120)}`);
            if (document.querySelectorAll('h1').length !== 1) wrong.push(`${document.querySelectorAll('h1').length} h1`);
            const numbers = c => { const m = c.match(/[\\d.]+/g).map(Number); return c.startsWith('color(srgb') ? m.slice(-4).map((x, i) => i < 3 ? x * 255 : x) : m; };
            const light = c => { const [r, g, b] = numbers(c).map(x => { x /= 255; return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
            const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor, n = numbers(c); if (n.length < 4 || n[3] > 0.99) return c; } return 'rgb(255, 255, 255)'; };
            for (const e of document.querySelectorAll('main *, header *')) {
              if (!seen(e) || e.closest('svg, .unseen, canvas, .u-wrap') || e.disabled || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
              const a = light(getComputedStyle(e).color), b = light(ground(e)), contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
              if (contrast < 4.5) wrong.push(`contrast ${contrast.toFixed(1)}: ${e.outerHTML.slice(0, 120)}`);
            }
            return JSON.stringify(wrong);"""))

    def close(self):
        self.driver.quit()
        self.tunnel.close()
