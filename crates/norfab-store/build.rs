//! Has the crate compiled again when a migration is added: `migrate!` reads the folder, which Cargo does not see.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
