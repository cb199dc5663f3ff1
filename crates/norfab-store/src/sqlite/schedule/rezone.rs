//! Cursors that were computed by other zone data than this process has.

use norfab_model::{Rezoned, StoreError};
use sqlx::SqliteConnection;

use super::encode::Changes;
use super::find::{self, AT_ONCE};
use crate::by_zone::told;
use crate::sqlite::{Shared, storage};

const DOING: &str = "bring schedules to other zone data";

pub(super) async fn schedule_rezone(shared: &Shared, zone_data: &str) -> Result<Vec<Rezoned>, StoreError> {
    if by_others(&mut *shared.read(DOING).await?, zone_data).await?.is_empty() {
        return Ok(Vec::new());
    }
    let mut tx = shared.write(DOING).await?;
    let found = by_others(&mut tx, zone_data).await?;
    let mut moved = Vec::new();
    for some in found.chunks(AT_ONCE) {
        let mut changes = Changes::default();
        for row in find::rows(&mut tx, some, DOING).await? {
            // Who cannot be read comes to light when it is due.
            let Ok(stored) = row.stored() else { continue };
            let after = row.by_zone().rezoned(&stored);
            changes.push_rezoned(row.row, &stored, &after);
            moved.extend(told(&stored, &after));
        }
        changes.write(&mut tx, DOING).await?;
    }
    tx.commit().await.map_err(storage(DOING))?;
    Ok(moved)
}

async fn by_others(connection: &mut SqliteConnection, zone_data: &str) -> Result<Vec<i64>, StoreError> {
    sqlx::query_file_scalar!("sql/schedule/by_other_zones.sql", zone_data)
        .fetch_all(connection)
        .await
        .map_err(storage(DOING))
}
