//! Waiting for what a server does in its own time.

use std::time::{Duration, Instant};

/// Waits for what becomes true.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, check: impl Fn() -> F) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        if check().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("waited in vain: {what}");
}
