//! Cache of rendered texts. The key contains the object id and all other inputs of the result, so entries are never
//! stale. The size is bounded in bytes.

use super::budget::Budget;
use super::markdown::{self, Base};
use super::render_pool::RenderPool;
use super::{code, text};
use crate::Problem;
use abide_core::Oid;
use abide_forge::browse::{Browser, TreeEntry};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Size of the cache in bytes.
const BYTES: u64 = 24 * 1024 * 1024;
/// Expected number of entries: few, so that the cache is not split into shards that are smaller than a large file.
const FEW: usize = 32;
/// CPU time for the texts of one page. Further texts are shown unrendered, and rendered when the page is requested
/// again.
const PAGE: Duration = Duration::from_secs(2);

type Document = (Oid, Vec<u8>, Base);
/// Digest of a text and all other inputs of its rendering.
type Said = [u8; 32];
type Kept<K, V> = Arc<Cache<K, V, Weight>>;

/// Cache of rendered texts.
pub(crate) struct Rendered {
    documents: Kept<Document, Arc<str>>,
    files: Kept<(Oid, Vec<u8>), Arc<Vec<String>>>,
    said: Kept<Said, Arc<str>>,
    render_pool: RenderPool,
}

impl Rendered {
    pub(crate) fn new() -> Self {
        Self {
            documents: Arc::new(Cache::with_weighter(FEW, BYTES / 3, Weight)),
            files: Arc::new(Cache::with_weighter(FEW, BYTES / 3, Weight)),
            said: Arc::new(Cache::with_weighter(FEW, BYTES / 3, Weight)),
            render_pool: RenderPool::new(),
        }
    }

    /// The README of a directory; `None` if it cannot be shown.
    pub(crate) async fn readme(
        &self,
        client: Option<IpAddr>,
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
        self.document(client, key, blob.data).await.map(Some)
    }

    /// A Markdown file.
    pub(crate) async fn markdown(
        &self,
        client: Option<IpAddr>,
        oid: Oid,
        data: Vec<u8>,
        base: Base,
    ) -> Result<Arc<str>, Problem> {
        self.document(client, (oid, b"file.md".to_vec(), base), data).await
    }

    async fn document(&self, client: Option<IpAddr>, key: Document, data: Vec<u8>) -> Result<Arc<str>, Problem> {
        if let Some(html) = self.documents.get(&key) {
            return Ok(html);
        }
        let kept = self.documents.clone();
        let make = move || once(&kept, key, |(_, name, base)| Arc::from(markdown::render(name, &data, base)));
        self.render_pool.run(client, make).await
    }

    /// A text file, line by line.
    pub(crate) async fn code(
        &self,
        client: Option<IpAddr>,
        oid: Oid,
        name: &[u8],
        data: Vec<u8>,
    ) -> Result<Arc<Vec<String>>, Problem> {
        // The file name decides the highlighting.
        let key = (oid, name.to_vec());
        if let Some(lines) = self.files.get(&key) {
            return Ok(lines);
        }
        let kept = self.files.clone();
        let make = move || once(&kept, key, |(_, name)| Arc::new(code::lines(&text::shown(name), &data)));
        self.render_pool.run(client, make).await
    }

    /// Texts of issues, one after the other.
    pub(crate) async fn said(
        &self,
        client: Option<IpAddr>,
        texts: Vec<String>,
        base: Base,
        site: String,
    ) -> Result<Vec<Arc<str>>, Problem> {
        let keys: Vec<Said> = texts.iter().map(|text| digest(text, &base, &site)).collect();
        let known: Option<Vec<_>> = keys.iter().map(|key| self.said.get(key)).collect();
        if let Some(known) = known {
            return Ok(known);
        }
        let kept = self.said.clone();
        let make = move || {
            let page = Budget::new(PAGE);
            let each = texts.iter().zip(keys).map(|(text, key)| match page.is_spent() {
                true => kept.get(&key).unwrap_or_else(|| Arc::from(markdown::plain(text))),
                false => once(&kept, key, |_| {
                    let budget = Budget::new(markdown::ALLOWED);
                    Arc::from(markdown::said(text, &base, &site, &budget))
                }),
            });
            each.collect()
        };
        self.render_pool.run(client, make).await
    }
}

/// The cached value of a key. A missing one is rendered and cached even if its request ends meanwhile.
fn once<K, V>(kept: &Cache<K, V, Weight>, key: K, make: impl FnOnce(&K) -> V) -> V
where
    K: Eq + std::hash::Hash,
    V: Clone,
    Weight: Weighter<K, V>,
{
    if let Some(made) = kept.get(&key) {
        return made;
    }
    let made = make(&key);
    kept.insert(key, made.clone());
    made
}

fn digest(text: &str, base: &Base, site: &str) -> Said {
    let mut digest = Sha256::new();
    for part in [base.repo.as_bytes(), base.at.as_bytes(), &base.dir, site.as_bytes(), text.as_bytes()] {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

#[derive(Clone)]
struct Weight;

impl Weighter<Said, Arc<str>> for Weight {
    fn weight(&self, _: &Said, html: &Arc<str>) -> u64 {
        (100 + html.len()) as u64
    }
}

impl Weighter<Document, Arc<str>> for Weight {
    fn weight(&self, key: &Document, html: &Arc<str>) -> u64 {
        (200 + key.1.len() + key.2.dir.len() + html.len()) as u64
    }
}

impl Weighter<(Oid, Vec<u8>), Arc<Vec<String>>> for Weight {
    fn weight(&self, key: &(Oid, Vec<u8>), lines: &Arc<Vec<String>>) -> u64 {
        let text: usize = lines.iter().map(|line| line.capacity() + size_of::<String>()).sum();
        (100 + key.1.len() + text) as u64
    }
}
