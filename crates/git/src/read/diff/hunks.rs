//! Line diff of two texts, with git's default algorithm.

use gix::bstr::BString;
use gix_imara_diff::sources::byte_lines;
use gix_imara_diff::{Algorithm, Diff, InternedInput};
use std::ops::Range;

/// Context lines around a change.
const CONTEXT: u32 = 3;

/// A group of changes with context lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// First line in the old file, counted from 1; as in git, the line before if the hunk has no old lines.
    pub old_start: u32,
    pub old_lines: u32,
    /// First line in the new file, counted the same way.
    pub new_start: u32,
    pub new_lines: u32,
    /// The lines; fewer than the hunk spans if the line limit cut it.
    pub lines: Vec<Line>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    Context,
    Deleted,
    Added,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub kind: LineKind,
    /// Line number in the old file, from 1.
    pub old: Option<u32>,
    /// Line number in the new file, from 1.
    pub new: Option<u32>,
    /// Content without the line feed.
    pub text: BString,
    /// Whether a line feed ends it; only the last line of a file may lack one.
    pub newline: bool,
}

/// Result of [`compare`].
#[derive(Default)]
pub(super) struct Compared {
    pub additions: usize,
    pub deletions: usize,
    pub hunks: Vec<Hunk>,
    pub truncated: bool,
}

/// Compares two texts. Keeps at most `limit` lines, but counts all.
pub(super) fn compare(old: &[u8], new: &[u8], limit: usize) -> Compared {
    let input = InternedInput::new(byte_lines(old), byte_lines(new));
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    let mut compared = Compared {
        additions: diff.count_additions() as usize,
        deletions: diff.count_removals() as usize,
        ..Compared::default()
    };
    let lengths = (length(&input.before), length(&input.after));
    let mut left = limit;
    let mut changes = diff.hunks().map(|hunk| (hunk.before, hunk.after)).peekable();
    while let Some(first) = changes.next() {
        if left == 0 {
            compared.truncated = true;
            break;
        }
        // Changes with overlapping context form one hunk.
        let mut group = vec![first];
        while let Some(next) = changes.next_if(|next| {
            let end = group.last().map_or(0, |last| last.0.end);
            next.0.start <= end.saturating_add(2 * CONTEXT)
        }) {
            group.push(next);
        }
        let (hunk, cut) = hunk(&input, &group, lengths, left);
        left -= hunk.lines.len();
        compared.truncated |= cut;
        compared.hunks.push(hunk);
    }
    compared
}

fn length<T>(tokens: &[T]) -> u32 {
    u32::try_from(tokens.len()).expect("texts are compared up to a limit of bytes far below")
}

type Change = (Range<u32>, Range<u32>);

fn hunk(input: &InternedInput<&[u8]>, group: &[Change], lengths: (u32, u32), limit: usize) -> (Hunk, bool) {
    let (first, last) = (&group[0], &group[group.len() - 1]);
    let before = first.0.start.min(CONTEXT);
    let after = (lengths.0 - last.0.end).min(CONTEXT);
    let old = first.0.start - before..last.0.end + after;
    let new = first.1.start - before..last.1.end + after;
    let mut lines = Vec::new();
    let (mut at_old, mut at_new) = (old.start, new.start);
    let context = |lines: &mut Vec<Line>, at_old: &mut u32, at_new: &mut u32, until: u32| {
        while *at_old < until && lines.len() < limit {
            let text = input.interner[input.before[*at_old as usize]];
            lines.push(line(LineKind::Context, Some(*at_old), Some(*at_new), text));
            *at_old += 1;
            *at_new += 1;
        }
    };
    for (deleted, added) in group {
        context(&mut lines, &mut at_old, &mut at_new, deleted.start);
        let room = limit - lines.len();
        lines.extend(
            deleted
                .clone()
                .take(room)
                .map(|at| line(LineKind::Deleted, Some(at), None, input.interner[input.before[at as usize]])),
        );
        let room = limit - lines.len();
        lines.extend(
            added
                .clone()
                .take(room)
                .map(|at| line(LineKind::Added, None, Some(at), input.interner[input.after[at as usize]])),
        );
        (at_old, at_new) = (deleted.end, added.end);
    }
    context(&mut lines, &mut at_old, &mut at_new, old.end);
    let changed: usize = group.iter().map(|(deleted, added)| deleted.len() + added.len()).sum();
    let unchanged = old.len() - group.iter().map(|(deleted, _)| deleted.len()).sum::<usize>();
    let cut = lines.len() < changed + unchanged;
    let start = |range: &Range<u32>| if range.is_empty() { range.start } else { range.start + 1 };
    let hunk = Hunk {
        old_start: start(&old),
        old_lines: old.end - old.start,
        new_start: start(&new),
        new_lines: new.end - new.start,
        lines,
    };
    (hunk, cut)
}

fn line(kind: LineKind, old: Option<u32>, new: Option<u32>, text: &[u8]) -> Line {
    let (text, newline) = match text.strip_suffix(b"\n") {
        Some(text) => (text, true),
        None => (text, false),
    };
    Line { kind, old: old.map(|at| at + 1), new: new.map(|at| at + 1), text: text.into(), newline }
}
