//! A real browser: Debian's Chromium, led by ChromeDriver.

use abide_testkit::{Server, http};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::mem::ManuallyDrop;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use thirtyfour::ChromeCapabilities;
use thirtyfour::prelude::*;

/// The browser that ChromeDriver starts.
const BROWSER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/browser/headless-shell");

/// How long a page may take to show what is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A browser that is looking at one server.
pub struct Browser {
    chromedriver: Chromedriver,
    /// Never dropped by itself: it would wait for an answer, and a test that fails would hang instead.
    pub driver: ManuallyDrop<WebDriver>,
    base: String,
    _profile: tempfile::TempDir,
}

struct Chromedriver {
    process: Child,
    address: SocketAddr,
}

impl Drop for Chromedriver {
    fn drop(&mut self) {
        // The browser is in its group and ends with it.
        let group = format!("-{}", self.process.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.process.wait();
    }
}

impl Chromedriver {
    /// Starts it at a port of its own choice. It takes one that is free for IPv4 and gives up if IPv6 has it taken, as
    /// another one that starts at the same moment may have: then it is started again.
    fn start() -> Self {
        const TRIES: usize = 10;
        let started = (0..TRIES).find_map(|_| Self::try_start());
        started.expect("chromedriver finds a port")
    }

    fn try_start() -> Option<Self> {
        let mut process = Command::new("chromedriver")
            .arg("--port=0")
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is installed by ./test");
        let mut lines = BufReader::new(process.stdout.take().expect("its output is piped")).lines();
        let port = loop {
            let Some(line) = lines.next() else {
                let _ = process.wait();
                return None;
            };
            let line = line.expect("it writes text");
            if let Some((_, port)) = line.split_once("successfully on port ") {
                break port.trim_end_matches('.').parse().expect("a port is a number");
            }
        };
        // The rest of its output is read, so that it never blocks.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { process, address: SocketAddr::from(([127, 0, 0, 1], port)) })
    }
}

impl Browser {
    /// Opens a browser with nothing in it.
    pub async fn open(server: &Server) -> Self {
        let chromedriver = Chromedriver::start();
        let profile = tempfile::tempdir().expect("a temporary directory can be made");
        let mut wishes = ChromeCapabilities::new();
        for flag in [
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            // A page that is still scrolling cannot be clicked on.
            "--force-prefers-reduced-motion",
            "--window-size=1400,1000",
            &format!("--user-data-dir={}", profile.path().display()),
        ] {
            wishes.add_arg(flag).expect("flags are text");
        }
        wishes.set_binary(BROWSER).expect("a path is text");
        wishes.set("goog:loggingPrefs", json!({ "browser": "ALL" })).expect("preferences are JSON");
        let driver =
            WebDriver::new(format!("http://{}", chromedriver.address), wishes).await.expect("the browser starts");
        Self { chromedriver, driver: ManuallyDrop::new(driver), base: server.url(), _profile: profile }
    }

    /// Goes to a page.
    pub async fn go(&self, path: &str) {
        self.driver.goto(format!("{}{path}", self.base)).await.expect("the page loads");
    }

    /// The path and query of the page that is shown.
    pub async fn at(&self) -> String {
        let url = self.driver.current_url().await.expect("a page is shown").to_string();
        url.strip_prefix(&self.base).map_or(url.clone(), str::to_owned)
    }

    /// The one element; waits until it is there.
    pub async fn find(&self, css: &str) -> WebElement {
        let found = self.driver.query(By::Css(css)).wait(PATIENCE, Duration::from_millis(50)).first().await;
        match found {
            Ok(found) => found,
            Err(error) => panic!("{css} is not at {}: {error}\n{}", self.at().await, self.text().await),
        }
    }

    /// Replaces what is in a field.
    pub async fn fill(&self, name: &str, text: &str) {
        let field = self.find(&format!("main [name=\"{name}\"]")).await;
        field.clear().await.expect("a field can be emptied");
        field.send_keys(text).await.expect("a field can be typed into");
    }

    /// Presses the button or follows the link with this text, and waits for the next page.
    pub async fn press(&self, text: &str) {
        let path = format!(
            "//main//*[self::button or self::a or self::summary][normalize-space()=\"{text}\" or @aria-label=\"{text}\"]"
        );
        let found = self.driver.query(By::XPath(&path)).wait(PATIENCE, Duration::from_millis(50)).first().await;
        let Ok(found) = found else { panic!("no \"{text}\" at {}:\n{}", self.at().await, self.text().await) };
        found.scroll_into_view().await.expect("it can be scrolled to");
        let leads_on = self.leads_on(&found).await;
        found.click().await.expect("it can be pressed");
        if leads_on {
            let gone = found.wait_until().wait(PATIENCE, Duration::from_millis(10)).stale().await;
            gone.unwrap_or_else(|_| panic!("\"{text}\" leads nowhere"));
        }
    }

    /// Whether pressing this leads to another page: a button that sends a form, or a link that is not to this page. What
    /// an extension has to sign first may as well end here.
    async fn leads_on(&self, element: &WebElement) -> bool {
        let script = "const [it] = arguments, here = url => url.split('#')[0];\
             return it.form ? it.type === 'submit' && !it.form.dataset.nostr : !!it.href && here(it.href) !== here(location.href);";
        let element = element.to_json().expect("an element has a name");
        let answer = self.driver.execute(script, vec![element]).await.expect("the script runs");
        answer.json().as_bool().expect("it says yes or no")
    }

    /// Sends the keys to whatever has the focus.
    pub async fn keys(&self, keys: impl Into<thirtyfour::TypingData>) {
        self.driver.action_chain().send_keys(keys).perform().await.expect("keys can be sent");
    }

    /// Text of the page.
    pub async fn text(&self) -> String {
        let shown = self.driver.execute("return document.body?.innerText ?? ''", Vec::new()).await;
        shown.ok().and_then(|shown| shown.json().as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// Waits until the page says something.
    pub async fn sees(&self, text: &str) {
        let until = std::time::Instant::now() + PATIENCE;
        while !self.text().await.contains(text) {
            assert!(std::time::Instant::now() < until, "no \"{text}\" at {}:\n{}", self.at().await, self.text().await);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The width that the page is laid out for, and its colours.
    pub async fn looks(&self, width: u32, height: u32, scheme: &str) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        let cdp = self.driver.cdp();
        cdp.send_raw("Emulation.setDeviceMetricsOverride", size).await.expect("a size can be emulated");
        cdp.send_raw("Emulation.setEmulatedMedia", media).await.expect("colours can be emulated");
    }

    /// Runs a script in every page that is gone to, before anything else.
    pub async fn run_in_every_page(&self, script: &str) {
        let added =
            self.driver.cdp().send_raw("Page.addScriptToEvaluateOnNewDocument", json!({ "source": script })).await;
        added.expect("a script can be added");
    }

    /// Takes a picture of what is shown.
    pub async fn picture(&self, file: &Path) {
        self.driver.screenshot(file).await.expect("a picture can be taken");
    }

    /// Runs a script in the page and returns its answer.
    pub async fn run(&self, script: &str) -> Value {
        self.driver.execute(script, Vec::new()).await.expect("the script runs").json().clone()
    }

    /// Console messages since the last call, except about pages that were refused on purpose.
    pub fn complaints(&self) -> Vec<String> {
        let session = self.driver.session_id().to_string();
        let path = format!("/session/{session}/se/log");
        let answer = http::post(self.chromedriver.address, &path, None, &json!({ "type": "browser" })).json();
        let entries = answer["value"].as_array().cloned().unwrap_or_default();
        let lines = entries.iter().map(|entry| format!("{} {}", entry["level"], entry["message"]));
        lines.collect()
    }

    /// Ends the browser.
    pub async fn close(self) {
        ManuallyDrop::into_inner(self.driver).quit().await.expect("the browser ends");
    }
}
