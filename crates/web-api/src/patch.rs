//! Diffs as text for `git apply`: the media types `application/vnd.github.diff` and `.patch`.

use abide_forge::browse::{Change, Commit, Content, Diff, FileChange, Hunk, Line, LineKind, Side, Signature};
use std::fmt::Write as _;

/// A diff of all files.
pub(super) fn unified(diff: &Diff) -> Vec<u8> {
    let mut out = Vec::new();
    for file in &diff.files {
        write_file(&mut out, file);
    }
    out
}

/// A commit in the format of `git format-patch`, without the diffstat.
pub(super) fn mail(commit: &Commit, diff: &Diff) -> Vec<u8> {
    let mut out = format!("From {} Mon Sep 17 00:00:00 2001\n", commit.oid).into_bytes();
    let author = &commit.author;
    push(&mut out, &[b"From: ", &author.name, b" <", &author.email, b">\nDate: ", mail_date(author).as_bytes()]);
    push(&mut out, &[b"\nSubject: [PATCH] ", &commit.subject, b"\n\n", &commit.body]);
    if !commit.body.is_empty() && !commit.body.ends_with(b"\n") {
        out.push(b'\n');
    }
    push(&mut out, &[b"---\n\n", &unified(diff), b"-- \n\n"]);
    out
}

/// `Tue, 14 Nov 2023 22:13:20 +0000`, in the author's time zone.
fn mail_date(signature: &Signature) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let local = signature.time.saturating_add(i64::from(signature.offset));
    // Cut out of the form 2023-11-14T22:13:20Z.
    let text = abide_core::Timestamp::from_micros(local.saturating_mul(1_000_000)).to_string();
    let (date, time) = text.trim_end_matches('Z').split_once('T').unwrap_or_default();
    let mut parts = date.rsplit('-');
    let day: u32 = parts.next().and_then(|day| day.parse().ok()).unwrap_or(1);
    let month: usize = parts.next().and_then(|month| month.parse().ok()).unwrap_or(1);
    let year = parts.next().unwrap_or("1970");
    let weekday = DAYS[usize::try_from(local.div_euclid(86_400).rem_euclid(7)).unwrap_or(0)];
    let (sign, minutes) =
        if signature.offset < 0 { ('-', -signature.offset / 60) } else { ('+', signature.offset / 60) };
    let month = MONTHS[month.clamp(1, 12) - 1];
    format!("{weekday}, {day} {month} {year} {time} {sign}{:02}{:02}", minutes / 60, minutes % 60)
}

/// Hunks of one file for the field `patch`; `None` if there are none.
pub(super) fn hunks(content: &Content) -> Option<Vec<u8>> {
    match content {
        Content::Text { hunks, .. } if !hunks.is_empty() => {
            let mut out = Vec::new();
            for hunk in hunks {
                write_hunk(&mut out, hunk);
            }
            // GitHub's field ends without a line feed.
            if out.last() == Some(&b'\n') {
                out.pop();
            }
            Some(out)
        }
        _ => None,
    }
}

fn write_file(out: &mut Vec<u8>, file: &FileChange) {
    let (before, after) = (file.change.before(), file.change.after());
    // Git names an added or deleted file on both sides of the first line.
    let path = |side: Option<&Side>| side.map_or_else(|| file.change.path().to_vec(), |side| side.path.to_vec());
    let (old_path, new_path) = (path(before), path(after));
    push(out, &[b"diff --git ", &quoted(b"a/", &old_path), b" ", &quoted(b"b/", &new_path), b"\n"]);
    push(out, &[modes(&file.change).as_bytes()]);
    if let Change::Renamed(_, _, score) = &file.change {
        let (from, to) = (quoted(b"", &old_path), quoted(b"", &new_path));
        let likeness = format!("similarity index {score}%");
        push(out, &[likeness.as_bytes(), b"\nrename from ", &from, b"\nrename to ", &to, b"\n"]);
    }
    push(out, &[index(before, after).as_bytes()]);
    let old = before.map_or_else(|| b"/dev/null".to_vec(), |_| quoted(b"a/", &old_path));
    let new = after.map_or_else(|| b"/dev/null".to_vec(), |_| quoted(b"b/", &new_path));
    match &file.content {
        Content::Text { hunks, .. } if !hunks.is_empty() => {
            push(out, &[b"--- ", &old, b"\n+++ ", &new, b"\n"]);
            hunks.iter().for_each(|hunk| write_hunk(out, hunk));
        }
        Content::Text { .. } => {}
        Content::Binary | Content::Omitted => push(out, &[b"Binary files ", &old, b" and ", &new, b" differ\n"]),
    }
}

fn push(out: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// Mode lines of a patch, which stand before its content.
fn modes(change: &Change) -> String {
    match change {
        Change::Added(new) => format!("new file mode {}\n", new.kind.mode()),
        Change::Deleted(old) => format!("deleted file mode {}\n", old.kind.mode()),
        Change::Modified(old, new) | Change::Renamed(old, new, _) if old.kind != new.kind => {
            format!("old mode {}\nnew mode {}\n", old.kind.mode(), new.kind.mode())
        }
        Change::Modified(..) | Change::Renamed(..) => String::new(),
    }
}

fn index(before: Option<&Side>, after: Option<&Side>) -> String {
    let id = |side: Option<&Side>| side.map_or(abide_core::Oid::ZERO, |side| side.oid);
    let (old, new) = (id(before), id(after));
    if old == new {
        return String::new();
    }
    let mut line = format!("index {old}..{new}");
    if let (Some(before), Some(after)) = (before, after)
        && before.kind == after.kind
    {
        write!(line, " {}", before.kind.mode()).expect("writing to a string does not fail");
    }
    line.push('\n');
    line
}

fn write_hunk(out: &mut Vec<u8>, hunk: &Hunk) {
    let range = |start: u32, lines: u32| if lines == 1 { start.to_string() } else { format!("{start},{lines}") };
    let (old, new) = (range(hunk.old_start, hunk.old_lines), range(hunk.new_start, hunk.new_lines));
    out.extend_from_slice(format!("@@ -{old} +{new} @@\n").as_bytes());
    hunk.lines.iter().for_each(|line| write_line(out, line));
}

fn write_line(out: &mut Vec<u8>, line: &Line) {
    out.push(match line.kind {
        LineKind::Context => b' ',
        LineKind::Deleted => b'-',
        LineKind::Added => b'+',
    });
    out.extend_from_slice(&line.text);
    out.push(b'\n');
    if !line.newline {
        out.extend_from_slice(b"\\ No newline at end of file\n");
    }
}

/// Quotes a name by git's rules, so that git reads it back.
fn quoted(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    let odd = |byte: &u8| !(b' '..0x7f).contains(byte) || matches!(byte, b'"' | b'\\');
    let mut whole = prefix.to_vec();
    whole.extend_from_slice(path);
    if !whole.iter().any(odd) {
        return whole;
    }
    let mut out = vec![b'"'];
    for byte in whole {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            b'\n' => out.extend(b"\\n"),
            b'\t' => out.extend(b"\\t"),
            byte if odd(&byte) => out.extend(format!("\\{byte:03o}").into_bytes()),
            byte => out.push(byte),
        }
    }
    out.push(b'"');
    out
}
