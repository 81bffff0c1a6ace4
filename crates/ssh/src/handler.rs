//! Our answers to SSH requests: a key authenticates, a session channel may run a command, everything else is refused.

use crate::algorithms;
use crate::channel::wants_variable;
use crate::connection::{OpenChannel, Shared, State};
use crate::pace::Flushes;
use crate::session::Session;
use abide_forge::accounts::authenticate;
use russh::keys::{HashAlg, PublicKey};
use russh::server::{Auth, ChannelOpenHandle, Msg, PublicKeyOffer, Session as Ssh, VerifiedPublicKey};
use russh::{Channel, ChannelId, ChannelOpenFailure, Error, Pty};
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Channels per connection over its lifetime. russh keeps some memory for each until the connection ends.
const CHANNELS_EVER: usize = 1000;

/// Callbacks of russh for one client.
pub(crate) struct Handler {
    shared: Arc<Shared>,
    ip: IpAddr,
    state: watch::Sender<State>,
    cut: CancellationToken,
    flushes: Flushes,
    /// Fingerprint of the proved key.
    key: Option<Arc<str>>,
    opened: usize,
    /// Channels that already had a request.
    asked: HashSet<ChannelId>,
}

impl Handler {
    pub(crate) fn new(
        shared: Arc<Shared>,
        ip: IpAddr,
        state: watch::Sender<State>,
        cut: CancellationToken,
        flushes: Flushes,
    ) -> Self {
        Self { shared, ip, state, cut, flushes, key: None, opened: 0, asked: HashSet::new() }
    }

    /// Answers a request that starts something: only the first per channel is accepted.
    fn start(&mut self, channel: ChannelId, ssh: &mut Ssh) -> Result<(), Error> {
        match self.asked.insert(channel) {
            true => ssh.channel_success(channel),
            false => ssh.channel_failure(channel),
        }
    }
}

fn fingerprint(key: &PublicKey) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

impl russh::server::Handler for Handler {
    type Error = Error;

    async fn auth_publickey_offered(&mut self, _user: &str, offer: PublicKeyOffer<'_>) -> Result<Auth, Error> {
        if !algorithms::accepts(offer.algorithm) {
            return Ok(Auth::reject());
        }
        let fingerprint = fingerprint(offer.public_key);
        match authenticate::knows_ssh_key(&self.shared.forge, &fingerprint).await {
            Ok(true) => Ok(Auth::Accept),
            Ok(false) => Ok(Auth::reject()),
            Err(error) => {
                tracing::error!(%error, "a key could not be looked up");
                Ok(Auth::reject())
            }
        }
    }

    async fn auth_publickey(&mut self, _user: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, Error> {
        if !algorithms::accepts(key.algorithm) {
            return Ok(Auth::reject());
        }
        let fingerprint = fingerprint(key.public_key);
        match authenticate::by_ssh_key(&self.shared.forge, &fingerprint, Some(self.ip)).await {
            Ok(Some(_)) => {
                let key: Arc<str> = fingerprint.into();
                self.state.send_modify(|state| state.key = Some(key.clone()));
                self.key = Some(key);
                Ok(Auth::Accept)
            }
            Ok(None) => Ok(Auth::reject()),
            Err(error) => {
                tracing::error!(%error, "a key could not be looked up");
                Ok(Auth::reject())
            }
        }
    }

    async fn auth_succeeded(&mut self, _ssh: &mut Ssh) -> Result<(), Error> {
        self.state.send_modify(|state| state.authenticated = true);
        Ok(())
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _ssh: &mut Ssh,
    ) -> Result<(), Error> {
        let options = &self.shared.options;
        let full = self.opened >= CHANNELS_EVER || self.state.borrow().open >= options.max_channels;
        let (Some(key), false) = (&self.key, full || self.shared.stop.is_cancelled()) else {
            reply.reject(ChannelOpenFailure::ResourceShortage).await;
            return Ok(());
        };
        self.opened += 1;
        let session = Session {
            forge: self.shared.forge.clone(),
            key: key.clone(),
            ip: self.ip,
            cut: self.cut.clone(),
            flushes: self.flushes.clone(),
            request_timeout: options.handshake_timeout,
        };
        let open = OpenChannel::new(self.state.clone());
        reply.accept().await;
        self.shared.tasks.spawn(async move {
            session.run(channel).await;
            drop(open);
        });
        Ok(())
    }

    async fn env_request(&mut self, channel: ChannelId, name: &str, _value: &str, ssh: &mut Ssh) -> Result<(), Error> {
        match wants_variable(name) {
            true => ssh.channel_success(channel),
            false => ssh.channel_failure(channel),
        }
    }

    async fn exec_request(&mut self, channel: ChannelId, _command: &[u8], ssh: &mut Ssh) -> Result<(), Error> {
        self.start(channel, ssh)
    }

    /// Accepted only to reply that there is no shell.
    async fn shell_request(&mut self, channel: ChannelId, ssh: &mut Ssh) -> Result<(), Error> {
        self.start(channel, ssh)
    }

    async fn subsystem_request(&mut self, channel: ChannelId, _name: &str, ssh: &mut Ssh) -> Result<(), Error> {
        ssh.channel_failure(channel)
    }

    async fn pty_request(
        &mut self,
        channel: ChannelId,
        _term: &str,
        _columns: u32,
        _rows: u32,
        _width: u32,
        _height: u32,
        _modes: &[(Pty, u32)],
        ssh: &mut Ssh,
    ) -> Result<(), Error> {
        ssh.channel_failure(channel)
    }

    async fn x11_request(
        &mut self,
        channel: ChannelId,
        _single: bool,
        _protocol: &str,
        _cookie: &str,
        _screen: u32,
        ssh: &mut Ssh,
    ) -> Result<(), Error> {
        ssh.channel_failure(channel)
    }

    async fn window_change_request(
        &mut self,
        channel: ChannelId,
        _columns: u32,
        _rows: u32,
        _width: u32,
        _height: u32,
        ssh: &mut Ssh,
    ) -> Result<(), Error> {
        ssh.channel_failure(channel)
    }

    // russh refuses agent, port, socket and X11 forwarding by default.
}
