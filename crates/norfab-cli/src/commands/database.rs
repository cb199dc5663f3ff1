//! `norfab db`: what the job database is, and bringing it up to date.

use norfab_client::{DatabaseInfo, Migrated, inspect_database, migrate_database};
use serde_json::json;

use super::{Site, Verdict};
use crate::failure::Failure;
use crate::output::Output;

/// Shows what the database holds. Changes nothing.
pub(crate) async fn info(site: &Site, out: &Output) -> Result<Verdict, Failure> {
    let info = inspect_database(&site.existing_database()?).await?;
    out.result(&info, || describe(&info))?;
    Ok(Verdict::Done)
}

/// Brings the database to the schema of this release.
pub(crate) async fn migrate(site: &Site, out: &Output) -> Result<Verdict, Failure> {
    let path = site.existing_database()?;
    let before = inspect_database(&path).await?;
    let done = migrate_database(&path).await?;
    let names: Vec<_> = done.applied.iter().map(|one| format!("{:04} {}", one.version, one.description)).collect();
    let value = json!({
        "path": path,
        "legacy": before.legacy,
        "jobs": before.jobs,
        "events": before.events,
        "applied": names,
        "adopted": done.adopted,
    });
    out.result(&value, || tell(&before, &done, &names))?;
    Ok(Verdict::Done)
}

fn describe(info: &DatabaseInfo) -> String {
    let schema = match (info.legacy, info.pending_migrations.len()) {
        // Only taking it over tells for certain whose it is: another program may have a table of that name.
        (true, _) => {
            "not taken over yet; `norfab db migrate` takes over what the Python client made, and loses nothing, \
             or says why it cannot"
                .to_owned()
        }
        (false, 0) => format!("{} (up to date)", info.schema_version),
        (false, pending) => format!(
            "{} of {}; `norfab db migrate` applies {pending} more",
            info.schema_version, info.newest_schema_version
        ),
    };
    let fields = [
        ("database", info.path.display().to_string()),
        ("schema", schema),
        ("jobs", info.jobs.to_string()),
        ("events", info.events.to_string()),
        ("size", format!("{} bytes in {} pages", info.size_bytes, info.page_count)),
        ("payloads", info.codec.clone().unwrap_or_else(|| "not noted (the Python client writes zlib)".to_owned())),
        ("journal", info.journal_mode.clone()),
        ("SQLite", info.sqlite_version.clone()),
    ];
    fields.map(|(name, text)| format!("{name:8}  {text}")).join("\n")
}

fn tell(before: &DatabaseInfo, done: &Migrated, names: &[String]) -> String {
    let path = before.path.display();
    if done.applied.is_empty() {
        return format!("{path} is up to date; nothing was done");
    }
    let mut text = if before.legacy {
        format!("took over {path} of the Python client, with {} jobs and {} events", before.jobs, before.events)
    } else {
        format!("brought {path} up to date, with {} jobs and {} events", before.jobs, before.events)
    };
    names.iter().for_each(|name| text.push_str(&format!("\n  applied {name}")));
    done.adopted.iter().for_each(|column| text.push_str(&format!("\n  adopted {column}, which was there already")));
    text
}
