//! `abide serve`

use crate::compose::{self, Part};
use crate::config::{Config, Flags, LISTEN, LogFormat, PUBLIC_URL, SSH_LISTEN};
use crate::failure::Failure;
use crate::metrics::Metrics;
use abide_forge::accounts::setup;
use abide_forge::{Forge, admit, consumers, disk, doctor, jobs, mail, sequencer, start, sync, webhooks};
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// IP address and port for HTTP.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// IP address and port for SSH.
    #[arg(long, value_name = "ADDR:PORT")]
    ssh_listen: Option<String>,
    /// Public URL of this server.
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
}

impl Args {
    /// These flags are settings like any other.
    pub(crate) fn add_to(&self, flags: Flags) -> Flags {
        flags
            .with(LISTEN, self.listen.clone())
            .with(SSH_LISTEN, self.ssh_listen.clone())
            .with(PUBLIC_URL, self.public_url.clone())
    }
}

pub(crate) async fn run(config: Config) -> Result<(), Failure> {
    start_logging(&config)?;
    for notice in config.notices() {
        tracing::warn!("{notice}");
    }
    let http = bind(config.settings.server.listen).await?;
    let ssh = bind(config.settings.server.ssh_listen).await?;
    let (http_at, ssh_at) = (address(&http)?, address(&ssh)?);
    let part = Part::Server { public_url: public_url(&config, http_at), ssh_url: ssh_url(&config, http_at, ssh_at) };
    let forge = compose::forge(&config, part).await?;
    let recovered = start::recover(&forge).await?;
    tracing::info!(?recovered, "recovered work of earlier runs");

    for wide in doctor::wide_modes(&forge)? {
        tracing::warn!("{wide}");
    }
    if let Some(notice) = disk::notice(&forge) {
        tracing::warn!("{notice}");
    }
    if let Some(folder) = mail::outbox(&forge) {
        tracing::info!(folder = %folder.display(), "no mail server is set (mail.smtp_url): mails are written to files");
    }
    consumers::register(&forge, &consumers::all()).await?;

    let stop = CancellationToken::new();
    let mut background = JoinSet::new();
    let quiet = CancellationToken::new();
    background.spawn(sequencer::run(forge.clone(), quiet.clone()));
    background.spawn(consumers::run(forge.clone(), quiet.clone()));
    background.spawn(webhooks::send::run(forge.clone(), quiet.clone()));
    background.spawn(admit::run(forge.clone(), quiet.clone()));
    background.spawn(jobs::runner::run(forge.clone(), quiet.clone()));
    background.spawn(jobs::schedule::run(forge.clone(), quiet.clone()));
    background.spawn(sync::run(forge.clone(), quiet.clone()));
    background.spawn(sync::follow::run(forge.clone(), quiet.clone()));
    let mut roads = JoinSet::new();
    roads.spawn(serve_http(forge.clone(), &config, http, stop.clone())?);
    roads.spawn(serve_ssh(forge.clone(), &config, ssh, stop.clone()));

    let signals = StopSignals::watch()?;
    say(&format!("Abide is ready at http://{http_at} (ssh {ssh_at})"));
    match setup::link(&forge).await {
        Ok(Some(link)) => say(&format!("Create the first admin at {link}")),
        Ok(None) => {}
        Err(error) => {
            tracing::warn!(%error, "the link for the first administrator could not be created; restart the server to get one")
        }
    }
    wait_for_the_end(signals, &mut roads).await?;
    tracing::info!("stopping: no new connections, waiting for running work");
    stop.cancel();
    while roads.join_next().await.is_some() {}
    quiet.cancel();
    while background.join_next().await.is_some() {}
    forge.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// Prints a line for whoever started the server. They may have stopped listening, which is no reason to stop serving.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn start_logging(config: &Config) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(&config.settings.log.filter)
        .map_err(|error| Failure::usage(format!("log.filter is not valid: {error}")))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match config.settings.log.format {
        LogFormat::Json => builder.json().init(),
        LogFormat::Text => builder.with_ansi(false).init(),
    }
    Ok(())
}

async fn bind(at: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(at).await.map_err(|error| {
        Failure::failed(format!("cannot listen on {at}: {error}"))
            .hint("another program may use this port; choose others with --listen and --ssh-listen")
    })
}

fn address(listener: &TcpListener) -> Result<SocketAddr, Failure> {
    listener.local_addr().map_err(|error| Failure::failed(format!("cannot read the listening address: {error}")))
}

/// As configured, or where we listen.
fn public_url(config: &Config, http_at: SocketAddr) -> String {
    match config.is_given(PUBLIC_URL) {
        true => config.settings.server.public_url.clone(),
        false => format!("http://{http_at}"),
    }
}

/// As configured, or the host of the public address with the port we listen at.
fn ssh_url(config: &Config, http_at: SocketAddr, ssh_at: SocketAddr) -> String {
    let configured = &config.settings.server.public_ssh_url;
    if !configured.is_empty() {
        return configured.trim_end_matches('/').to_owned();
    }
    let public = public_url(config, http_at);
    let authority = public.split("://").nth(1).unwrap_or_default().split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((v6, _)) => format!("[{v6}]"),
        None => authority.split(':').next().unwrap_or_default().to_owned(),
    };
    format!("ssh://git@{host}:{}", ssh_at.port())
}

fn serve_http(
    forge: Forge,
    config: &Config,
    listener: TcpListener,
    stop: CancellationToken,
) -> Result<impl Future<Output = ()> + Send + 'static, Failure> {
    let metrics = Metrics::install().map_err(|error| Failure::failed(format!("cannot keep metrics: {error}")))?;
    let options = abide_web::Options { drain_timeout: config.settings.server.drain, ..config.settings.http.clone() };
    let limits = config.settings.api;
    let router =
        crate::routes::router(abide_web::App::new(forge, Arc::new(move || metrics.render()), stop.clone()), limits);
    Ok(async move { abide_web::serve(listener, router, options, stop).await })
}

fn serve_ssh(
    forge: Forge,
    config: &Config,
    listener: TcpListener,
    stop: CancellationToken,
) -> impl Future<Output = ()> + Send + 'static {
    let host_key = config.settings.server.data.join("ssh_host_ed25519_key");
    let options = abide_ssh::Options { host_key, ..config.settings.ssh.clone() };
    async move {
        if let Err(error) = abide_ssh::serve(forge, listener, options, stop).await {
            tracing::error!(%error, "the SSH server failed");
        }
    }
}

/// Someone who asks us to stop. Watched for before readiness is reported.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn watch() -> Result<Self, Failure> {
        let watch = |kind| signal(kind).map_err(|error| Failure::failed(format!("cannot watch for signals: {error}")));
        Ok(Self { terminate: watch(SignalKind::terminate())?, interrupt: watch(SignalKind::interrupt())? })
    }
}

/// Returns when someone asks us to stop; fails if a road ends by itself.
async fn wait_for_the_end(mut signals: StopSignals, roads: &mut JoinSet<()>) -> Result<(), Failure> {
    tokio::select! {
        _ = signals.terminate.recv() => Ok(()),
        _ = signals.interrupt.recv() => Ok(()),
        _ = roads.join_next() => Err(Failure::failed("a part of the server stopped unexpectedly; see the log")),
    }
}
