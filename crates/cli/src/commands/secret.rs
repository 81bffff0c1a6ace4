//! Input of a password, from a terminal or from a script.

use super::from_stdin;
use crate::failure::Failure;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{BufRead as _, IsTerminal as _, Read as _, Stdin, Write as _, stderr, stdin};

/// Longest line that is read from a terminal.
const MAX_LINE: u64 = 4096;

/// Reads the password from standard input if `from_script`; otherwise twice from a terminal, without echo.
pub(super) fn secret(from_script: bool) -> Result<String, Failure> {
    if from_script {
        return from_stdin();
    }
    let input = stdin();
    if !input.is_terminal() {
        let message = "no terminal to ask for the password";
        return Err(Failure::usage(message).hint("pass it with --password-stdin"));
    }
    let typed = ask(&input, "Password: ")?;
    match typed == ask(&input, "Repeat password: ")? {
        true => Ok(typed),
        false => Err(Failure::refused("the passwords do not match; nothing was changed")),
    }
}

fn ask(input: &Stdin, prompt: &str) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("cannot read from the terminal: {error}"));
    // Echo is turned off before the prompt, so that quick input is neither shown nor lost.
    let quiet = Quiet::new(input).map_err(failed)?;
    eprint!("{prompt}");
    stderr().flush().map_err(failed)?;
    let mut line = String::new();
    input.lock().take(MAX_LINE).read_line(&mut line).map_err(failed)?;
    drop(quiet);
    eprintln!();
    match line.strip_suffix('\n') {
        Some(line) => Ok(line.trim_end_matches('\r').to_owned()),
        None => Err(Failure::refused("no password entered; nothing was changed")),
    }
}

/// A terminal without echo, until this is dropped.
struct Quiet<'a> {
    input: &'a Stdin,
    before: Termios,
}

impl<'a> Quiet<'a> {
    fn new(input: &'a Stdin) -> std::io::Result<Self> {
        let before = tcgetattr(input)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(input, OptionalActions::Flush, &quiet)?;
        Ok(Self { input, before })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.input, OptionalActions::Now, &self.before);
    }
}
