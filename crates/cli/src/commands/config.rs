//! `abide config`

use crate::config::Config;
use crate::failure::Failure;
use crate::show::{self, say};
use serde_json::json;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print every setting, not only the common ones and those that are set.
    #[arg(long)]
    all: bool,
    /// Print every setting as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(config: &Config, args: &Args) -> Result<(), Failure> {
    if args.json {
        let all = config.all().map(|setting| {
            let source = setting.source.to_string();
            json!({ "name": setting.name, "value": setting.value, "source": source, "about": setting.help })
        });
        show::json(&all.collect());
        return Ok(());
    }
    let shown = config.all().filter(|setting| args.all || setting.common);
    let rows: Vec<_> = shown
        .map(|setting| vec![setting.name.into(), setting.value, setting.source.to_string(), setting.help.into()])
        .collect();
    show::table(&["SETTING", "VALUE", "FROM", "DESCRIPTION"], &rows);
    let hidden = config.all().count() - rows.len();
    if hidden > 0 {
        say!("\n{hidden} more settings have their defaults; abide config --all shows them.");
    }
    Ok(())
}
