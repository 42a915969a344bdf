//! Journals on a server that other tests use too.

use afterimage_journal::{Credentials, NatsOptions};
use afterimage_testkit::nats_server::Server;

/// How a journal reaches a server, with the account that the test has there.
pub(crate) fn options_of(server: &Server) -> NatsOptions {
    let options = NatsOptions::new(server.url());
    match server.user() {
        Some((name, password)) => options.with_credentials(Credentials::User { name, password }),
        None => options,
    }
}

/// A plain client of a server, with the account that the test has there.
pub(crate) async fn client_of(server: &Server) -> async_nats::Client {
    let options = match server.user() {
        Some((name, password)) => {
            async_nats::ConnectOptions::with_user_and_password(name, password)
        }
        None => async_nats::ConnectOptions::new(),
    };
    options.connect(server.url()).await.expect("a server that answers")
}
