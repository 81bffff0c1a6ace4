//! Times of branches and tags, for sorting.

use super::history::History;
use super::objects::id;
use super::{ReadError, Reader};
use crate::snapshot::Ref;
use abide_core::Oid;
use gix::objs::Kind;
use std::collections::HashMap;
use std::time::Instant;

impl Reader {
    /// Time of each ref's object: the tagger time of an annotated tag, else the committer time of the commit. Zero if
    /// there is
    /// none or the object is unreadable. Refs not reached before `until` are omitted.
    pub fn ref_times<'a>(&self, refs: impl Iterator<Item = &'a Ref>, until: Instant) -> HashMap<Oid, i64> {
        let mut history = self.history();
        let mut times = HashMap::new();
        for found in refs {
            if Instant::now() >= until {
                break;
            }
            let time = self.ref_time(&mut history, found).unwrap_or_default();
            times.insert(found.oid, time);
        }
        times
    }

    fn ref_time(&self, history: &mut History<'_>, found: &Ref) -> Result<i64, ReadError> {
        let Some(peeled) = found.peeled else { return history.time(&id(found.oid)) };
        let tagger = self.tag(found.oid)?.tagger.map(|tagger| tagger.time).filter(|&time| time != 0);
        match (tagger, history.objects.header(&id(peeled))?.0) {
            (Some(time), _) => Ok(time),
            (None, Kind::Commit) => history.time(&id(peeled)),
            (None, _) => Ok(0),
        }
    }
}
