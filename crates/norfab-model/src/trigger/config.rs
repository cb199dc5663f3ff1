//! The configurations of triggers that have versions: which keys they may have, and what stands in them.

use serde_json::{Map, Value};

use super::TriggerError;
use crate::text::shown;

/// Refuses keys that are not known, and versions other than the present one; without a version it is that.
pub(super) fn check(
    kind: &'static str,
    config: &Map<String, Value>,
    keys: &'static [&'static str],
    version: u64,
) -> Result<(), TriggerError> {
    if let Some(key) = config.keys().find(|key| !keys.contains(&key.as_str())) {
        return Err(TriggerError::UnknownKey { kind, given: shown(key), keys });
    }
    match config.get("version") {
        Some(found) if *found != version => {
            Err(TriggerError::Version { kind, given: given(config, "version"), known: version })
        }
        _ => Ok(()),
    }
}

/// What stands under a key, as JSON, for a message.
pub(super) fn given(config: &Map<String, Value>, key: &str) -> String {
    config.get(key).map_or_else(|| "absent".to_owned(), |value| shown(&value.to_string()))
}
