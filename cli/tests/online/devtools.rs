//! Drives a headless browser by the DevTools protocol over a pipe: JSON messages, each ended by a zero byte.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Time limit for an answer of the browser, and for a condition to become true.
const PATIENCE: Duration = Duration::from_secs(60);

/// A shell command that connects the browser's DevTools pipe, file descriptors 3 and 4, to standard input and output.
const AS_PIPE: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>"$BROWSER_LOG""#;

/// A script that records violations of the page's policy. It runs before any script of the page.
const NOTE_VIOLATIONS: &str = "window.violations = []; addEventListener('securitypolicyviolation', \
    (event) => window.violations.push(event.violatedDirective + ' ' + event.blockedURI));";

/// A browser with one page; dropping it ends the browser.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: Option<String>,
    last: u64,
    events: Vec<Value>,
    /// The folder of the browser's profile and log.
    folder: TempDir,
}

impl Browser {
    /// Starts the browser that `ROLLCALL_BROWSER` names. Returns `None` without this variable.
    pub fn start() -> Option<Browser> {
        let program = std::env::var_os("ROLLCALL_BROWSER")?;
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("sh");
        command.arg("-c").arg(AS_PIPE).arg(program).env("BROWSER_LOG", folder.path().join("log"));
        command.args(["--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu"]);
        command.args(["--hide-scrollbars", "--disable-dev-shm-usage"]);
        command.arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
        // Chromium's sandbox does not work for root.
        if std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0) {
            command.arg("--no-sandbox");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the browser starts");
        let (to, out) = (child.stdin.take().expect("its input"), child.stdout.take().expect("its output"));
        let (sender, from) = channel();
        thread::spawn(move || {
            let mut out = BufReader::new(out);
            let mut message = Vec::new();
            while out.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { break };
                if sender.send(value).is_err() {
                    break;
                }
                message.clear();
            }
        });
        let mut browser = Browser { child, to, from, session: None, last: 0, events: Vec::new(), folder };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))["targetId"].take();
        let attached = browser.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.call("Page.addScriptToEvaluateOnNewDocument", json!({"source": NOTE_VIOLATIONS}));
        Some(browser)
    }

    /// Calls a method of the DevTools protocol.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("the browser reads");
        loop {
            let mut message = match self.from.recv_timeout(PATIENCE) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => panic!("{method} has no answer; {}", self.log()),
                Err(RecvTimeoutError::Disconnected) => panic!("the browser ended at {method}; {}", self.log()),
            };
            if message["id"] != id {
                self.events.push(message);
                continue;
            }
            assert!(message.get("error").is_none(), "{method}: {message}");
            return message["result"].take();
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Sets the width and height of the window, and the colour scheme: `light` or `dark`.
    #[track_caller]
    pub fn look(&mut self, width: u32, height: u32, scheme: &str) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", scheme);
    }

    #[track_caller]
    pub fn open(&mut self, url: &str) {
        let opened = self.call("Page.navigate", json!({"url": url}));
        assert!(opened.get("errorText").is_none(), "{url}: {opened}");
    }

    /// Evaluates an expression in the page. If the result is a promise, waits for its value.
    #[track_caller]
    pub fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", params);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// The text of the first element that `selector` finds.
    #[track_caller]
    pub fn text(&mut self, selector: &str) -> String {
        let text = self.eval(&format!("document.querySelector({})?.textContent", json!(selector)));
        text.as_str().unwrap_or_else(|| panic!("nothing is {selector}")).to_owned()
    }

    /// Waits until an expression is true in the page.
    #[track_caller]
    pub fn wait(&mut self, expression: &str) {
        let end = Instant::now() + PATIENCE;
        while self.eval(expression) != true {
            assert!(Instant::now() < end, "waited in vain for: {expression}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Presses a key, given by its name and its Windows key code.
    #[track_caller]
    pub fn press(&mut self, (key, number): (&str, u32)) {
        for kind in ["rawKeyDown", "keyUp"] {
            let event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": number});
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Moves the mouse to the middle of the first element that `selector` finds.
    #[track_caller]
    pub fn hover(&mut self, selector: &str) {
        let middle = format!(
            "(() => {{ const node = document.querySelector({}); node.scrollIntoView({{block: 'center'}}); \
             const box = node.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()",
            json!(selector)
        );
        let middle = self.eval(&middle);
        self.call("Input.dispatchMouseEvent", json!({"type": "mouseMoved", "x": middle[0], "y": middle[1]}));
    }

    /// A screenshot of the window as PNG in base 64.
    #[track_caller]
    pub fn picture(&mut self) -> String {
        let picture = self.call("Page.captureScreenshot", json!({"format": "png"}));
        picture["data"].as_str().expect("a picture").to_owned()
    }

    /// Errors, warnings, dialogs, and violations of the page's policy since the start. A page should cause none.
    #[track_caller]
    pub fn complaints(&mut self) -> Vec<String> {
        let mut complaints: Vec<String> = serde_json::from_value(self.eval("window.violations")).expect("a list");
        for event in &self.events {
            let (method, params) = (event["method"].as_str().unwrap_or_default(), &event["params"]);
            let is_bad = match method {
                "Runtime.exceptionThrown" | "Page.javascriptDialogOpening" => true,
                "Runtime.consoleAPICalled" => params["type"] == "error" || params["type"] == "warning",
                "Log.entryAdded" => params["entry"]["level"] == "error" || params["entry"]["level"] == "warning",
                _ => false,
            };
            if is_bad {
                complaints.push(format!("{method} {params}"));
            }
        }
        complaints
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
