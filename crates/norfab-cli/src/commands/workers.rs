//! `norfab workers`: asks the broker who is registered. It needs no database and cuts nobody off.

use norfab_client::{Json, Role};
use serde_json::{Map, Value, json};

use super::{Site, Verdict};
use crate::args::WorkersArgs;
use crate::failure::Failure;
use crate::output::{Output, Room, worker_table};
use crate::signals::Signals;

/// Shows the workers.
pub(crate) async fn workers(
    site: &Site,
    args: WorkersArgs,
    out: &Output,
    signals: &mut Signals,
) -> Result<Verdict, Failure> {
    const TASK: &str = "show_workers";
    let kwargs = args.service.map_or_else(|| json!({}), |service| json!({ "service": service }));
    let asked = site.builder(Role::ReadOnly).ask_broker(TASK, Json::from(kwargs), site.0.connect_timeout);
    let answer = tokio::select! {
        answer = asked => answer?,
        signal = signals.next() => return Err(Failure::Interrupted(signal)),
    };
    let rows: Vec<Map<String, Value>> = answer.to().map_err(|source| Failure::Answer { task: TASK, source })?;
    // Where there is none the broker tells of one without a name.
    let rows: Vec<Value> =
        rows.into_iter().filter(|row| row.get("name") != Some(&json!(""))).map(Value::from).collect();
    if rows.is_empty() {
        out.progress("no workers are registered with the broker");
    }
    out.result(&rows, || if rows.is_empty() { String::new() } else { worker_table(&rows, Room::of_stdout()) })?;
    Ok(Verdict::Done)
}
