//! Kernel limits of one git process. A crafted pack of a few kilobytes can take gigabytes or minutes to unpack. No git
//! setting bounds that, so kernel limits do.

use rustix::process::{Pid, Resource, Rlimit, prlimit, setpriority_process};
use std::time::Duration;

/// Seconds between SIGXCPU and SIGKILL for a process that exceeded its CPU time.
const GRACE: u64 = 5;

/// Nice value of a yielding process: about a third of the CPU share of a normal one.
const NICE: i32 = 5;

/// Memory and CPU time of one process, and of each process that it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ration {
    /// Bytes of private memory. Mapped packs do not count: they belong to the page cache.
    pub memory: u64,
    /// CPU time, over all threads.
    pub processor: Duration,
    /// Whether the process runs at a lower priority.
    pub yields: bool,
}

impl Ration {
    /// Applies the limits. Called right after the process starts, before it gets its input (`child.rs`).
    pub(crate) fn apply(self, pid: Pid) {
        let seconds = self.processor.as_secs().max(1);
        let limits = [
            (Resource::Data, Rlimit { current: Some(self.memory), maximum: Some(self.memory) }),
            (Resource::Cpu, Rlimit { current: Some(seconds), maximum: Some(seconds + GRACE) }),
        ];
        if self.yields
            && let Err(error) = setpriority_process(Some(pid), NICE)
        {
            tracing::debug!(%error, "cannot lower the priority of a git process");
        }
        for (resource, limit) in limits {
            // Fails if the process has ended, or if the operator set a stricter limit; both are fine.
            if let Err(error) = prlimit(Some(pid), resource, limit) {
                tracing::debug!(%error, ?resource, "cannot set the limits of a git process");
            }
        }
    }
}

/// Whether stderr or the exit status shows that the process exceeded a limit, and which one.
pub(crate) fn used_up(status: &str, stderr: &str) -> Option<&'static str> {
    const MEMORY: [&str; 5] = [
        "ut of memory",
        "attempting to allocate",
        "mmap failed: Cannot allocate",
        "unable to create thread",
        "bad alloc",
    ];
    if status.contains("SIGXCPU") || status.contains("signal: 24") {
        return Some("processor time");
    }
    MEMORY.iter().any(|words| stderr.contains(words)).then_some("memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn limited(script: &str, ration: Ration) -> std::process::Output {
        use std::io::Write as _;
        let mut command = Command::new("perl");
        command.arg("-e").arg(format!("<STDIN>; {script}"));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("perl is there");
        ration.apply(Pid::from_child(&child));
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        child.wait_with_output().unwrap()
    }

    #[test]
    fn a_process_gets_no_more_memory_than_its_ration() {
        let ration = Ration { memory: 64 << 20, processor: Duration::from_secs(60), yields: false };
        let modest = limited("my $n = 16 << 20; my $x = 'x' x $n; print length $x", ration);
        assert_eq!(modest.stdout, (16 << 20).to_string().into_bytes());
        let greedy = limited("my $n = 256 << 20; my $x = 'x' x $n; print length $x", ration);
        let said = String::from_utf8_lossy(&greedy.stderr);
        assert!(!greedy.status.success() && said.contains("ut of memory"), "{said}");
    }

    #[test]
    fn a_process_that_used_up_its_time_is_ended() {
        let ration = Ration { memory: 1 << 30, processor: Duration::from_secs(1), yields: false };
        let busy = limited("1 while 1", ration);
        assert_eq!(used_up(&busy.status.to_string(), ""), Some("processor time"), "{}", busy.status);
    }

    #[test]
    fn a_process_that_yields_is_nice_and_others_are_not() {
        for (yields, nice) in [(true, NICE), (false, 0)] {
            let ration = Ration { memory: 1 << 30, processor: Duration::from_secs(60), yields };
            let own = limited("print getpriority(0, getppid())", Ration { yields: false, ..ration });
            let own: i32 = String::from_utf8_lossy(&own.stdout).parse().unwrap();
            let said = limited("print getpriority(0, 0)", ration);
            let expected = if yields { own.max(nice) } else { own };
            assert_eq!(String::from_utf8_lossy(&said.stdout), expected.to_string());
        }
    }

    #[test]
    fn only_its_own_words_count_as_used_up() {
        assert_eq!(used_up("exit status: 128", "fatal: Out of memory, malloc failed (tried 1 bytes)"), Some("memory"));
        assert_eq!(used_up("exit status: 128", "fatal: bad object"), None);
    }
}
