//! `inventory.yaml`, a template of YAML: whatever it is, reading it ends soon, and says why when it cannot be used.

use norfab_client::{InventoryError, read_forbidden_tasks, read_inventory};

/// Reads the file for both of its parts.
pub fn inventory(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("inventory.yaml"), data).expect("a file");
    for error in [read_inventory(folder.path()).err(), read_forbidden_tasks(folder.path()).err()].into_iter().flatten()
    {
        let told = error.to_string();
        assert!(told.contains("inventory.yaml"), "{told}");
        assert!(!matches!(error, InventoryError::Read { .. }) || std::str::from_utf8(data).is_err(), "{told}");
    }
}
