//! A counter behind a pointer is that counter.

use std::sync::Arc;

use super::{Certainty, CountedText, TokenCounter};

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<C: TokenCounter + ?Sized> TokenCounter for $pointer {
            fn id(&self) -> &str {
                (**self).id()
            }

            fn is_exact(&self) -> bool {
                (**self).is_exact()
            }

            fn certainty(&self) -> Certainty {
                (**self).certainty()
            }

            fn count(&self, text: &str) -> usize {
                (**self).count(text)
            }

            fn count_up_to(&self, text: &str, limit: usize) -> Option<usize> {
                (**self).count_up_to(text, limit)
            }

            fn count_joined(&self, parts: &[CountedText<'_>]) -> usize {
                (**self).count_joined(parts)
            }
        }
    )*};
}

forward!(&C, Box<C>, Arc<C>);
