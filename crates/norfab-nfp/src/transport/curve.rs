//! Connections secured by CURVE.

use super::socket::{self, SocketInlet, SocketOutlet};
use super::{Dialer, Endpoint};
use crate::key::{KeyPair, PublicKey};
use crate::name::ClientName;

pub(super) struct CurveDialer {
    endpoint: Endpoint,
    name: ClientName,
    keys: KeyPair,
    broker: PublicKey,
}

impl CurveDialer {
    pub(super) fn new(endpoint: Endpoint, name: ClientName, keys: KeyPair, broker: PublicKey) -> Self {
        Self { endpoint, name, keys, broker }
    }
}

impl Dialer for CurveDialer {
    type Outlet = SocketOutlet;
    type Inlet = SocketInlet;

    const MECHANISM: &'static str = "CURVE";

    async fn dial(&self) -> Result<(SocketOutlet, SocketInlet), String> {
        let options = socket::options(&self.name).curve_client(self.keys.curve(), self.broker.curve());
        socket::dial(&self.endpoint, options).await
    }

    fn refused(&self) -> String {
        format!(
            "the broker at {} refuses our keys or has another key; compare the client's copy, public_keys/broker.key or \
             shared_key, with the broker's own",
            self.endpoint
        )
    }
}
