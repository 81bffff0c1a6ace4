//! Commits as numbers: position in the commit-graph, then further numbers for commits outside it in order of discovery.
//!
//! Walks mark commits in plain vectors, and never load commits that are in the graph.

use super::ReadError;
use super::commit::Headers;
use super::objects::{Objects, id};
use abide_core::Oid;
use gix::ObjectId;
use gix::commitgraph::{GENERATION_NUMBER_INFINITY, Graph, Position};
use gix::hash;
use gix::objs::Kind;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Number of a commit during one walk.
pub(super) type Node = u32;

/// Commit history during one call.
pub(super) struct History<'a> {
    graph: Option<&'a Graph>,
    in_graph: u32,
    pub objects: Objects<'a>,
    others: Vec<Other>,
    numbers: HashMap<ObjectId, Node>,
}

/// A commit outside the graph.
struct Other {
    id: ObjectId,
    loaded: Option<Loaded>,
}

struct Loaded {
    facts: Facts,
    parents: Vec<Node>,
}

/// Data of a commit that walks need.
#[derive(Clone, Copy)]
pub(super) struct Facts {
    pub tree: ObjectId,
    /// Committer time.
    pub time: i64,
    /// Greater than the generation of every ancestor, or infinite if unknown.
    pub generation: u32,
}

impl<'a> History<'a> {
    pub fn new(graph: Option<&'a Graph>, objects: Objects<'a>) -> Self {
        let in_graph = graph.map_or(0, Graph::num_commits);
        Self { graph, in_graph, objects, others: Vec::new(), numbers: HashMap::new() }
    }

    /// First commit of a walk; it may be missing or another object type.
    pub fn start(&mut self, oid: Oid) -> Result<Node, ReadError> {
        let node = self.node(&id(oid));
        if node >= self.in_graph && self.objects.header(&id(oid))?.0 != Kind::Commit {
            return Err(ReadError::NotACommit);
        }
        Ok(node)
    }

    /// Number of a commit.
    pub fn node(&mut self, id: &hash::oid) -> Node {
        if let Some(position) = self.graph.and_then(|graph| graph.lookup(id)) {
            return position.0;
        }
        let next = self.in_graph + Node::try_from(self.others.len()).expect("walks end long before");
        *self.numbers.entry(id.to_owned()).or_insert_with(|| {
            self.others.push(Other { id: id.to_owned(), loaded: None });
            next
        })
    }

    /// Id of a numbered commit.
    pub fn id(&self, node: Node) -> ObjectId {
        match self.graph {
            Some(graph) if node < self.in_graph => graph.id_at(Position(node)).to_owned(),
            _ => self.others[(node - self.in_graph) as usize].id,
        }
    }

    /// Reads the data of a commit; writes its parents to `parents`.
    pub fn look(&mut self, node: Node, parents: &mut Vec<Node>) -> Result<Facts, ReadError> {
        parents.clear();
        if let Some(graph) = self.graph.filter(|_| node < self.in_graph) {
            let commit = graph.commit_at(Position(node));
            for parent in commit.iter_parents() {
                parents.push(parent.map_err(|error| self.objects.reader().broken(error))?.0);
            }
            return Ok(Facts {
                tree: commit.root_tree_id().to_owned(),
                time: commit.committer_timestamp().cast_signed(),
                generation: commit.generation(),
            });
        }
        let at = (node - self.in_graph) as usize;
        if self.others[at].loaded.is_none() {
            self.others[at].loaded = Some(self.load(self.others[at].id)?);
        }
        let loaded = self.others[at].loaded.as_ref().expect("it was loaded just now");
        parents.extend_from_slice(&loaded.parents);
        Ok(loaded.facts)
    }

    /// Committer time of a commit, without numbering it or its parents.
    pub fn time(&mut self, id: &hash::oid) -> Result<i64, ReadError> {
        if let Some((graph, position)) = self.graph.and_then(|graph| Some((graph, graph.lookup(id)?))) {
            return Ok(graph.commit_at(position).committer_timestamp().cast_signed());
        }
        let reader = self.objects.reader();
        let headers = Headers::parse(self.objects.commit(id)?);
        Ok(headers.ok_or_else(|| reader.broken(format!("commit {id} does not parse")))?.time())
    }

    fn load(&mut self, id: ObjectId) -> Result<Loaded, ReadError> {
        let reader = self.objects.reader();
        let data = self.objects.commit(&id).map_err(|error| match error {
            ReadError::NotFound => reader.broken(format!("commit {id} is missing")),
            error => error,
        })?;
        let headers = Headers::parse(data).ok_or_else(|| reader.broken(format!("commit {id} does not parse")))?;
        let facts = Facts {
            tree: super::objects::id(headers.tree),
            time: headers.time(),
            generation: GENERATION_NUMBER_INFINITY,
        };
        let parents = headers.parents.iter().map(|&parent| self.node(&super::objects::id(parent))).collect();
        Ok(Loaded { facts, parents })
    }
}

/// One byte of marks per commit.
#[derive(Default)]
pub(super) struct Marks(Vec<u8>);

impl Marks {
    pub fn get(&self, node: Node) -> u8 {
        self.0.get(node as usize).copied().unwrap_or(0)
    }

    /// Adds marks; returns whether any was not set before.
    pub fn add(&mut self, node: Node, marks: u8) -> bool {
        let at = node as usize;
        if at >= self.0.len() {
            self.0.resize((at + 1).next_power_of_two(), 0);
        }
        let news = self.0[at] & marks != marks;
        self.0[at] |= marks;
        news
    }

    pub fn remove(&mut self, node: Node, marks: u8) {
        if let Some(found) = self.0.get_mut(node as usize) {
            *found &= !marks;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = u8> {
        self.0.iter().copied()
    }
}

/// Commits to visit: largest key first, equal keys in insertion order.
pub(super) struct Queue<K>(BinaryHeap<(K, Reverse<u64>, Node)>, u64);

impl<K: Ord> Queue<K> {
    pub fn new() -> Self {
        Self(BinaryHeap::new(), 0)
    }

    pub fn push(&mut self, key: K, node: Node) {
        self.1 += 1;
        self.0.push((key, Reverse(self.1), node));
    }

    pub fn pop(&mut self) -> Option<Node> {
        self.0.pop().map(|(_, _, node)| node)
    }

    pub fn peek(&self) -> Option<&K> {
        self.0.peek().map(|(key, _, _)| key)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
