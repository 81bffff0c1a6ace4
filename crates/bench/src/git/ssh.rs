//! SSH on our side, for information: there is no reference for it without a system-wide sshd.

use super::process::find;
use super::{Bench, io};
use crate::Failure;
use std::process::{Command, Stdio};

/// SSH command for git with a key that the server knows; `None` without an SSH client, or if no account pushes.
pub(crate) fn command(bench: &Bench) -> Result<Option<String>, Failure> {
    if bench.signer.is_some() {
        return Ok(None);
    }
    let (Some(ssh), Some(keygen)) = (find("ssh"), find("ssh-keygen")) else { return Ok(None) };
    let key = bench.root.join("ssh-key");
    if !key.exists() {
        let mut command = Command::new(keygen);
        command.args(["-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f"]).arg(&key);
        let made = command.stdin(Stdio::null()).stdout(Stdio::null()).status().map_err(io("start ssh-keygen"))?;
        if !made.success() {
            return Err(Failure::failed("ssh-keygen made no key"));
        }
        bench.server.add_ssh_key(&key.with_extension("pub"))?;
    }
    let (ssh, key) = (ssh.display(), key.display());
    let options = "-F none -o BatchMode=yes -o IdentitiesOnly=yes -o StrictHostKeyChecking=no \
                   -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR";
    Ok(Some(format!("'{ssh}' -i '{key}' {options}")))
}
