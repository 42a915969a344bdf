//! Steps on a server that no message holds.
#![allow(clippy::unwrap_used)]

use afterimage_testkit::nats_server::{self, Server};

use super::{owner::Steps, store::NatsSteps};
use crate::{
    id::Millis,
    journal::{Credentials, NatsJournal, NatsOptions, SessionName},
};

#[test]
fn a_page_of_large_steps_ends_at_32_megabytes() {
    if nats_server::program().is_none() {
        eprintln!("skipped: there is no NATS server");
        return;
    }
    let server = Server::shared();
    let options = NatsOptions::new(server.url());
    let options = match server.user() {
        Some((name, password)) => options.with_credentials(Credentials::User { name, password }),
        None => options,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let journal = NatsJournal::connect(options).await.unwrap();
        let mut steps = NatsSteps::of(journal, SessionName::new("pilot").unwrap());
        for number in 1..=10_u8 {
            let step = vec![number; 4 << 20];
            steps.append(number.into(), &step, Millis::new(0)).await.unwrap();
        }
        let mut found = Vec::new();
        for count in [8, 2, 0] {
            let page = steps.read(found.len() as u64 + 1, 256).await.unwrap();
            assert_eq!(page.len(), count);
            found.extend(page);
        }
        let is_whole = |(step, number): (&Vec<u8>, u8)| *step == vec![number; 4 << 20];
        assert!(found.iter().zip(1..).all(is_whole));
    });
}
