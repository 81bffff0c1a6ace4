//! Webhook deliveries per second to a receiver in this process.

use super::{Args, Site, Stop};
use crate::Failure;
use crate::common::site::{self, failed};
use crate::io;
use crate::report::{Line, Report, Unit};
use crate::samples::Samples;
use abide_forge::attention::star;
use abide_forge::consumers;
use abide_forge::webhooks::{Change, Secret, create, send};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Webhooks that get deliveries in parallel.
const HOOKS: u32 = 8;

pub(crate) async fn measure(
    engine: &str,
    site: &Site,
    args: &Args,
    stop: &Stop,
    report: &mut Report,
) -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(io("listen"))?;
    let url = format!("http://{}/", listener.local_addr().map_err(io("listen"))?);
    let received = Arc::new(AtomicU64::new(0));
    let receiver = tokio::spawn(receive(listener, received.clone()));
    let (forge, _) = site::open(&site.options, &site.data).await?;
    consumers::register(&forge, &consumers::all()).await.map_err(failed)?;
    let (owner, fan) = (site::person(&forge, "owner").await?, site::person(&forge, "fan").await?);
    for hooks in [1, HOOKS] {
        let repo = site::repo(&forge, &owner, &format!("hooked-{hooks}")).await?;
        for _ in 0..hooks {
            let change = Change {
                url: Some(url.clone()),
                secret: Secret::Set("not a secret at all".into()),
                events: Some(vec!["star".to_owned()]),
                ..Change::default()
            };
            create::create(&forge, &owner, &repo, &change).await.map_err(failed)?;
        }
        for round in 0..args.rounds.div_ceil(hooks) {
            match round % 2 {
                0 => star::star(&forge, &fan, &repo).await.map_err(failed)?,
                _ => star::unstar(&forge, &fan, &repo).await.map_err(failed)?,
            };
        }
        stop.check()?;
        consumers::catch_up(&forge).await.map_err(failed)?;
        let (before, start) = (received.load(Ordering::SeqCst), Instant::now());
        send::catch_up(&forge).await.map_err(failed)?;
        let took = start.elapsed().as_secs_f64();
        let done = received.load(Ordering::SeqCst) - before;
        let case = format!("{engine}, deliveries, {hooks} {}", if hooks == 1 { "hook" } else { "hooks" });
        report.add(Line::new(case, Unit::PerSecond, Samples::of(done as f64 / took)));
    }
    receiver.abort();
    forge.close().await;
    Ok(())
}

/// Receives deliveries and responds 200.
async fn receive(listener: TcpListener, received: Arc<AtomicU64>) {
    while let Ok((socket, _)) = listener.accept().await {
        let received = received.clone();
        tokio::spawn(async move {
            // A sender that disconnects does not affect the measurement.
            let _ = answer(socket, &received).await;
        });
    }
}

async fn answer(socket: TcpStream, received: &AtomicU64) -> std::io::Result<()> {
    let mut socket = BufReader::new(socket);
    loop {
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            if socket.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let head = line.trim_end().to_ascii_lowercase();
            if let Some(value) = head.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if head.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        socket.read_exact(&mut body).await?;
        received.fetch_add(1, Ordering::SeqCst);
        socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await?;
    }
}
