//! `abide config`

use crate::config::Config;
use crate::failure::Failure;
use crate::show;
use serde_json::json;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(config: &Config, args: &Args) -> Result<(), Failure> {
    if args.json {
        let all = config.all().map(|(name, value, source, about)| {
            json!({ "name": name, "value": value, "source": source.to_string(), "about": about })
        });
        show::json(&all.collect());
        return Ok(());
    }
    let rows: Vec<_> = config
        .all()
        .map(|(name, value, source, about)| vec![name.into(), value, source.to_string(), about.into()])
        .collect();
    show::table(&["SETTING", "VALUE", "FROM", "WHAT IT IS"], &rows);
    Ok(())
}
