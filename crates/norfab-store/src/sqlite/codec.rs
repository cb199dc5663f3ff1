//! Payloads as the database keeps them: JSON, compressed. Any form that NorFab has ever written is read; what comes out
//! is bounded.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use lz4_flex::frame::{BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
use norfab_model::{Json, Results};
use serde::Deserialize;

use super::row::Cell;

/// How new payloads are compressed. Every database may hold payloads of either kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// zlib at level 6: what the Python client reads and writes; it does not start on anything else.
    Zlib,
    /// LZ4 frames with a checksum of the content: some ten times faster, and somewhat larger.
    Lz4,
}

impl Codec {
    /// The name that the database notes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Zlib => "zlib",
            Self::Lz4 => "lz4",
        }
    }

    /// Compresses a text onto the end of `out`, and returns where it is.
    pub(super) fn append(self, text: &str, out: &mut Vec<u8>) -> io::Result<Place> {
        let at = out.len();
        match self {
            Self::Zlib => {
                let mut encoder = ZlibEncoder::new(&mut *out, Compression::new(6));
                encoder.write_all(text.as_bytes())?;
                encoder.finish()?;
            }
            Self::Lz4 if (1..=SMALL).contains(&text.len()) => append_small(text, out)?,
            Self::Lz4 => {
                let mut encoder = FrameEncoder::with_frame_info(frame(), &mut *out);
                encoder.write_all(text.as_bytes())?;
                encoder.finish().map_err(io::Error::other)?;
            }
        }
        Ok(Place { at: at + 1, bytes: out.len() - at })
    }
}

/// Bytes of a text that is one block of a frame.
const SMALL: usize = 64 << 10;

/// Without the checksum a flipped bit would decode to something else, silently.
fn frame() -> FrameInfo {
    FrameInfo::new().content_checksum(true)
}

thread_local! {
    /// What a frame takes of memory is more than most payloads have: it is kept for the next one.
    static ENCODER: RefCell<Option<FrameEncoder<Vec<u8>>>> = const { RefCell::new(None) };
}

fn append_small(text: &str, out: &mut Vec<u8>) -> io::Result<()> {
    let new = || FrameEncoder::with_frame_info(frame().block_size(BlockSize::Max64KB), Vec::new());
    // One that failed is not used again.
    let mut encoder = ENCODER.take().unwrap_or_else(new);
    encoder.write_all(text.as_bytes())?;
    encoder.try_finish().map_err(io::Error::other)?;
    out.append(encoder.get_mut());
    ENCODER.set(Some(encoder));
    Ok(())
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is no codec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no way to compress payloads; the ways are zlib and lz4")]
pub struct UnknownCodec(pub String);

impl FromStr for Codec {
    type Err = UnknownCodec;

    fn from_str(text: &str) -> Result<Self, UnknownCodec> {
        [Self::Zlib, Self::Lz4]
            .into_iter()
            .find(|codec| codec.as_str() == text)
            .ok_or_else(|| UnknownCodec(text.to_owned()))
    }
}

/// Where a payload stands in the blob that a statement gets, counted as SQL counts: the first byte is 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) at: usize,
    pub(super) bytes: usize,
}

/// Why a payload cannot be read. Nothing of its content is told.
#[derive(Debug, thiserror::Error)]
pub(super) enum PayloadError {
    #[error("it is in none of the known forms")]
    UnknownForm,
    #[error("it is damaged ({0})")]
    Damaged(io::Error),
    #[error("it has more than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("it is no text")]
    NotUtf8,
    #[error("it is no valid JSON of the expected shape (line {line}, column {column})")]
    Shape { line: usize, column: usize },
}

impl From<serde_json::Error> for PayloadError {
    /// The message of `serde_json` may quote the value, so only the place is kept.
    fn from(error: serde_json::Error) -> Self {
        Self::Shape { line: error.line(), column: error.column() }
    }
}

/// The most bytes that the failures of all workers of a job take together.
const FAILURE_BYTES: usize = 8 << 20;

/// Reads payloads, up to a size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader {
    /// The most bytes of a payload once it is unpacked.
    pub(super) most_bytes: usize,
}

impl Reader {
    /// The positional arguments: `{"args": [..]}`, or none at all.
    pub(super) fn args(self, cell: &Cell) -> Result<Json, PayloadError> {
        #[derive(Deserialize)]
        struct Wrapped {
            args: Option<Json>,
        }
        let Some(text) = self.text(cell)? else { return Ok(Json::empty_array()) };
        let args = serde_json::from_str::<Wrapped>(&text)?.args.unwrap_or_else(Json::empty_array);
        if args.is_array() { Ok(args) } else { Err(PayloadError::Shape { line: 1, column: 1 }) }
    }

    /// The keyword arguments: `{"kwargs": {..}}`, or none at all.
    pub(super) fn kwargs(self, cell: &Cell) -> Result<Json, PayloadError> {
        #[derive(Deserialize)]
        struct Wrapped {
            kwargs: Option<Json>,
        }
        let Some(text) = self.text(cell)? else { return Ok(Json::empty_object()) };
        let kwargs = serde_json::from_str::<Wrapped>(&text)?.kwargs.unwrap_or_else(Json::empty_object);
        if kwargs.is_object() { Ok(kwargs) } else { Err(PayloadError::Shape { line: 1, column: 1 }) }
    }

    /// The results by worker, or none. What stands for a result that is too large, or never came, has room beside those
    /// that are kept: it must not make them unreadable.
    pub(super) fn results(self, cell: &Cell) -> Result<Results, PayloadError> {
        let with_failures = Self { most_bytes: self.most_bytes.saturating_add(FAILURE_BYTES) };
        match with_failures.text(cell)? {
            Some(text) if text.trim() != "null" => Ok(serde_json::from_str(&text)?),
            _ => Ok(Results::new()),
        }
    }

    /// Any value; an empty object when there is none.
    pub(super) fn json(self, cell: &Cell) -> Result<Json, PayloadError> {
        self.text(cell)?.map_or_else(|| Ok(Json::empty_object()), |text| Ok(Json::parse(text)?))
    }

    fn text(self, cell: &Cell) -> Result<Option<String>, PayloadError> {
        match cell {
            Cell::Null => Ok(None),
            Cell::Blob(bytes) | Cell::NotUtf8(bytes) => self.unpack(bytes).map(Some),
            Cell::Text(text) if text.is_empty() => Ok(None),
            Cell::Text(text) if is_json(text.as_bytes()) => self.bounded(text.as_bytes()).map(Some),
            // So did older releases of NorFab write them.
            Cell::Text(text) => {
                let bytes = STANDARD.decode(text.trim()).map_err(|_| PayloadError::UnknownForm)?;
                self.unpack(&bytes).map(Some)
            }
            Cell::Integer(_) | Cell::Real(_) => Err(PayloadError::UnknownForm),
        }
    }

    fn unpack(self, bytes: &[u8]) -> Result<String, PayloadError> {
        match bytes {
            [0x04, 0x22, 0x4d, 0x18, ..] => self.bounded(FrameDecoder::new(bytes)),
            // The two bytes of a zlib header are a multiple of 31; no JSON begins with an x.
            [0x78, flags, ..] if (0x7800 + u16::from(*flags)) % 31 == 0 => self.bounded(ZlibDecoder::new(bytes)),
            _ if is_json(bytes) => self.bounded(bytes),
            _ => Err(PayloadError::UnknownForm),
        }
    }

    fn bounded(self, source: impl Read) -> Result<String, PayloadError> {
        let limit = u64::try_from(self.most_bytes).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        source.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(PayloadError::Damaged)?;
        if bytes.len() > self.most_bytes {
            return Err(PayloadError::TooLarge { limit: self.most_bytes });
        }
        String::from_utf8(bytes).map_err(|_| PayloadError::NotUtf8)
    }
}

fn is_json(bytes: &[u8]) -> bool {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    first.is_some_and(|byte| matches!(byte, b'{' | b'[' | b'"' | b'n' | b't' | b'f' | b'-' | b'0'..=b'9'))
        && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const READER: Reader = Reader { most_bytes: 1000 };

    fn packed(codec: Codec, text: &str) -> Vec<u8> {
        let mut blob = Vec::new();
        codec.append(text, &mut blob).unwrap();
        blob
    }

    #[track_caller]
    fn check(cell: &Cell, expected: Result<&str, &str>) {
        let read = READER.json(cell).map(|json| json.as_str().to_owned()).map_err(|error| error.to_string());
        assert_eq!(read.as_deref().map_err(String::as_str), expected, "{cell:?}");
    }

    fn blob(bytes: &[u8]) -> Cell {
        Cell::Blob(bytes.to_vec())
    }

    /// What is kept from one payload for the next leaves nothing of it there.
    #[test]
    fn payloads_one_after_the_other() {
        let texts =
            ["0", "\"a\"", "", "[]", "\"b\"", "{}"].map(|text| text.repeat(if text == "[]" { SMALL } else { 1 }));
        let long = "7".repeat(SMALL);
        for text in texts.iter().chain([&long]).chain(&texts) {
            let mut read = String::new();
            FrameDecoder::new(&*packed(Codec::Lz4, text)).read_to_string(&mut read).unwrap();
            assert!(read == *text, "{} bytes come back as {}", text.len(), read.len());
        }
    }

    #[test]
    fn forms_are_told_apart_by_their_first_bytes() {
        let text = r#"{"a": [1.50, "żółć"]}"#;
        for codec in [Codec::Zlib, Codec::Lz4] {
            check(&Cell::Blob(packed(codec, text)), Ok(text));
        }
        check(&blob(text.as_bytes()), Ok(text));
        check(&Cell::Text(text.to_owned()), Ok(text));
        check(&Cell::Text(STANDARD.encode(packed(Codec::Zlib, text))), Ok(text));
        check(&Cell::Null, Ok("{}"));
        // Other levels of zlib, as another program may use them.
        check(&blob(&[0x78, 0x01, 0x01, 0x02, 0x00, 0xfd, 0xff, 0x7b, 0x7d, 0x01, 0x75, 0x00, 0xf9]), Ok("{}"));
    }

    #[test]
    fn what_is_none_of_them_is_refused() {
        let unknown = Err("it is in none of the known forms");
        for bytes in [&b"\x00"[..], b"", b"xyz", b"\x78", b"{", b"\x28\xb5\x2f\xfd zstd", b"{} {}"] {
            check(&blob(bytes), unknown);
        }
        check(&Cell::Text("not base64!".to_owned()), unknown);
        check(&Cell::Text(STANDARD.encode("neither")), unknown);
        check(&Cell::Integer(1), unknown);
    }

    #[test]
    fn a_flipped_bit_is_noticed() {
        let text = format!("{{\"a\": \"{}\"}}", "0123456789".repeat(50));
        for codec in [Codec::Zlib, Codec::Lz4] {
            let whole = packed(codec, &text);
            for at in 0..whole.len() {
                let mut flipped = whole.clone();
                flipped[at] ^= 0x10;
                // A bit that means nothing may be flipped; what is read is right or nothing.
                assert!(READER.json(&Cell::Blob(flipped)).map_or(true, |json| json.as_str() == text), "{codec} {at}");
            }
            assert!(READER.json(&blob(&whole[..whole.len() - 1])).is_err(), "{codec}");
        }
    }

    #[test]
    fn what_unpacks_beyond_the_bound_is_refused() {
        for codec in [Codec::Zlib, Codec::Lz4] {
            check(
                &Cell::Blob(packed(codec, &format!("\"{}\"", "0".repeat(998)))),
                Ok(&format!("\"{}\"", "0".repeat(998))),
            );
            let bomb = packed(codec, &format!("\"{}\"", "0".repeat(10_000_000)));
            assert!(bomb.len() < 100_000);
            check(&Cell::Blob(bomb), Err("it has more than 1000 bytes"));
        }
        check(&Cell::Text(format!("\"{}\"", "0".repeat(999))), Err("it has more than 1000 bytes"));
    }

    #[test]
    fn wrappers_are_taken_off() {
        let args = |text: &str| READER.args(&blob(text.as_bytes())).map(|args| args.as_str().to_owned()).ok();
        assert_eq!(args(r#"{"args": [1, 2.0]}"#).as_deref(), Some("[1, 2.0]"));
        assert_eq!(args(r#"{"args": null}"#).as_deref(), Some("[]"));
        assert_eq!(args("{}").as_deref(), Some("[]"));
        assert_eq!(args("[1]"), None);
        assert_eq!(args(r#"{"args": {}}"#), None);
        let kwargs = |text: &str| READER.kwargs(&blob(text.as_bytes())).map(|kwargs| kwargs.as_str().to_owned()).ok();
        assert_eq!(kwargs(r#"{"kwargs": {"kwargs": 1}}"#).as_deref(), Some(r#"{"kwargs": 1}"#));
        assert_eq!(kwargs(r#"{"kwargs": []}"#), None);
    }

    #[test]
    fn errors_tell_nothing_of_the_content() {
        let error = READER.args(&blob(br#"{"args": "secret"}"#)).unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
        let error = READER.results(&blob(br#"["secret"]"#)).unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn the_names_of_codecs_are_read_back() {
        for codec in [Codec::Zlib, Codec::Lz4] {
            assert_eq!(codec.to_string().parse(), Ok(codec));
        }
        assert_eq!("gzip".parse::<Codec>(), Err(UnknownCodec("gzip".to_owned())));
    }

    proptest! {
        #[test]
        fn payloads_come_back(text in "\\PC{0,200}", zlib in any::<bool>()) {
            let json = Json::of(&text).unwrap();
            let codec = if zlib { Codec::Zlib } else { Codec::Lz4 };
            prop_assert_eq!(READER.json(&Cell::Blob(packed(codec, json.as_str()))).unwrap(), json);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), form in 0..3_usize) {
            let start = [&b""[..], b"\x04\x22\x4d\x18", b"\x78\x9c"][form];
            let _ = READER.json(&Cell::Blob([start, &bytes].concat()));
        }
    }
}
