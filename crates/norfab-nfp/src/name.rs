//! The name of a client: its identity at the broker, and the name of its folder and key files.

use std::fmt;

use crate::error::Error;

/// A client's name. Of two clients that use one name at the same broker, only the newer one is served.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientName(String);

impl ClientName {
    /// Takes a name of 1 to 255 bytes, which is what a ZeroMQ identity may have, that is safe as a file name: without
    /// control characters, slash and backslash, and not beginning with a dot.
    ///
    /// # Errors
    /// [`Error::Name`] for any other text.
    pub fn new(name: impl Into<String>) -> Result<Self, Error> {
        let name = name.into();
        let is_bad = |c: char| c.is_control() || matches!(c, '/' | '\\');
        if name.is_empty() || name.len() > 255 || name.starts_with('.') || name.contains(is_bad) {
            return Err(Error::Name { name: name.chars().take(300).collect() });
        }
        Ok(Self(name))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClientName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_names_are_taken() {
        let longest = "x".repeat(255);
        for good in ["a", "NFPClient", "nightly job.1", "日本語", &longest] {
            assert_eq!(ClientName::new(good).unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", ".hidden", "a/b", "a\\b", "a\nb", "a\0b", &"x".repeat(256)] {
            assert!(matches!(ClientName::new(bad), Err(Error::Name { .. })), "{bad:?}");
        }
    }
}
