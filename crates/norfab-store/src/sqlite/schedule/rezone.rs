//! Cursors that were computed by other zone data than this process has.

use norfab_model::{Rezoned, StoreError};

use super::encode::Changes;
use super::find::{self, AT_ONCE};
use crate::by_zone::rezone;
use crate::sqlite::row::Cell;
use crate::sqlite::{Shared, storage};

pub(super) async fn schedule_rezone(shared: &Shared, zone_data: &str) -> Result<Vec<Rezoned>, StoreError> {
    const DOING: &str = "bring schedules to other zone data";
    let mut tx = shared.write(DOING).await?;
    let by_others = sqlx::query_file_scalar!("sql/schedule/by_other_zones.sql", zone_data)
        .fetch_all(&mut *tx)
        .await
        .map_err(storage(DOING))?;
    if by_others.is_empty() {
        return Ok(Vec::new());
    }
    let mut told = Vec::new();
    for some in by_others.chunks(AT_ONCE) {
        let mut changes = Changes::default();
        for row in find::rows(&mut tx, some, DOING).await? {
            // Who cannot be read comes to light when it is due.
            let Ok(before) = row.schedule() else { continue };
            let offset_then = match row.zone_offset {
                Cell::Integer(seconds) => i32::try_from(seconds).ok(),
                _ => None,
            };
            let (after, moved) = rezone(&before, offset_then);
            changes.push_rezoned(row.row, &before, &after);
            told.extend(moved);
        }
        changes.write(&mut tx, DOING).await?;
    }
    tx.commit().await.map_err(storage(DOING))?;
    Ok(told)
}
