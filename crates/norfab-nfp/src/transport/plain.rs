//! Connections without security.

use super::socket::{self, SocketInlet, SocketOutlet};
use super::{Dialer, Endpoint};
use crate::name::ClientName;

pub(super) struct PlainDialer {
    endpoint: Endpoint,
    name: ClientName,
}

impl PlainDialer {
    pub(super) fn new(endpoint: Endpoint, name: ClientName) -> Self {
        Self { endpoint, name }
    }
}

impl Dialer for PlainDialer {
    type Outlet = SocketOutlet;
    type Inlet = SocketInlet;

    const MECHANISM: &'static str = "NULL";

    async fn dial(&self) -> Result<(SocketOutlet, SocketInlet), String> {
        socket::dial(&self.endpoint, socket::options(&self.name)).await
    }

    fn refused(&self) -> String {
        format!(
            "the broker at {} accepts connections and breaks them off at once; is it a NorFab broker?",
            self.endpoint
        )
    }
}
