//! SQLite's single writer: units of work run one after another and are committed together.
//!
//! A commit at `synchronous=FULL` costs a disk flush. So the writer takes all queued units (up to a limit), runs each
//! in a SAVEPOINT of one transaction, commits once, and only then answers the callers. If the transaction itself fails
//! (disk full, an interrupt), SQLite may have rolled all of it back silently, and a further SAVEPOINT would autocommit.
//! Then it is rolled back, the connection is reopened, and each unit runs alone.

use crate::conn::{Effect, Link, Tx, Wakes};
use crate::store::{Store, Unit, finished, guarded};
use crate::{Conn, StoreError};
use abide_core::Clock;
use futures_util::future::BoxFuture;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, SqlitePool};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;

/// Pause before reopening the database after its connection broke.
const REOPEN_PAUSE: Duration = Duration::from_millis(200);

/// A type-erased unit of work with its input and waiting caller.
pub(crate) trait Work: Send {
    /// Runs the unit and keeps its result; an error says what happened to the transaction.
    fn run<'a>(&'a mut self, tx: &'a mut Tx) -> BoxFuture<'a, Result<(), Effect>>;
    /// Answers the caller: with the kept result, or with the error that undid it.
    fn answer(self: Box<Self>, undone: Option<StoreError>, wakes: Wakes);
}

pub(crate) struct Job<I, T, E, U> {
    input: I,
    unit: U,
    result: Option<Result<T, E>>,
    caller: oneshot::Sender<Result<T, E>>,
    store: Store,
}

impl<I, T, E, U> Job<I, T, E, U>
where
    I: Send + Sync + 'static,
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
    U: Unit<I, T, E>,
{
    #[expect(clippy::new_ret_no_self, reason = "the type is erased at once")]
    pub(crate) fn new(input: I, unit: U, store: Store) -> (Box<dyn Work>, oneshot::Receiver<Result<T, E>>) {
        let (caller, answer) = oneshot::channel();
        (Box::new(Self { input, unit, result: None, caller, store }), answer)
    }
}

impl<I, T, E, U> Work for Job<I, T, E, U>
where
    I: Send + Sync + 'static,
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
    U: Unit<I, T, E>,
{
    fn run<'a>(&'a mut self, tx: &'a mut Tx) -> BoxFuture<'a, Result<(), Effect>> {
        Box::pin(async move {
            let (result, effect) = finished(guarded(&self.unit, tx, &self.input).await, tx.conn.failed.take());
            let failed = result.is_err();
            self.result = Some(result);
            if failed { Err(effect) } else { Ok(()) }
        })
    }

    fn answer(self: Box<Self>, undone: Option<StoreError>, wakes: Wakes) {
        let result = match undone {
            Some(error) => Err(error.into()),
            None => self.result.unwrap_or_else(|| Err(StoreError::Closed.into())),
        };
        if result.is_ok() {
            self.store.wake(wakes);
        }
        // The caller may have stopped waiting.
        let _ = self.caller.send(result);
    }
}

/// Handle to the writer task.
pub(crate) struct Writer {
    queue: Mutex<Option<mpsc::Sender<Box<dyn Work>>>>,
    sender: mpsc::WeakSender<Box<dyn Work>>,
    task: Mutex<Option<JoinHandle<Option<Conn>>>>,
}

impl Writer {
    pub(crate) fn start(
        conn: Conn,
        reopen: SqliteConnectOptions,
        clock: Arc<dyn Clock>,
        batch: usize,
        queue: usize,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(queue.max(1));
        let runner = Runner { conn: Some(conn), reopen, clock, receiver, batch: batch.max(1) };
        let task = tokio::spawn(runner.run());
        Self { sender: sender.downgrade(), queue: Mutex::new(Some(sender)), task: Mutex::new(Some(task)) }
    }

    pub(crate) async fn send(&self, job: Box<dyn Work>) -> Result<(), StoreError> {
        let sender = self.sender.upgrade().ok_or(StoreError::Closed)?;
        sender.send(job).await.map_err(|_| StoreError::Closed)
    }

    /// Accepts no more units, lets queued ones finish, and closes the readers and then the writer's connection.
    ///
    /// In this order, because only the last open connection checkpoints the log into the file, and only a writer can.
    pub(crate) async fn close(&self, readers: &SqlitePool) {
        self.queue.lock().await.take();
        let mut task = self.task.lock().await;
        let conn = match task.take() {
            Some(task) => task.await.ok().flatten(),
            None => None,
        };
        readers.close().await;
        if let Some(Conn { link: Link::SqliteWriter(conn), .. }) = conn {
            // A failure here loses nothing that was acknowledged.
            let _ = sqlx::Connection::close(*conn).await;
        }
    }
}

struct Runner {
    /// `None` after it broke, until it is reopened.
    conn: Option<Conn>,
    reopen: SqliteConnectOptions,
    clock: Arc<dyn Clock>,
    receiver: mpsc::Receiver<Box<dyn Work>>,
    batch: usize,
}

impl Runner {
    /// Runs until no sender is left, and returns the connection.
    async fn run(mut self) -> Option<Conn> {
        let mut jobs = Vec::with_capacity(self.batch);
        while self.receiver.recv_many(&mut jobs, self.batch).await > 0 {
            if jobs.len() > 1 {
                self.together(&mut jobs).await;
            }
            for job in jobs.drain(..) {
                self.alone(job).await;
            }
        }
        self.conn.take()
    }

    /// Runs the jobs in one transaction and answers them. Leaves them in place if the transaction failed.
    async fn together(&mut self, jobs: &mut Vec<Box<dyn Work>>) {
        let mut tx = match self.begin().await {
            Ok(tx) => tx,
            // All of them have waited for the lock; one by one they would wait for it again.
            Err(error) => return jobs.drain(..).for_each(|job| job.answer(Some(error.again()), Wakes::default())),
        };
        let mut done = Vec::with_capacity(jobs.len());
        let mut held = true;
        for job in jobs.iter_mut() {
            match in_savepoint(&mut tx, &mut **job).await {
                Ok(wakes) => done.push(wakes),
                Err(Broken) => {
                    held = false;
                    break;
                }
            }
        }
        if held && tx.conn.raw("COMMIT").await.is_ok() {
            self.conn = Some(tx.conn);
            for (job, wakes) in jobs.drain(..).zip(done) {
                job.answer(None, wakes);
            }
        } else {
            self.replace(tx.conn).await;
        }
    }

    /// Runs one job in its own transaction and answers it.
    async fn alone(&mut self, mut job: Box<dyn Work>) {
        let mut tx = match self.begin().await {
            Ok(tx) => tx,
            Err(error) => return job.answer(Some(error), Wakes::default()),
        };
        let outcome = job.run(&mut tx).await;
        let wakes = tx.wakes;
        match outcome {
            Ok(()) => match tx.conn.raw("COMMIT").await {
                Ok(()) => {
                    self.conn = Some(tx.conn);
                    job.answer(None, wakes);
                }
                Err(error) => {
                    self.replace(tx.conn).await;
                    job.answer(Some(error), Wakes::default());
                }
            },
            Err(_) => {
                if tx.conn.raw("ROLLBACK").await.is_ok() {
                    self.conn = Some(tx.conn);
                } else {
                    self.replace(tx.conn).await;
                }
                job.answer(None, Wakes::default());
            }
        }
    }

    async fn begin(&mut self) -> Result<Tx, StoreError> {
        match self.try_begin().await {
            // The connection broke since its last use, and a new one is open.
            Err(error) if !error.is_retryable() && self.conn.is_some() => self.try_begin().await,
            begun => begun,
        }
    }

    async fn try_begin(&mut self) -> Result<Tx, StoreError> {
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => self.open().await?,
        };
        conn.failed = None;
        // Never plain BEGIN: upgrading a read snapshot to a write fails at once, whatever the timeout.
        match conn.raw("BEGIN IMMEDIATE").await {
            Ok(()) => Ok(Tx { conn, now: self.clock.now(), wakes: Wakes::default() }),
            Err(error) => {
                if error.is_retryable() {
                    self.conn = Some(conn);
                } else {
                    self.replace(conn).await;
                }
                Err(error)
            }
        }
    }

    /// Replaces a broken connection. Opens the new one first: if none were open for a moment, the next one would read
    /// the log again. It might find a commit there that was written but not flushed, and so had failed.
    async fn replace(&mut self, mut broken: Conn) {
        let _ = broken.raw("ROLLBACK").await;
        self.conn = self.open().await.ok();
        if let Link::SqliteWriter(broken) = broken.link {
            let _ = sqlx::Connection::close_hard(*broken).await;
        }
    }

    async fn open(&self) -> Result<Conn, StoreError> {
        match self.reopen.connect().await {
            Ok(conn) => Ok(Conn::new(Link::SqliteWriter(Box::new(conn)))),
            Err(error) => {
                tracing::error!(%error, "the database could not be opened again");
                tokio::time::sleep(REOPEN_PAUSE).await;
                Err(error.into())
            }
        }
    }
}

/// The transaction is no longer valid.
struct Broken;

async fn in_savepoint(tx: &mut Tx, job: &mut dyn Work) -> Result<Wakes, Broken> {
    tx.conn.raw("SAVEPOINT unit").await.map_err(|_| Broken)?;
    tx.wakes = Wakes::default();
    match job.run(tx).await {
        Ok(()) => {}
        Err(Effect::Refused) => {
            tx.wakes = Wakes::default();
            tx.conn.raw("ROLLBACK TO unit").await.map_err(|_| Broken)?;
        }
        Err(Effect::Retry | Effect::Broken) => return Err(Broken),
    }
    tx.conn.raw("RELEASE unit").await.map_err(|_| Broken)?;
    Ok(tx.wakes)
}
