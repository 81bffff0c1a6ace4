//! Memory of a process, from `/proc`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const MIB: f64 = 1024.0;

/// MiB of RAM that a process has now.
pub(crate) fn resident(pid: u32) -> Option<f64> {
    field(pid, "VmRSS:").map(|kib| kib / MIB)
}

/// A field of `/proc/PID/status`, in its own unit.
fn field(pid: u32, name: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Peak memory of a process and its helpers during a measurement, in MiB.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Peak {
    /// At the start.
    pub before: f64,
    /// Peak of the process itself.
    pub own: f64,
    /// Peak of all its child processes together, without mapped files: git maps whole packs.
    pub helpers: f64,
}

/// Samples until it is stopped.
pub(crate) struct Watch {
    end: Arc<AtomicBool>,
    thread: JoinHandle<Peak>,
    pid: u32,
}

impl Watch {
    pub(crate) fn start(pid: u32) -> Self {
        // Resets the kernel's peak counter. Where that is forbidden, only the samples count.
        let _ = std::fs::write(format!("/proc/{pid}/clear_refs"), "5");
        let end = Arc::new(AtomicBool::new(false));
        let ended = end.clone();
        let before = resident(pid).unwrap_or_default();
        let thread = std::thread::spawn(move || {
            let mut peak = Peak { before, own: before, helpers: 0.0 };
            while !ended.load(Ordering::Relaxed) {
                peak.own = peak.own.max(resident(pid).unwrap_or_default());
                peak.helpers = peak.helpers.max(helpers(pid));
                std::thread::sleep(Duration::from_millis(50));
            }
            peak
        });
        Self { end, thread, pid }
    }

    pub(crate) fn stop(self) -> Peak {
        self.end.store(true, Ordering::Relaxed);
        let mut peak = self.thread.join().unwrap_or_default();
        let marked = field(self.pid, "VmHWM:").map_or(0.0, |kib| kib / MIB);
        peak.own = peak.own.max(marked);
        peak
    }
}

/// Private memory of all descendants of a process, in MiB.
fn helpers(pid: u32) -> f64 {
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0.0 };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = numbers.filter_map(|id| Some((id, field(id, "PPid:")? as u32))).collect();
    let mut family = vec![pid];
    let mut at = 0;
    while at < family.len() {
        let parent = family[at];
        family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(id, _)| *id));
        at += 1;
    }
    family[1..].iter().filter_map(|id| field(*id, "RssAnon:")).sum::<f64>() / MIB
}
