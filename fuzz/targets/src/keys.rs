//! Key files: no text of one reaches an error, and what is read is written and read as the same.

use norfab_nfp::{parse_public_file, parse_secret_file, public_file_text};

/// Reads a file as a public and as a secret one.
pub fn keys(data: &[u8]) {
    let public = parse_public_file(data);
    if let Ok(key) = &public {
        assert_eq!(parse_public_file(public_file_text(key).as_bytes()).as_ref(), Ok(key));
    }
    match parse_secret_file(data) {
        Ok(pair) => {
            assert_eq!(Ok(pair.public()), public, "a secret file is a public one too");
            let secret = String::from_utf8_lossy(data).into_owned();
            let shown = format!("{pair:?}");
            let hidden = |line: &str| !line.contains("secret-key") || !shown.contains(line);
            assert!(secret.lines().filter(|line| line.len() >= 40).all(hidden), "a secret does not show");
        }
        // The text of an error is one of a few, none of which quotes the file.
        Err(error) => assert!(error.to_string().len() < 100),
    }
}
