//! The frames that every NFP message is made of: an empty one, a header that says who speaks, a command, and four
//! fields. Pure; what the fields mean is the business of `command` and `message`.

use std::fmt;

use crate::error::Malformed;

/// A multipart ZeroMQ message, frame by frame.
pub type Frames = Vec<Vec<u8>>;

/// Frames of a whole message.
pub const FRAME_COUNT: usize = 7;

/// Who speaks: the second frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Header {
    /// A client.
    Client,
    /// A worker.
    Worker,
    /// The broker.
    Broker,
}

impl Header {
    /// The frame.
    #[must_use]
    pub const fn as_bytes(self) -> &'static [u8] {
        match self {
            Self::Client => b"NFPC01",
            Self::Worker => b"NFPW01",
            Self::Broker => b"NFPB01",
        }
    }

    /// Reads the frame; `None` when it is no header of this protocol version.
    #[must_use]
    pub fn from_bytes(frame: &[u8]) -> Option<Self> {
        [Self::Client, Self::Worker, Self::Broker].into_iter().find(|header| header.as_bytes() == frame)
    }
}

/// The command: the third frame, as text such as `0x04`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Opens a conversation; unused by clients.
    Open,
    /// A worker registers.
    Ready,
    /// A sign of life between worker and broker.
    Keepalive,
    /// The end of a conversation between worker and broker.
    Disconnect,
    /// A job to run.
    Post,
    /// An answer.
    Response,
    /// Asks for the state or result of a job.
    Get,
    /// Reserved; workers ignore it.
    Delete,
    /// Something that happened during a job.
    Event,
    /// Bytes of a file.
    Stream,
    /// An answer to a job's input request.
    Put,
    /// A question to the broker itself (management interface).
    Mmi,
}

impl Command {
    const ALL: [Self; 12] = [
        Self::Open,
        Self::Ready,
        Self::Keepalive,
        Self::Disconnect,
        Self::Post,
        Self::Response,
        Self::Get,
        Self::Delete,
        Self::Event,
        Self::Stream,
        Self::Put,
        Self::Mmi,
    ];

    /// The frame.
    #[must_use]
    pub const fn as_bytes(self) -> &'static [u8] {
        match self {
            Self::Open => b"0x00",
            Self::Ready => b"0x01",
            Self::Keepalive => b"0x02",
            Self::Disconnect => b"0x03",
            Self::Post => b"0x04",
            Self::Response => b"0x05",
            Self::Get => b"0x06",
            Self::Delete => b"0x07",
            Self::Event => b"0x08",
            Self::Stream => b"0x09",
            Self::Put => b"0x10",
            Self::Mmi => b"0x11",
        }
    }

    /// Reads the frame; `None` for an unknown command.
    #[must_use]
    pub fn from_bytes(frame: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.as_bytes() == frame)
    }
}

/// A whole message whose four fields have not been looked at yet.
#[derive(Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The third frame, which may be any text: an unknown command has an answer too.
    pub command: Vec<u8>,
    /// Client: service, target, uuid, payload. Broker: service, uuid, status, payload.
    pub fields: [Vec<u8>; 4],
}

impl Envelope {
    /// Takes a message of `header` apart. Frames beyond the seventh are ignored, as the Python programs do.
    ///
    /// # Errors
    /// [`Malformed`] when it has fewer than seven frames, does not begin with an empty one, or another header.
    pub fn from_frames(frames: Frames, header: Header) -> Result<Self, Malformed> {
        let count = frames.len();
        let whole: [Vec<u8>; FRAME_COUNT] = frames
            .into_iter()
            .take(FRAME_COUNT)
            .collect::<Vec<_>>()
            .try_into()
            .map_err(|_| Malformed::TooFewFrames { count })?;
        let [empty, found, command, a, b, c, d] = whole;
        if !empty.is_empty() {
            return Err(Malformed::NoEmptyFrame);
        }
        if found != header.as_bytes() {
            return Err(Malformed::WrongHeader { found: word(&found) });
        }
        Ok(Self { command, fields: [a, b, c, d] })
    }

    /// The frames of a message that `header` sends.
    #[must_use]
    pub fn into_frames(self, header: Header) -> Frames {
        let [a, b, c, d] = self.fields;
        vec![Vec::new(), header.as_bytes().to_vec(), self.command, a, b, c, d]
    }
}

/// Lengths only: fields hold arguments and results, which must not reach a log.
impl fmt::Debug for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Envelope({}, {:?} bytes)", word(&self.command), self.fields.each_ref().map(Vec::len))
    }
}

/// A short foreign text made fit for one line of an error: escaped, and cut after 80 characters.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const LONGEST: usize = 80;
    let text = String::from_utf8_lossy(bytes);
    let mut line: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    line
}

/// A frame that should be one of a few short words. Whatever is longer may be anything, a result among it when frames are
/// missing, so that only its length is told.
pub(crate) fn word(bytes: &[u8]) -> String {
    const LONGEST: usize = 8;
    if bytes.len() <= LONGEST { shown(bytes) } else { format!("{} bytes", bytes.len()) }
}

/// A field that must be text.
pub(crate) fn text(frame: Vec<u8>, part: &'static str) -> Result<String, Malformed> {
    String::from_utf8(frame).map_err(|_| Malformed::NotText { part })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames(parts: &[&str]) -> Frames {
        parts.iter().map(|part| part.as_bytes().to_vec()).collect()
    }

    fn check(parts: &[&str], expected: Result<(), Malformed>) {
        let found = Envelope::from_frames(frames(parts), Header::Broker);
        assert_eq!(found.map(|_| ()), expected, "{parts:?}");
    }

    #[test]
    fn seven_frames_are_a_message() {
        check(&["", "NFPB01", "0x05", "s", "u", "202", "{}"], Ok(()));
    }

    #[test]
    fn further_frames_are_ignored() {
        check(&["", "NFPB01", "0x05", "s", "u", "202", "{}", "more"], Ok(()));
    }

    #[test]
    fn what_is_no_message() {
        check(&[], Err(Malformed::TooFewFrames { count: 0 }));
        check(&["", "NFPB01", "0x05", "s", "u", "202"], Err(Malformed::TooFewFrames { count: 6 }));
        check(&["x", "NFPB01", "0x05", "s", "u", "202", "{}"], Err(Malformed::NoEmptyFrame));
        check(
            &["", "NFPC01", "0x05", "s", "u", "202", "{}"],
            Err(Malformed::WrongHeader { found: "NFPC01".to_owned() }),
        );
    }

    #[test]
    fn every_command_and_header_reads_as_itself() {
        for command in Command::ALL {
            assert_eq!(Command::from_bytes(command.as_bytes()), Some(command));
        }
        for header in [Header::Client, Header::Worker, Header::Broker] {
            assert_eq!(Header::from_bytes(header.as_bytes()), Some(header));
        }
        assert_eq!((Command::from_bytes(b"0x12"), Header::from_bytes(b"NFPB02")), (None, None));
    }

    #[test]
    fn foreign_text_fits_one_line() {
        assert_eq!((word(b"0x99"), word(b"{\"a\":\"b\"}")), ("0x99".to_owned(), "9 bytes".to_owned()));
        assert_eq!(shown(b"a\nb\xff"), "a\\nb\u{fffd}");
        assert_eq!(shown("ä".repeat(100).as_bytes()), format!("{}…", "ä".repeat(80)));
    }

    proptest! {
        #[test]
        fn a_message_survives_the_wire(
            command in any::<Vec<u8>>(), a in any::<Vec<u8>>(), b in any::<Vec<u8>>(), c in any::<Vec<u8>>(),
            d in any::<Vec<u8>>(),
        ) {
            let envelope = Envelope { command, fields: [a, b, c, d] };
            let frames = envelope.clone().into_frames(Header::Client);
            prop_assert_eq!(Envelope::from_frames(frames, Header::Client), Ok(envelope));
        }
    }
}
