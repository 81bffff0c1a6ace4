//! What the kernel lets one git process have. A pack can be made so that a few kilobytes of it take gigabytes or minutes;
//! no setting of git bounds that, so the kernel does.

use rustix::process::{Pid, Resource, Rlimit, prlimit, setpriority_process};
use std::time::Duration;

/// Seconds between the signal that ends a process which used up its time and the one that it cannot ignore.
const GRACE: u64 = 5;

/// How nice a process is that yields: it gets about a third of what another one gets that wants the same processor.
const NICE: i32 = 5;

/// Memory and processor time of one process, and of each process that it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ration {
    /// Bytes of private memory. Packs that are mapped do not count: they are the page cache's.
    pub memory: u64,
    /// Processor time, over all threads.
    pub processor: Duration,
    /// Whether the work of others goes first while there is too little of that.
    pub yields: bool,
}

impl Ration {
    /// Gives a process its ration. Called right after its start, before it gets a byte of its input (`child.rs`).
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
            // One that has ended already needs none; an operator's own stricter limit stays.
            if let Err(error) = prlimit(Some(pid), resource, limit) {
                tracing::debug!(%error, ?resource, "cannot set the limits of a git process");
            }
        }
    }
}

/// Whether the last words or the status of a process say that it ended because its ration was used up.
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
            assert_eq!(String::from_utf8_lossy(&said.stdout), own.max(nice).to_string());
        }
    }

    #[test]
    fn only_its_own_words_count_as_used_up() {
        assert_eq!(used_up("exit status: 128", "fatal: Out of memory, malloc failed (tried 1 bytes)"), Some("memory"));
        assert_eq!(used_up("exit status: 128", "fatal: bad object"), None);
    }
}
