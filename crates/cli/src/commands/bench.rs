//! `abide bench`: runs a benchmark of `abide-bench` and prints its result.

use crate::config::Config;
use crate::failure::Failure;
use crate::show;
pub(crate) use abide_bench::Action;
use abide_bench::{Machine, Output};

pub(crate) async fn run(config: &Config, action: Action) -> Result<(), Failure> {
    let settings = &config.settings;
    let machine = Machine { git: settings.program.binary.clone(), database: settings.server.database.clone() };
    match abide_bench::run(&machine, action).await.map_err(|failure| Failure::failed(failure.to_string()))? {
        Output::Json(value) => show::json(&value),
        Output::Table { headings, rows, notes } => {
            show::table(headings, &rows);
            notes.iter().for_each(|note| show::say!("note: {note}"));
        }
    }
    Ok(())
}
