//! Generated repositories, as streams for `git fast-import`.

use std::io::{self, Write};

const FIRST: usize = 1_700_000_000;

fn commit(out: &mut dyn Write, number: usize) -> io::Result<()> {
    let message = format!("Change {number}\n");
    writeln!(out, "commit refs/heads/main")?;
    writeln!(out, "committer Bench <bench@example.org> {} +0000", FIRST + number * 60)?;
    write!(out, "data {}\n{message}\n", message.len())
}

fn file(out: &mut dyn Write, path: &str, content: &str) -> io::Result<()> {
    writeln!(out, "M 100644 inline {path}\ndata {}\n{content}", content.len())
}

/// One directory with many files, added and changed in a thousand commits.
pub(crate) fn wide(files: usize, out: &mut dyn Write) -> io::Result<()> {
    const COMMITS: usize = 1_000;
    for number in 0..COMMITS {
        commit(out, number)?;
        for at in (number..files).step_by(COMMITS) {
            file(out, &format!("many/file-{at:05}.txt"), &format!("{at} as of {number}\n"))?;
        }
        // Some files change again and again.
        file(out, &format!("many/file-{:05}.txt", number * 7 % files.max(1)), &format!("again {number}\n"))?;
    }
    Ok(())
}

/// A long straight history of small changes.
pub(crate) fn deep(commits: usize, out: &mut dyn Write) -> io::Result<()> {
    for number in 0..commits {
        commit(out, number)?;
        file(out, &format!("src/{}.txt", number % 50), &format!("{number}\n"))?;
    }
    Ok(())
}

/// A typical repository: a README, a few directories, some hundred commits.
pub(crate) fn home(out: &mut dyn Write) -> io::Result<()> {
    let readme = "# Tool\n\nWhat it is, and how to use it.\n\n```rust\nfn main() { println!(\"hello\"); }\n```\n\n\
        | option | meaning |\n|---|---|\n| `-v` | says more |\n"
        .repeat(5);
    for number in 0..300 {
        commit(out, number)?;
        match number {
            0 => file(out, "README.md", &readme)?,
            _ => file(out, &format!("part-{}/file-{}.rs", number % 12, number % 30), &format!("// {number}\n"))?,
        }
        if number < 15 {
            file(out, &format!("file-{number}.toml"), "a = 1\n")?;
        }
    }
    Ok(())
}
