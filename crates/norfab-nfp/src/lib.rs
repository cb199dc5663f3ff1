//! NFP, the protocol of NorFab, as a client speaks it.
//!
//! The rooms, in reading order: `frame` knows the frames of a message, `command` what a client says, `message` what the
//! broker says (all pure); `key` the CURVE keys and their files; `transport` the sockets, of which `plain` and `curve`
//! are the two kinds; `broker` joins them to the model's `Broker` port as [`NfpBroker`].
//!
//! Nothing here knows SQL or asks for the current time.

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

mod broker;
mod command;
mod error;
mod first;
mod frame;
mod key;
mod message;
mod name;
mod token;
mod transport;

pub use broker::NfpBroker;
pub use command::{BROKER_SERVICE, ClientMessage, INVENTORY_SERVICE, parse_target, target_text};
pub use error::{Error, Malformed};
pub use frame::{Command, Envelope, FRAME_COUNT, Frames, Header};
pub use key::{
    BrokerKeySource, KeyFolder, KeyPair, KeyTextError, PublicKey, SecretKey, parse_public_file, parse_secret_file,
    public_file_text,
};
pub use message::{BrokerMessage, Kind, Meaning, Status};
pub use name::ClientName;
pub use transport::{Endpoint, Security};
