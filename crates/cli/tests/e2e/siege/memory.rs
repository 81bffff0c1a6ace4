//! Resident memory of a process and everything below it, looked at all the time.

use std::collections::HashMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The most that was held at once, and by whom.
#[derive(Default)]
pub struct Peak(Mutex<(u64, u64, String)>);

impl Peak {
    /// Looks several times a second until it is over.
    pub fn watch(&self, root: u32, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            let (bytes, holders) = of_tree(root);
            let mut peak = self.0.lock().expect("nobody panics with it");
            peak.1 += 1;
            if bytes > peak.0 {
                (peak.0, peak.2) = (bytes, holders);
            }
            drop(peak);
            thread::sleep(Duration::from_millis(150));
        }
    }

    pub fn bytes(&self) -> u64 {
        self.0.lock().expect("nobody panics with it").0
    }

    /// The figure, how often it was looked for, and the processes that held it.
    pub fn told(&self) -> String {
        let peak = self.0.lock().expect("nobody panics with it");
        format!("{} MiB at most in {} samples: {}", peak.0 >> 20, peak.1, peak.2)
    }
}

/// Bytes held by a process and its descendants, and which of them hold more than a little.
fn of_tree(root: u32) -> (u64, String) {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut held: HashMap<u32, (u64, String)> = HashMap::new();
    let program = fs::read_link(format!("/proc/{root}/exe")).ok();
    for entry in fs::read_dir("/proc").expect("this machine has /proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process may end between the listing and the reading.
        let Ok(status) = fs::read_to_string(entry.path().join("status")) else { continue };
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next();
        // Between fork and exec, a child's pages are those of its parent.
        let is_copy = pid != root && fs::read_link(entry.path().join("exe")).ok() == program;
        let number = |name: &str| field(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        children.entry(u32::try_from(number("PPid:")).unwrap_or(0)).or_default().push(pid);
        let bytes = if is_copy { 0 } else { number("VmRSS:") * 1024 };
        held.insert(pid, (bytes, field("Name:").unwrap_or_default().to_owned()));
    }
    let (mut total, mut count, mut large) = (0, 0, Vec::new());
    let mut left = vec![root];
    while let Some(pid) = left.pop() {
        let (bytes, name) = held.remove(&pid).unwrap_or_default();
        total += bytes;
        count += 1;
        if bytes > 16 << 20 {
            large.push(format!("{name} {}", bytes >> 20));
        }
        left.extend(children.remove(&pid).unwrap_or_default());
    }
    (total, format!("{count} processes, {}", large.join(", ")))
}
