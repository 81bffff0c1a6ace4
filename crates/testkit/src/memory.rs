//! Resident memory of a process and its descendants, sampled while something else happens.

use std::collections::HashMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Time between two samples: a git process that unpacks much lives longer.
const INTERVAL: Duration = Duration::from_millis(50);

/// The largest sum of one sample, and the processes that held it.
#[derive(Debug, Default)]
pub struct Peak(Mutex<(u64, u64, String)>);

impl Peak {
    /// Samples a process and its descendants while `work` runs.
    pub fn during<T>(root: u32, work: impl FnOnce() -> T) -> (T, Self) {
        let (peak, over) = (Self::default(), AtomicBool::new(false));
        let done = thread::scope(|scope| {
            // Ends the sampling also when the work panics.
            let _end = SetOnDrop(&over);
            scope.spawn(|| peak.watch(root, &over));
            work()
        });
        (done, peak)
    }

    /// Samples a process and its descendants until `over` is set, at least once.
    pub fn watch(&self, root: u32, over: &AtomicBool) {
        loop {
            let (bytes, holders) = of_tree(root);
            let mut peak = self.0.lock().expect("nobody panics with it");
            peak.1 += 1;
            if bytes > peak.0 {
                (peak.0, peak.2) = (bytes, holders);
            }
            drop(peak);
            if over.load(Ordering::Relaxed) {
                return;
            }
            thread::sleep(INTERVAL);
        }
    }

    /// Largest sum of resident memory.
    ///
    /// # Panics
    /// If another thread panicked in here, as for [`Peak::describe`].
    pub fn bytes(&self) -> u64 {
        self.0.lock().expect("nobody panics with it").0
    }

    /// The figure, how often it was looked for, and the processes that held it.
    pub fn describe(&self) -> String {
        let peak = self.0.lock().expect("nobody panics with it");
        format!("{} MiB at most in {} samples: {}", peak.0 >> 20, peak.1, peak.2)
    }
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn memory_of_a_child_counts_while_it_is_held() {
        let before = of_tree(std::process::id()).0;
        // A shell that holds 64 MiB in a variable until its input ends.
        let script = "v=$(head -c 67108864 /dev/zero | tr '\\0' x); echo held; read end";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let mut line = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().expect("it was asked for"));
        std::io::BufRead::read_line(&mut out, &mut line).expect("it prints a line");
        let ((), peak) = Peak::during(std::process::id(), || {
            // At least one sample is taken with the child there.
            crate::eventually(Duration::from_secs(30), || of_tree(std::process::id()).0 > before + (60 << 20));
        });
        drop(child.stdin.take());
        child.wait().expect("our own child can be waited for");
        assert!(line == "held\n" && peak.describe().contains("sh "), "{}", peak.describe());
        assert!(peak.bytes() > before + (60 << 20), "{}", peak.describe());
    }
}
