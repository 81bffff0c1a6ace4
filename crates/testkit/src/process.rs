//! Child processes: input, output and error messages.

use std::env;
use std::io::{self, Write};
use std::process::{Command, Output, Stdio};
use std::thread;

/// Runs a command with the output of `feed` on its stdin, and collects its output.
pub(crate) fn run_with_input(
    command: &mut Command,
    feed: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send,
) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?} did not start: {error}"));
    let stdin = child.stdin.take().expect("standard input was asked for");
    thread::scope(|scope| {
        // In a separate thread: a child that writes before it has read everything would block both. If it stops
        // reading, its exit status says why.
        scope.spawn(move || {
            let mut stdin = io::BufWriter::new(stdin);
            let _ = feed(&mut stdin).and_then(|()| stdin.flush());
        });
        child.wait_with_output().unwrap_or_else(|error| panic!("{command:?} cannot be waited for: {error}"))
    })
}

/// Runs a command without input, and collects its output.
pub(crate) fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?} did not start: {error}"))
}

/// The standard output as text.
///
/// # Panics
/// If the command failed; the message has its output.
#[track_caller]
pub(crate) fn expect_success(what: &str, output: Output) -> String {
    assert!(output.status.success(), "{what} failed\n{}", describe(&output));
    String::from_utf8(output.stdout).unwrap_or_else(|error| panic!("{what} printed no UTF-8: {error}"))
}

/// Exit status and both outputs, for a panic message.
pub(crate) fn describe(output: &Output) -> String {
    format!(
        "{}\n--- stdout\n{}\n--- stderr\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    )
}

/// Removes inherited variables with this prefix.
pub(crate) fn without_inherited(command: &mut Command, prefix: &str) {
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with(prefix) {
            command.env_remove(name);
        }
    }
}
