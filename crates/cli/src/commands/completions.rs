//! `abide completions`

use super::to_stdout;
use crate::failure::Failure;
use clap_complete::Shell;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Shell to write the script for.
    shell: Shell,
}

/// Prints the script that completes this command line.
pub(crate) fn run(mut command: clap::Command, args: &Args) -> Result<(), Failure> {
    // Written into memory first, because the generator panics on a closed pipe.
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    to_stdout(&script)
}
