//! Reading durations, sizes and numbers, the way people write them.

use abide_nostr::grasp::quota::Share;
use std::time::Duration;

/// `7d`, `30m`, `500ms`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let rule = || "a duration must be a number with a unit: 500ms, 30s, 5m, 12h or 7d".to_owned();
    let split = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(rule)?;
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().map_err(|_| rule())?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(rule()),
    };
    number.checked_mul(millis).map(Duration::from_millis).ok_or_else(rule)
}

/// `4GiB`, `500MB`, `1024`.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let rule = || "a size must be a number of bytes, or a number with KiB, MiB, GiB, kB, MB or GB".to_owned();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().map_err(|_| rule())?;
    let factor = match unit.trim() {
        "" | "B" => 1,
        "kB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(rule()),
    };
    number.checked_mul(factor).ok_or_else(rule)
}

/// `20%` of the disk, or a size.
pub(super) fn share(text: &str) -> Result<Share, String> {
    match text.strip_suffix('%') {
        Some(percent) => match number(percent.trim())? {
            percent @ 0..=100 => Ok(Share::Percent(percent)),
            _ => Err("a share of the disk must be 0% to 100%".into()),
        },
        None => {
            bytes(text).map(Share::Bytes).map_err(|_| "it must be a share of the disk (20%) or a size (4GiB)".into())
        }
    }
}

/// The parts of a list, separated by commas.
pub(super) fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// A whole number.
pub(super) fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "it must be a whole number, 0 or more".to_owned())
}

/// What a TOML value would be on the command line. Lists become comma-separated.
pub(super) fn from_toml(value: &toml::Value) -> Result<String, String> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Boolean(truth) => Ok(truth.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Array(items) => Ok(items.iter().map(from_toml).collect::<Result<Vec<_>, _>>()?.join(",")),
        toml::Value::Table(_) | toml::Value::Datetime(_) => {
            Err("a setting must be a string, a number, a boolean or a list".into())
        }
    }
}

/// An address that can be shown.
pub(super) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    match rest.rsplit_once('@') {
        Some((login, place)) => {
            let user = login.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}:***@{place}")
        }
        None => url.to_owned(),
    }
}
