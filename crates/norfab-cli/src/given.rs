//! Where the text of an option comes from: the command line itself, a file (`@FILE`), or standard input (`-`), for what
//! is longer than a command line may be.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

/// Where the text of an option comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Given {
    /// It is the value itself.
    Here(String),
    /// It stands in a file.
    File(PathBuf),
    /// It comes through standard input.
    Stdin,
}

/// Why the text cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GivenError {
    /// It cannot be read, or is not UTF-8.
    #[error("cannot read the value of {option} from {place}")]
    Read {
        /// The option.
        option: &'static str,
        /// The file, or standard input.
        place: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// It is longer than any value may be.
    #[error("the value of {option} in {place} is longer than {limit} bytes")]
    TooLong {
        /// The option.
        option: &'static str,
        /// The file, or standard input.
        place: String,
        /// The bound.
        limit: usize,
    },
    /// Two options want to read what can be read once.
    #[error("standard input can give one value only; give the others as files, @FILE")]
    StdinTwice,
}

/// Reads an option's value: `@FILE`, `-` (also `@-`), or the text itself. No JSON is a lone `-` or begins with `@`.
impl From<String> for Given {
    fn from(value: String) -> Self {
        match value.strip_prefix('@') {
            Some("-") => Self::Stdin,
            Some(path) => Self::File(path.into()),
            None if value == "-" => Self::Stdin,
            None => Self::Here(value),
        }
    }
}

/// Checks that at most one of some options waits for standard input.
///
/// # Errors
/// [`GivenError::StdinTwice`].
pub(crate) fn check_stdin<'a>(options: impl IntoIterator<Item = &'a Option<Given>>) -> Result<(), GivenError> {
    let of_stdin = options.into_iter().flatten().filter(|given| **given == Given::Stdin);
    if of_stdin.count() > 1 { Err(GivenError::StdinTwice) } else { Ok(()) }
}

impl Given {
    /// The text, at most `limit` bytes where it is read. Waits for standard input without holding anything else up.
    ///
    /// # Errors
    /// [`GivenError`].
    pub(crate) async fn text(self, option: &'static str, limit: usize) -> Result<String, GivenError> {
        let place = match &self {
            Self::Here(_) => String::new(),
            Self::File(path) => path.display().to_string(),
            Self::Stdin => "standard input".to_owned(),
        };
        let read = tokio::task::spawn_blocking(move || match self {
            Self::Here(text) => Ok(Some(text)),
            Self::File(path) => File::open(path).and_then(|file| read(file, limit)),
            Self::Stdin => read(io::stdin().lock(), limit),
        });
        match read.await.unwrap_or_else(|broken| Err(io::Error::other(broken))) {
            Ok(Some(text)) => Ok(text),
            Ok(None) => Err(GivenError::TooLong { option, place, limit }),
            Err(source) => Err(GivenError::Read { option, place, source }),
        }
    }
}

/// Reads UTF-8 to the end; nothing when that is beyond the limit. A byte order mark in front is no part of the text.
fn read(source: impl Read, limit: usize) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let one_more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    source.take(one_more).read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        return Ok(None);
    }
    let text = String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))?;
    Ok(Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, given: Given) {
        assert_eq!(Given::from(value.to_owned()), given);
    }

    #[test]
    fn places() {
        check("{}", Given::Here("{}".into()));
        check("", Given::Here(String::new()));
        check("@a/b.json", Given::File("a/b.json".into()));
        check("-", Given::Stdin);
        check("@-", Given::Stdin);
        check("-1", Given::Here("-1".into()));
    }

    #[test]
    fn standard_input_is_read_once() {
        let (stdin, here) = (Some(Given::Stdin), Some(Given::Here("{}".into())));
        assert!(check_stdin([&stdin, &here, &None]).is_ok() && check_stdin([&here, &here]).is_ok());
        assert!(check_stdin([&stdin, &None, &stdin]).is_err());
    }

    #[test]
    fn texts_are_bounded() {
        assert_eq!(read(&b"\xef\xbb\xbf[1]\n"[..], 7).expect("read"), Some("[1]\n".into()));
        assert_eq!(read(&b"12345"[..], 5).expect("read"), Some("12345".into()));
        assert_eq!(read("1234\u{e9}".as_bytes(), 5).expect("read"), None);
        assert_eq!(read(&b"\xff"[..], 5).expect_err("no UTF-8").kind(), io::ErrorKind::InvalidData);
    }
}
