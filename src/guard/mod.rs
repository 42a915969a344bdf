//! The guard: what a provider's cache will make of a request, said before it is sent.
//!
//! [`Guard::predict`] compares a request with the one before it in the order in which the provider's
//! cache takes them: what they share, what will be read and written, what that costs, and the first
//! byte that differs with who wrote it. [`CacheRules`] is a table that is data and says its date; a
//! model that it does not name gets no forecast. [`Guard::admit`] refuses what would cost too much.
//! [`ProviderDiagnostics`] is what the providers themselves say afterwards.
//!
//! Caches are best effort. A forecast says what the published rules allow, by the request before alone:
//! what other sessions left in the cache is not known.
//!
//! ```text
//! rules      reads the table
//! layout     finds the places of a request at which an entry may end
//! lookup     says which the cache keeps, and which it is asked for
//! scale      turns counts of ours into the provider's
//! comparison holds two requests against each other
//! difference names what differs first
//! predict    puts it together
//! explain    says afterwards why a cache broke
//! ```

mod comparison;
mod diagnostics;
mod difference;
mod explain;
mod layout;
mod lookup;
mod predict;
mod prediction;
mod rules;
mod scale;
mod volatile;

pub use diagnostics::ProviderDiagnostics;
pub use difference::{ChangeKind, FirstDifference};
pub use predict::{Guard, RefusedRequest, SentRequest};
pub use prediction::{CacheForecast, Lifetime, NoForecast, Prediction, UnservedEntry};
pub use rules::{Basis, CacheRules, ModelRules, Setting};
pub use volatile::Volatile;
