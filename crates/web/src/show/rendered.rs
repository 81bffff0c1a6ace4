//! What was rendered before. Keyed by object id and by all else that decides how it looks, so it is never stale; bounded
//! by its size in bytes.

use super::markdown::{self, Base};
use super::{code, text};
use crate::pages::Problem;
use abide_core::Oid;
use abide_forge::Fault;
use abide_forge::browse::{Browser, TreeEntry};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// How much is kept.
const BYTES: u64 = 24 * 1024 * 1024;
/// How many a cache expects: so few that it is not split into parts, which large files would outweigh.
const FEW: usize = 32;
/// Files that are rendered at once.
const AT_ONCE: usize = 4;

/// What was rendered before.
pub(crate) struct Rendered {
    documents: Cache<(Oid, Vec<u8>, Base), Arc<str>, Weight>,
    files: Cache<(Oid, Vec<u8>), Arc<Vec<String>>, Weight>,
    places: Semaphore,
}

impl Rendered {
    pub(crate) fn new() -> Self {
        Self {
            documents: Cache::with_weighter(FEW, BYTES / 2, Weight),
            files: Cache::with_weighter(FEW, BYTES / 2, Weight),
            places: Semaphore::new(AT_ONCE),
        }
    }

    /// The README of a directory; `None` if it cannot be shown.
    pub(crate) async fn readme(
        &self,
        browser: &Browser,
        entry: &TreeEntry,
        largest: usize,
        base: Base,
    ) -> Result<Option<Arc<str>>, Problem> {
        let key = (entry.oid, entry.name.to_vec(), base);
        if let Some(html) = self.documents.get(&key) {
            return Ok(Some(html));
        }
        let blob = browser.blob(entry.oid, largest).await?;
        if blob.binary || blob.truncated || blob.data.is_empty() {
            return Ok(None);
        }
        self.document(key, blob.data).await.map(Some)
    }

    /// A Markdown file.
    pub(crate) async fn markdown(&self, oid: Oid, data: Vec<u8>, base: Base) -> Result<Arc<str>, Problem> {
        self.document((oid, b"file.md".to_vec(), base), data).await
    }

    async fn document(&self, key: (Oid, Vec<u8>, Base), data: Vec<u8>) -> Result<Arc<str>, Problem> {
        self.documents
            .get_or_insert_async(&key, async {
                let (_, name, base) = key.clone();
                self.work(move || Arc::from(markdown::render(&name, &data, &base))).await
            })
            .await
    }

    /// A text file, line by line.
    pub(crate) async fn code(&self, oid: Oid, name: &[u8], data: Vec<u8>) -> Result<Arc<Vec<String>>, Problem> {
        // What it is called decides how it is coloured.
        let key = (oid, name.to_vec());
        self.files
            .get_or_insert_async(&key, async {
                let name = text::shown(name);
                self.work(move || Arc::new(code::lines(&name, &data))).await
            })
            .await
    }

    /// What people wrote in issues, one after the other.
    pub(crate) async fn said(&self, texts: Vec<String>, base: Base, site: String) -> Result<Vec<String>, Problem> {
        self.work(move || texts.iter().map(|text| markdown::said(text, &base, &site)).collect()).await
    }

    async fn work<T: Send + 'static>(&self, make: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
        let _place = self.places.acquire().await;
        let made = tokio::task::spawn_blocking(make).await;
        made.map_err(|error| Fault::Internal(format!("rendering was interrupted: {error}")).into())
    }
}

#[derive(Clone)]
struct Weight;

impl Weighter<(Oid, Vec<u8>, Base), Arc<str>> for Weight {
    fn weight(&self, key: &(Oid, Vec<u8>, Base), html: &Arc<str>) -> u64 {
        (200 + key.1.len() + key.2.dir.len() + html.len()) as u64
    }
}

impl Weighter<(Oid, Vec<u8>), Arc<Vec<String>>> for Weight {
    fn weight(&self, key: &(Oid, Vec<u8>), lines: &Arc<Vec<String>>) -> u64 {
        let text: usize = lines.iter().map(|line| line.capacity() + size_of::<String>()).sum();
        (100 + key.1.len() + text) as u64
    }
}
