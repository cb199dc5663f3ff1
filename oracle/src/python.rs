//! The offsets of all zones from 1990 to 2060 beside those of Python's `zoneinfo` on its package `tzdata`.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use norfab_model::Zone;

use crate::walker::{self, Change};

const SCRIPT: &str = include_str!("offsets.py");
/// 1990-01-01 to 2060-01-01, in seconds.
const TIME: std::ops::Range<i64> = 631_152_000..2_840_140_800;
/// How many differences are told.
const TOLD: usize = 20;

/// The first offset of a zone, and when it becomes another one.
type Offsets = Vec<Change>;

/// Compares; returns how many zones differ.
pub(crate) fn run(python: &str, zones: &[Zone]) -> Result<usize> {
    let output = ask(python, zones)?;
    let mut lines = output.lines();
    let version = lines.next().context("the Python script printed nothing")?;
    let theirs = read(lines)?;
    let missing: Vec<&str> = zones.iter().map(Zone::name).filter(|name| !theirs.contains_key(*name)).collect();
    let (mut changes, mut differences) = (0, Vec::new());
    for zone in zones {
        let Some(theirs) = theirs.get(zone.name()) else { continue };
        let ours = offsets(zone);
        changes += ours.len() - 1;
        if ours != *theirs {
            let first = ours.iter().zip(theirs).find(|(ours, theirs)| ours != theirs);
            differences.push(format!("{zone}: {first:?}, {} and {} offsets", ours.len(), theirs.len()));
        }
    }
    println!(
        "offsets: {} zones of Python's tzdata {version} from 1990 to 2060, {changes} changes, {} zones differ; \
         not there: {missing:?}",
        theirs.len(),
        differences.len(),
    );
    differences.iter().take(TOLD).for_each(|difference| println!("  {difference}"));
    Ok(differences.len())
}

fn offsets(zone: &Zone) -> Offsets {
    let first = Change { at: TIME.start, offset: walker::offset(zone, TIME.start) };
    std::iter::once(first).chain(walker::changes(zone, TIME.start, TIME.end)).collect()
}

fn ask(python: &str, zones: &[Zone]) -> Result<String> {
    let mut child = Command::new(python)
        .args(["-c", SCRIPT, &TIME.start.to_string(), &TIME.end.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {python}"))?;
    let names: String = zones.iter().map(|zone| format!("{zone}\n")).collect();
    child.stdin.take().context("no standard input")?.write_all(names.as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "the Python script failed: {}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// Lines of a name, an instant and the offset from then on.
fn read<'a>(lines: impl Iterator<Item = &'a str>) -> Result<BTreeMap<String, Offsets>> {
    let mut found: BTreeMap<String, Offsets> = BTreeMap::new();
    for line in lines {
        let mut words = line.split(' ');
        let (Some(name), Some(at), Some(offset)) = (words.next(), words.next(), words.next()) else {
            anyhow::bail!("cannot read the line {line:?} of the Python script");
        };
        found.entry(name.to_owned()).or_default().push(Change { at: at.parse()?, offset: offset.parse()? });
    }
    Ok(found)
}
