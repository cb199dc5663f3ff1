//! Lists and maps of which no more is kept than there can be workers: a broker that means harm may send millions of entries,
//! each of which takes more memory than it has bytes.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use norfab_model::MOST_WORKERS;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The first [`MOST_WORKERS`] entries; the rest is looked at only for being JSON.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct First<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<Vec<T>> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Few(PhantomData::<Vec<T>>))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<BTreeMap<String, T>> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Few(PhantomData::<BTreeMap<String, T>>))
    }
}

struct Few<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Few<Vec<T>> {
    type Value = First<Vec<T>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < MOST_WORKERS {
            let Some(entry) = list.next_element()? else { return Ok(First(kept)) };
            kept.push(entry);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(First(kept))
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Few<BTreeMap<String, T>> {
    type Value = First<BTreeMap<String, T>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut kept = BTreeMap::new();
        while kept.len() < MOST_WORKERS {
            let Some((key, value)) = map.next_entry()? else { return Ok(First(kept)) };
            kept.insert(key, value);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(First(kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_kept_than_there_can_be_workers() {
        let list: Vec<usize> = (0..MOST_WORKERS + 5).collect();
        let text = serde_json::to_string(&list).unwrap();
        let First(kept) = serde_json::from_str::<First<Vec<usize>>>(&text).unwrap();
        assert_eq!(kept.as_slice(), list.get(..MOST_WORKERS).unwrap());

        let map: BTreeMap<String, usize> = list.iter().map(|number| (format!("{number:06}"), *number)).collect();
        let text = serde_json::to_string(&map).unwrap();
        let First(kept) = serde_json::from_str::<First<BTreeMap<String, usize>>>(&text).unwrap();
        assert_eq!(kept.len(), MOST_WORKERS);
        assert!(kept.iter().eq(map.iter().take(MOST_WORKERS)));
    }

    #[test]
    fn what_is_left_out_must_be_json_all_the_same() {
        let entries = "0,".repeat(MOST_WORKERS);
        assert!(serde_json::from_str::<First<Vec<u8>>>(&format!("[{entries}0]")).is_ok());
        for bad in ["", "}", "nil]", "0"] {
            assert!(serde_json::from_str::<First<Vec<u8>>>(&format!("[{entries}{bad}")).is_err(), "{bad}");
        }
        assert_eq!(serde_json::from_str::<First<Vec<u8>>>("[]").unwrap(), First(Vec::new()));
        assert!(serde_json::from_str::<First<BTreeMap<String, u8>>>("[]").is_err());
    }
}
