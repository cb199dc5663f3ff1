//! CURVE keys as NorFab keeps them: the key types, and the text of a key file (ZPL with Z85 inside). Pure; the files
//! themselves are handled in `folder`.

use std::fmt;

use omq_tokio::{CurveKeypair, CurvePublicKey, CurveSecretKey};

mod folder;

pub use folder::{BrokerKeySource, KeyFolder};

/// Characters of a key in Z85.
const Z85_LEN: usize = 40;

/// The public half of a CURVE key pair. It may be shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(CurvePublicKey);

impl PublicKey {
    /// Reads a key of exactly 40 characters of Z85.
    ///
    /// # Errors
    /// [`KeyTextError::NotZ85`] for any other text.
    pub fn from_z85(text: &str) -> Result<Self, KeyTextError> {
        check_z85(text)?;
        CurvePublicKey::from_z85(text).map(Self).map_err(|_| KeyTextError::NotZ85)
    }

    /// The key as 40 characters of Z85.
    #[must_use]
    pub fn to_z85(&self) -> String {
        self.0.to_z85()
    }

    pub(crate) fn curve(&self) -> CurvePublicKey {
        self.0
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.to_z85())
    }
}

/// The secret half of a CURVE key pair. Nothing prints it, and its memory is wiped when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey(CurveSecretKey);

impl SecretKey {
    /// Reads a key of exactly 40 characters of Z85.
    ///
    /// # Errors
    /// [`KeyTextError::NotZ85`] for any other text; the text is not part of the error.
    pub fn from_z85(text: &str) -> Result<Self, KeyTextError> {
        check_z85(text)?;
        CurveSecretKey::from_z85(text).map(Self).map_err(|_| KeyTextError::NotZ85)
    }

    /// The public key that belongs to this secret.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.derive_public())
    }

    fn to_z85(&self) -> String {
        self.0.to_z85()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

/// A CURVE key pair whose halves belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPair {
    public: PublicKey,
    secret: SecretKey,
}

impl KeyPair {
    /// Makes a new pair from the system's random numbers.
    #[must_use]
    pub fn generate() -> Self {
        let pair = CurveKeypair::generate();
        Self { public: PublicKey(pair.public), secret: SecretKey(pair.secret) }
    }

    /// The half that the broker learns.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        self.public
    }

    pub(crate) fn curve(&self) -> CurveKeypair {
        CurveKeypair { public: self.public.0, secret: self.secret.0.clone() }
    }
}

impl From<SecretKey> for KeyPair {
    fn from(secret: SecretKey) -> Self {
        Self { public: secret.public(), secret }
    }
}

/// What is wrong with the text of a key or of a key file. Never carries the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyTextError {
    /// Not 40 characters of Z85.
    #[error("a key must be 40 characters of Z85")]
    NotZ85,
    /// The file has no `public-key` line.
    #[error("it has no public-key line")]
    NoPublicKey,
    /// The file has no `secret-key` line.
    #[error("it has no secret-key line")]
    NoSecretKey,
    /// The two keys of the file are not a pair.
    #[error("its public key does not belong to its secret key")]
    NotAPair,
    /// The file is far larger than any key file.
    #[error("it is too large for a key file")]
    TooLarge,
}

/// Reads the public key out of the text of a key file.
///
/// # Errors
/// [`KeyTextError`] when there is no such line or its value is no key.
pub fn parse_public_file(text: &[u8]) -> Result<PublicKey, KeyTextError> {
    let value = zpl_value(text, "public-key").ok_or(KeyTextError::NoPublicKey)?;
    PublicKey::from_z85(&value)
}

/// Reads the pair out of the text of a secret key file, which holds both halves.
///
/// # Errors
/// [`KeyTextError`] when a line is missing, is no key, or the halves do not belong together.
pub fn parse_secret_file(text: &[u8]) -> Result<KeyPair, KeyTextError> {
    let public = parse_public_file(text)?;
    let value = zpl_value(text, "secret-key").ok_or(KeyTextError::NoSecretKey)?;
    let pair = KeyPair::from(SecretKey::from_z85(&value)?);
    if pair.public == public { Ok(pair) } else { Err(KeyTextError::NotAPair) }
}

/// The text of a public key file.
#[must_use]
pub fn public_file_text(key: &PublicKey) -> String {
    format!(
        "# Public CURVE key of NorFab (ZPL). It may be handed out.\n\nmetadata\ncurve\n    public-key = \"{}\"\n",
        key.to_z85()
    )
}

fn secret_file_text(pair: &KeyPair) -> String {
    format!(
        "# Secret CURVE key of NorFab (ZPL). Keep it to its owner alone.\n\nmetadata\ncurve\n    public-key = \"{}\"\n    \
         secret-key = \"{}\"\n",
        pair.public.to_z85(),
        pair.secret.to_z85()
    )
}

fn check_z85(text: &str) -> Result<(), KeyTextError> {
    if text.len() == Z85_LEN && text.is_ascii() { Ok(()) } else { Err(KeyTextError::NotZ85) }
}

/// The value of the first line `name = "value"`. Z85 itself contains `=` and `#`, so only the first `=` parts the line
/// and only a `#` at its beginning makes it a comment.
fn zpl_value(text: &[u8], name: &str) -> Option<String> {
    String::from_utf8_lossy(text).lines().find_map(|line| {
        let (left, right) = line.trim().split_once('=')?;
        if left.starts_with('#') || left.trim() != name {
            return None;
        }
        Some(right.trim_matches([' ', '\t', '\'', '"']).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A pair with `=` and `#` in both halves.
    const PUBLIC: &str = ")h8YHaAR>)i#aL#-=!U[d/}bOrzG?}of}&B<Fe%>";
    const SECRET: &str = "z>WkUkxXl2SP>kIbn1{DGLwH.a{M#DD((6h==T&l";

    fn check_secret(text: &str, expected: Result<&str, KeyTextError>) {
        let found = parse_secret_file(text.as_bytes()).map(|pair| pair.public().to_z85());
        assert_eq!(found, expected.map(str::to_owned), "{text}");
    }

    fn file(lines: &str) -> String {
        format!("#   ****  a banner = \"x\"  ****\n\nmetadata\ncurve\n{lines}")
    }

    #[test]
    fn reads_what_the_python_client_writes() {
        check_secret(&file(&format!("    public-key = \"{PUBLIC}\"\n    secret-key = \"{SECRET}\"\n")), Ok(PUBLIC));
    }

    #[test]
    fn blanks_quotes_and_line_ends_do_not_matter() {
        check_secret(&format!("public-key='{PUBLIC}'\r\n\tsecret-key =\t{SECRET}  \r\n"), Ok(PUBLIC));
    }

    #[test]
    fn comments_are_skipped() {
        check_secret(
            &format!("# public-key = \"x\"\n public-key = {PUBLIC}\n#secret-key = \"{SECRET}\"\n"),
            Err(KeyTextError::NoSecretKey),
        );
    }

    #[test]
    fn missing_lines_are_named() {
        check_secret("", Err(KeyTextError::NoPublicKey));
        check_secret(&format!("secret-key = \"{SECRET}\""), Err(KeyTextError::NoPublicKey));
    }

    #[test]
    fn bad_keys_are_refused() {
        for bad in ["", "short", &PUBLIC[1..], "ä23456789012345678901234567890123456789", &"~".repeat(40)] {
            check_secret(&format!("public-key = \"{bad}\"\nsecret-key = \"{SECRET}\""), Err(KeyTextError::NotZ85));
        }
    }

    #[test]
    fn halves_of_two_pairs_are_refused() {
        let other = KeyPair::generate().public().to_z85();
        check_secret(&format!("public-key = \"{other}\"\nsecret-key = \"{SECRET}\""), Err(KeyTextError::NotAPair));
    }

    #[test]
    fn writes_exactly_this_text() {
        let pair = KeyPair::from(SecretKey::from_z85(SECRET).unwrap());
        assert_eq!(
            secret_file_text(&pair),
            format!(
                "# Secret CURVE key of NorFab (ZPL). Keep it to its owner alone.\n\nmetadata\ncurve\n    public-key = \
                 \"{PUBLIC}\"\n    secret-key = \"{SECRET}\"\n"
            )
        );
        assert_eq!(
            public_file_text(&pair.public()),
            format!(
                "# Public CURVE key of NorFab (ZPL). It may be handed out.\n\nmetadata\ncurve\n    public-key = \
                 \"{PUBLIC}\"\n"
            )
        );
    }

    #[test]
    fn keys_with_every_awkward_character_survive() {
        for _ in 0..200 {
            let pair = KeyPair::generate();
            let text = secret_file_text(&pair);
            assert_eq!(parse_secret_file(text.as_bytes()), Ok(pair.clone()));
            assert_eq!(parse_public_file(text.as_bytes()), Ok(pair.public()));
        }
    }

    #[test]
    fn the_secret_is_never_shown() {
        let pair = KeyPair::generate();
        let shown = format!("{pair:?} {:?}", pair.secret);
        assert!(!shown.contains(&pair.secret.to_z85()), "{shown}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse_secret_file(&text);
            let _ = PublicKey::from_z85(&String::from_utf8_lossy(&text));
        }
    }
}
