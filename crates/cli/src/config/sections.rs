//! Joins the sections that the crates declare, and declares those that only the command line uses.

use abide_core::settings;
use abide_core::settings::value::{nonempty, socket};
use abide_core::settings::{Section as _, Setting, duration, named, text};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

settings! {
    /// All settings.
    #[derive(Clone)]
    pub(crate) struct Settings
    sections {
        server: ServerSettings;
        http: abide_web::Options;
        database: abide_store::Options;
        program: GitProgram;
        git: abide_git::GitLimits;
        ssh: abide_ssh::Options;
        api: abide_web_api::ApiLimits;
        forge: abide_forge::Settings;
        log: LogSettings;
    }
}

settings! {
    /// Directories and addresses of the server.
    #[derive(Clone)]
    pub(crate) struct ServerSettings in "server" {
        /// Data directory.
        [Common] data: PathBuf = "./data", nonempty;
        /// PostgreSQL URL. Empty: SQLite in the data directory.
        [Common, Password] database: Option<String> = "", database_url;
        /// IP address and port for HTTP.
        [Common] listen: SocketAddr = "127.0.0.1:7464", socket;
        /// IP address and port for SSH.
        [Common] ssh_listen: SocketAddr = "127.0.0.1:7465", socket;
        /// Public URL of this server, used in links and clone URLs.
        [Common] public_url: String = "http://127.0.0.1:7464", url;
        /// Prefix of SSH clone URLs. Empty: ssh://git@, the host of public_url and the SSH port.
        [Common] public_ssh_url: String = "", text;
        /// Name of this node. Nodes that share a database need different names.
        [Common] node: String = "main", node_name;
        /// Time that a stopping server waits for running requests and jobs.
        drain: Duration = "30s", duration(..);
    }
}

settings! {
    /// The git program.
    #[derive(Clone)]
    pub(crate) struct GitProgram in "git" {
        /// Path of the git program.
        [Common] binary: String = "git", nonempty;
    }
}

settings! {
    /// The log.
    #[derive(Clone)]
    pub(crate) struct LogSettings in "log" {
        /// Log format: text or json.
        [Common] format: LogFormat = "text", LogFormat::parse;
        /// Log filter, e.g. info or abide_forge=debug,info.
        [Common] filter: String = "info,sqlx=warn,russh=warn", nonempty;
    }
}

/// Format of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

impl LogFormat {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("it must be text or json".into()),
        }
    }
}

// Settings that flags set too. A name that is not declared does not compile.
pub(crate) const DATA: &Setting = named::<ServerSettings>("server.data");
pub(crate) const DATABASE: &Setting = named::<ServerSettings>("server.database");
pub(crate) const LISTEN: &Setting = named::<ServerSettings>("server.listen");
pub(crate) const SSH_LISTEN: &Setting = named::<ServerSettings>("server.ssh_listen");
pub(crate) const PUBLIC_URL: &Setting = named::<ServerSettings>("server.public_url");

/// Every declared setting, in the order in which `abide config` shows them: the settings of a section stand together,
/// whichever crates declare them.
pub(super) fn declared() -> &'static [&'static Setting] {
    static ALL: LazyLock<Vec<&'static Setting>> = LazyLock::new(|| {
        let mut all = Vec::new();
        Settings::declare(&mut all);
        let order: Vec<_> = all.iter().map(|setting| setting.section()).collect();
        all.sort_by_key(|setting| order.iter().position(|section| *section == setting.section()));
        all
    });
    &ALL
}

fn url(value: &str) -> Result<String, String> {
    let rest = value.strip_prefix("http://").or_else(|| value.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.contains(char::is_whitespace) && !value.ends_with('/') => {
            Ok(value.to_owned())
        }
        _ => Err("it must start with http:// or https:// and have no slash at the end".into()),
    }
}

fn database_url(value: &str) -> Result<Option<String>, String> {
    match value {
        "" => Ok(None),
        url if url.starts_with("postgres://") || url.starts_with("postgresql://") => Ok(Some(url.to_owned())),
        _ => Err("it must be empty for SQLite, or start with postgres://".into()),
    }
}

fn node_name(value: &str) -> Result<String, String> {
    let letters = value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    match letters && (1..=64).contains(&value.len()) {
        true => Ok(value.to_owned()),
        false => Err("it must have 1 to 64 letters, digits and hyphens".into()),
    }
}
