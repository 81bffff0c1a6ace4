//! Diffs, file by file.

use super::text::{count, escape_code_into, shown, url_path};
use abide_forge::browse::{Change, Content, Diff, EntryKind, FileChange, Hunk, LineKind};
use std::fmt::Write as _;

/// The diff of a file with more lines than this is shown on request.
const LARGE_LINES: usize = 500;
/// The same limit in bytes, because lines can be long.
const LARGE_BYTES: usize = 64 * 1024;
/// Lines of all files that are shown without a request.
const ALL_LINES: usize = 5_000;
const ALL_BYTES: usize = 512 * 1024;

/// A diff for a template.
pub(crate) struct Shown {
    pub files: Vec<ShownFile>,
    pub truncated: bool,
    pub timed_out: bool,
    pub additions: usize,
    pub deletions: usize,
    pub summary: String,
}

/// A changed file.
pub(crate) struct ShownFile {
    pub anchor: String,
    pub path: String,
    /// Old path of a renamed file.
    pub old_path: Option<String>,
    /// Path in URLs, unless the file was deleted.
    pub view: Option<String>,
    pub note: String,
    pub additions: usize,
    pub deletions: usize,
    pub open: bool,
    pub body: String,
    /// URL and number of lines of a diff that is too large to be shown without a request.
    pub more: Option<(String, String)>,
}

impl Shown {
    /// `here` is the page's URL up to the number of the requested file, `asked` that number.
    pub(crate) fn of(diff: &Diff, here: &str, asked: Option<usize>) -> Self {
        let (mut lines, mut bytes) = (0, 0);
        let files = diff.files.iter().enumerate().map(|(at, file)| {
            let (own_lines, own_bytes) = extent(file);
            let small = own_lines <= LARGE_LINES && own_bytes <= LARGE_BYTES;
            let fits = small && lines + own_lines <= ALL_LINES && bytes + own_bytes <= ALL_BYTES;
            if fits {
                lines += own_lines;
                bytes += own_bytes;
            }
            let number = at + 1;
            if fits || asked == Some(number) {
                return ShownFile::of(number, file, body(&file.content));
            }
            let more = (format!("{here}{number}#{}", anchor(number)), count(own_lines, "line", "lines"));
            ShownFile { more: Some(more), open: false, ..ShownFile::of(number, file, String::new()) }
        });
        let files: Vec<ShownFile> = files.collect();
        let more = if diff.truncated || diff.timed_out { "More than " } else { "" };
        let summary = format!("{more}{} changed", count(files.len(), "file", "files"));
        let Diff { truncated, timed_out, additions, deletions, .. } = *diff;
        Self { files, truncated, timed_out, additions, deletions, summary }
    }
}

/// Lines of a change and their bytes.
fn extent(file: &FileChange) -> (usize, usize) {
    match &file.content {
        Content::Text { hunks, .. } => {
            let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
            lines.fold((0, 0), |(lines, bytes), line| (lines + 1, bytes + line.text.len()))
        }
        Content::Binary | Content::Omitted => (0, 0),
    }
}

fn anchor(number: usize) -> String {
    format!("file-{number}")
}

impl ShownFile {
    fn of(number: usize, file: &FileChange, body: String) -> Self {
        let (before, after) = (file.change.before(), file.change.after());
        let mut notes = Vec::new();
        match &file.change {
            Change::Added(_) => notes.push("Added".to_owned()),
            Change::Deleted(_) => notes.push("Deleted".to_owned()),
            Change::Renamed(_, _, similarity) if *similarity == 100 => notes.push("Renamed".to_owned()),
            Change::Renamed(_, _, similarity) => notes.push(format!("Renamed, {similarity}% similar")),
            Change::Modified(_, _) => (),
        }
        if let (Some(before), Some(after)) = (before, after)
            && before.kind != after.kind
        {
            notes.push(format!("{} → {}", before.kind.mode(), after.kind.mode()));
        }
        if [before, after].into_iter().flatten().any(|side| side.kind == EntryKind::Submodule) {
            notes.push("Submodule".into());
        }
        let moved = matches!(file.change, Change::Renamed(..));
        Self {
            anchor: anchor(number),
            path: shown(file.change.path()),
            old_path: before.filter(|_| moved).map(|side| shown(&side.path)),
            view: after.filter(|side| side.kind.is_blob()).map(|side| url_path(&side.path)),
            note: notes.join(", "),
            additions: file.additions,
            deletions: file.deletions,
            open: true,
            body,
            more: None,
        }
    }
}

fn body(content: &Content) -> String {
    let (hunks, truncated) = match content {
        Content::Binary => return note("Binary file not shown."),
        Content::Omitted => return note("Too large to compare."),
        Content::Text { hunks, .. } if hunks.is_empty() => return note("No changes in content."),
        Content::Text { hunks, truncated } => (hunks, *truncated),
    };
    let mut out = String::from(
        r#"<div class="code-wrap" tabindex="0" role="region" aria-label="Changes"><table class="code diff"><tbody>"#,
    );
    for hunk in hunks {
        write_hunk(hunk, &mut out);
    }
    out.push_str("</tbody></table></div>");
    if truncated {
        out.push_str(&note("The diff of this file is cut off here: it is too large."));
    }
    out
}

fn write_hunk(hunk: &Hunk, out: &mut String) {
    let _ = writeln!(
        out,
        "<tr class=\"hunk\"><td colspan=\"4\">@@ -{},{} +{},{} @@</td></tr>",
        hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines
    );
    for line in &hunk.lines {
        let (class, sign) = match line.kind {
            LineKind::Context => ("", " "),
            LineKind::Deleted => (" class=\"del\"", "−"),
            LineKind::Added => (" class=\"add\"", "+"),
        };
        let number = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
        let _ = write!(
            out,
            "<tr{class}><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"sign\">{sign}</td><td class=\"l\">",
            number(line.old),
            number(line.new)
        );
        escape_code_into(&String::from_utf8_lossy(&line.text), out);
        if !line.newline {
            out.push_str(" <span class=\"odd-char\">no newline at end of file</span>");
        }
        out.push_str("</td></tr>\n");
    }
}

fn note(text: &str) -> String {
    format!("<div class=\"card-body muted\">{text}</div>")
}
