//! Everything that can go wrong in this crate, one variant for each thing that a caller can do about it.

use std::io;
use std::path::PathBuf;

use crate::key::KeyTextError;

/// Why keys or a connection cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The client's name cannot be an identity on the wire and part of a path.
    #[error(
        "client name {name:?} cannot be used: it must have 1 to 255 bytes, no control characters, no slash or \
         backslash, and not begin with a dot"
    )]
    Name {
        /// The name, its first 300 characters.
        name: String,
    },
    /// The endpoint is none that a client can connect to.
    #[error("broker endpoint {endpoint:?} cannot be used: {problem}; give it as tcp://HOST:PORT")]
    Endpoint {
        /// What was given, its first 300 characters.
        endpoint: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A connection needs a tokio runtime to live on.
    #[error("there is no tokio runtime here; connect from within one")]
    NoRuntime,
    /// A key file cannot be read, made or written.
    #[error("key file {} cannot be {action}", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// `read`, `written` or the like.
        action: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The client's own key file is no key file. Another pair is made when it is gone.
    #[error("key file {} is malformed; restore it, or delete it and a new pair is made", path.display())]
    OwnKey {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: KeyTextError,
    },
    /// The broker's key file is no key file.
    #[error("broker key file {} is malformed; copy the broker's public_keys/broker.key there", path.display())]
    BrokerKeyFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: KeyTextError,
    },
    /// The inventory's key is no key.
    #[error("broker.shared_key in the inventory is malformed; copy it from the broker's public_keys/broker.key")]
    SharedKey {
        /// What is wrong with it.
        #[source]
        source: KeyTextError,
    },
    /// Nothing says which key the broker has.
    #[error(
        "no public key of the broker: there is no {}, and no broker.shared_key in the inventory; add one of them, or \
         set zmq_auth to false if the broker runs without keys", path.display()
    )]
    NoBrokerKey {
        /// Where the broker's own file would be.
        path: PathBuf,
    },
}

/// Why frames are no message. To be logged and counted, never fatal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// A message has seven frames.
    #[error("message has {count} of 7 frames")]
    TooFewFrames {
        /// How many came.
        count: usize,
    },
    /// The broker's answer to a command it does not know, which has five frames.
    #[error("broker refused a command: {text}")]
    Refused {
        /// What it said, escaped and cut.
        text: String,
    },
    /// A message begins with an empty frame.
    #[error("first frame is not empty")]
    NoEmptyFrame,
    /// Another protocol, another version of it, or another role.
    #[error("header {found:?} is not the expected one")]
    WrongHeader {
        /// The header, or its length.
        found: String,
    },
    /// A command that nobody knows, or none for this direction.
    #[error("command {found:?} is unknown here")]
    UnknownCommand {
        /// The command, or its length.
        found: String,
    },
    /// A status that nobody knows.
    #[error("status {found:?} is unknown")]
    UnknownStatus {
        /// The status, or its length.
        found: String,
    },
    /// A part that must be UTF-8 is not.
    #[error("{part} is not UTF-8")]
    NotText {
        /// Which part.
        part: &'static str,
    },
    /// The payload is not JSON.
    #[error("payload is not JSON (line {line}, column {column})")]
    NotJson {
        /// Where the parser stopped.
        line: usize,
        /// Where the parser stopped.
        column: usize,
    },
    /// The payload is JSON, but says something else than its kind of message must.
    #[error("payload of a {kind} message has another shape (line {line}, column {column})")]
    WrongShape {
        /// The kind of message.
        kind: &'static str,
        /// Where the parser stopped.
        line: usize,
        /// Where the parser stopped.
        column: usize,
    },
    /// Identities have 1 to 255 bytes and no control characters.
    #[error("uuid {found:?} cannot be an identity")]
    BadUuid {
        /// The uuid, or its length.
        found: String,
    },
    /// A worker's name is its identity on the wire, which has at most 255 bytes.
    #[error("a worker's name of {bytes} bytes cannot be an identity")]
    WorkerName {
        /// Its size.
        bytes: usize,
    },
    /// Questions to a person have at most 1 MiB.
    #[error("a question of {bytes} bytes is too large")]
    Question {
        /// Its size.
        bytes: usize,
    },
    /// Nobody asked for it.
    #[error("a file stream of {bytes} bytes came, which was not asked for")]
    Stream {
        /// Its size.
        bytes: usize,
    },
}
