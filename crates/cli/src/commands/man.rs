//! `abide man`

use super::to_stdout;
use crate::failure::Failure;
use clap_mangen::Man;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write man pages for all commands into this directory, which is created if needed.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints the main page, or writes all of them.
pub(crate) fn run(command: clap::Command, args: &Args) -> Result<(), Failure> {
    if let Some(dir) = &args.out {
        return std::fs::create_dir_all(dir)
            .and_then(|()| clap_mangen::generate_to(command, dir))
            .map_err(|error| Failure::failed(format!("cannot write man pages to {}: {error}", dir.display())));
    }
    let mut page = Vec::new();
    // Like the written pages, without one for `abide help`, which shows the same texts.
    Man::new(command.disable_help_subcommand(true))
        .render(&mut page)
        .map_err(|error| Failure::failed(format!("cannot render the man page: {error}")))?;
    to_stdout(&page)
}
