//! Resident memory of a process and everything below it.

use std::collections::HashMap;
use std::fs;

/// Bytes held by a process and its descendants.
pub fn of_tree(root: u32) -> u64 {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut held: HashMap<u32, u64> = HashMap::new();
    for entry in fs::read_dir("/proc").expect("this machine has /proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process may end between the listing and the reading.
        let Ok(status) = fs::read_to_string(entry.path().join("status")) else { continue };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let parent = field("PPid:").and_then(|parent| u32::try_from(parent).ok()).unwrap_or(0);
        children.entry(parent).or_default().push(pid);
        held.insert(pid, field("VmRSS:").unwrap_or(0) * 1024);
    }
    let mut total = 0;
    let mut left = vec![root];
    while let Some(pid) = left.pop() {
        total += held.get(&pid).copied().unwrap_or(0);
        left.extend(children.remove(&pid).unwrap_or_default());
    }
    total
}
